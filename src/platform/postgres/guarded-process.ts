/**
 * Runs a server program so that it can't outlive this process: a small shell in a session of its own stands between
 * them, reads a pipe that only we hold, and ends the program when the pipe closes, however we died.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Binaries } from './binaries.js';
import { BARE_ENVIRONMENT, type RunAs } from './run-as.js';

/** The guard's exit code when another process holds the cluster; no PostgreSQL program uses it. */
export const CLUSTER_HELD = 75;
const KEPT_LINES = 20;

/** What a command needs to be run; `lock` is the cluster that it takes for itself, `staleLock` as `Occupancy` has it. */
export interface GuardedCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly runAs: RunAs;
  readonly binaries: Binaries;
  readonly lock?: string;
  readonly staleLock?: string;
}

/** A running program. `exited` never rejects; `lastLines` are the newest lines of its standard error. */
export interface GuardedProcess {
  readonly exited: Promise<{ readonly code: number | null; readonly how: string }>;
  readonly lastLines: readonly string[];
  onLine(listener: (line: string) => void): void;
  /** What our death would do: SIGINT, which is a clean end for both initdb and postgres. */
  end(): void;
  /** SIGQUIT: postgres drops everything and recovers at the next start. */
  quit(): void;
  /** SIGKILL for guard and program. */
  kill(): void;
}

// $1 cluster to lock or '', $2 first line of a stale postmaster.pid as `pid:…` or '', $3 library path or '', then the command.
//
// - The lock is an flock(2) on the cluster's folder. The program inherits it and the guard gives it up, so it is held
//   exactly as long as any process of the server lives, and it is seen from other containers, where process ids mean
//   nothing. Where there is no flock program or the file system can't, PostgreSQL's own lock file decides alone.
// - A stale lock file is removed under that lock, so nobody else's fresh one can be meant. An empty one may be just
//   being written, so it is removed under the lock only.
// - SIGINT is sent until it is heeded, since a program that has only just been started ignores it; SIGQUIT after 20 s.
// - The guard outlives SIGTERM and SIGHUP, which are meant for the process that holds the pipe.
const GUARD = `
lock=$1; stale=$2; libraries=$3; shift 3
exec 3<&0 </dev/null
held=
if [ -n "$lock" ] && command -v flock >/dev/null; then
  exec 9<"$lock"
  flock -n -E ${CLUSTER_HELD} 9
  case $? in 0) held=1 ;; ${CLUSTER_HELD}) echo 'another process has the cluster' >&2; exit ${CLUSTER_HELD} ;; esac
fi
if [ -n "$stale" ] && [ "pid:$(head -n 1 "$lock/postmaster.pid" 2>/dev/null)" = "$stale" ]; then
  if [ -n "$held" ] || [ "$stale" != pid: ]; then rm -f "$lock/postmaster.pid"; fi
fi
(
  exec 3<&-
  if [ -n "$libraries" ]; then export LD_LIBRARY_PATH="$libraries" DYLD_LIBRARY_PATH="$libraries"; fi
  exec "$@"
) &
program=$!
exec 9<&-
{
  read -r nothing <&3
  tries=0
  while kill -INT $program; do
    sleep 1
    tries=$((tries + 1))
    if [ $tries -ge 20 ]; then kill -QUIT $program; fi
  done
} 2>/dev/null &
watch=$!
exec 3<&-
trap : INT TERM HUP
trap 'kill -QUIT $program' USR1
while :; do wait $program; code=$?; kill -0 $program 2>/dev/null || break; done
kill $watch 2>/dev/null
exit $code
`;

/** Starts a command under its guard. A program that can't even be started shows as an exit. */
export function startGuarded(command: GuardedCommand): GuardedProcess {
  const { runAs, binaries } = command;
  const argv = [
    ...runAs.prefix,
    ...['/bin/sh', '-c', GUARD, 'capstan-postgres-guard'],
    ...[command.lock ?? '', command.staleLock ?? '', binaries.libraryPath ?? ''],
    ...[command.program, ...command.args],
  ];
  const child = spawn(argv[0] ?? '', argv.slice(1), {
    cwd: '/',
    env: { ...BARE_ENVIRONMENT },
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
    ...(runAs.account && { uid: runAs.account.uid, gid: runAs.account.gid }),
  });
  const lastLines: string[] = [];
  const listeners: ((line: string) => void)[] = [];
  child.stdin.on('error', () => undefined);
  const output = createInterface({ input: child.stderr });
  output.on('line', (line) => {
    lastLines.push(line);
    if (lastLines.length > KEPT_LINES) lastLines.shift();
    for (const listener of listeners) listener(line);
  });
  return {
    exited: whenExited(child, lastLines),
    lastLines,
    onLine: (listener) => void listeners.push(listener),
    end: () => child.stdin.destroy(),
    quit: () => void child.kill('SIGUSR1'),
    kill: () => killGroup(child),
  };
}

/** The one line of a program's output that says why it failed. */
export function reasonIn(lines: readonly string[]): string {
  const telling = lines.findLast((line) => /FATAL:|PANIC:|initdb: error:|ermission denied|cannot open/.test(line));
  return (telling ?? lines.at(-1) ?? 'no reason given').replace(/^.*?(FATAL|PANIC): +/, '').trim();
}

function whenExited(child: ChildProcess, lastLines: string[]): GuardedProcess['exited'] {
  return new Promise((done) => {
    child.once('error', (error) => {
      lastLines.push(error.message);
      done({ code: null, how: error.message });
    });
    // Not 'exit': the last lines, which say why, may come after it. The guard's watcher holds the pipe a moment longer.
    child.once('close', (code, signal) => done({ code, how: signal ?? describe(code ?? 0) }));
    // A guard that was killed leaves its program with our pipes; 'close' would wait for that program's end.
    child.once('exit', (_code, signal) => {
      child.stdin?.destroy();
      if (signal !== null) child.stderr?.destroy();
    });
  });
}

/** A shell reports its program's signal as 128 + its number. */
function describe(code: number): string {
  return code > 128 ? `signal ${code - 128}` : `code ${code}`;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}
