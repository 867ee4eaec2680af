/**
 * Tools that leave a trace of every moment at which they ran, and the verdict on it: who ran, how often, until when.
 * A trace is written by the tool itself to a file that no replica touches, so it proves what really happened.
 */
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A run that has ended, as the database has it. */
export interface EndedRun {
  /** Its TypeID, as the tool saw it. */
  readonly id: string;
  readonly state: string;
  readonly code: string;
  readonly fence: number;
  readonly endedAtMs: number;
}

/** What the tools of one run left: the processes that were at work, and when last, on the machine's clock. */
export interface Trace {
  readonly pids: Set<number>;
  /** How many effects. */
  count: number;
  lastAtMs: number;
}

const TOOL = `
import os, signal, sys, time
path, seconds, manner, says = sys.argv[1], float(sys.argv[2]), sys.argv[3], 'says' in sys.argv[4:]
if manner == 'stubborn': signal.signal(signal.SIGTERM, signal.SIG_IGN)
fd = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o666)
end = time.monotonic() + seconds
n = 0
while True:
    os.write(fd, b'%s %d %.3f\\n' % (os.environ['CAPSTAN_RUN_ID'].encode(), os.getpid(), time.time() * 1000))
    n += 1
    if says and n % 10 == 1:
        print(n, flush=True)
        with open(os.environ['CAPSTAN_EVENTS_FILE'], 'a') as events: events.write('{"type":"effect","n":%d}\\n' % n)
    if time.monotonic() >= end: break
    time.sleep(0.02)
`;

export interface Verdict {
  /** Runs whose tool was started more than once. */
  readonly duplicates: readonly string[];
  /** Runs that read `succeeded` without an effect. */
  readonly losses: readonly string[];
  /** Runs with an effect after their end, and by how many ms. */
  readonly late: readonly { readonly id: string; readonly byMs: number }[];
}

export class Effects {
  private constructor(private readonly file: string) {}

  /** An empty effects file in `folder`. */
  static async in(folder: string): Promise<Effects> {
    const file = join(folder, `effects-${Math.random().toString(36).slice(2)}`);
    await writeFile(file, '', { mode: 0o666 });
    return new Effects(file);
  }

  /**
   * A command that leaves an effect each 20 ms for `seconds`, and at least one. A `stubborn` one ignores TERM; one that
   * `says` so prints the number of each tenth effect, from 1 on, and reports it as an event.
   */
  tool(seconds: number, manner: 'polite' | 'stubborn' = 'polite', isTold?: 'says'): string[] {
    return ['python3', '-c', TOOL, this.file, String(seconds), manner, ...(isTold ? [isTold] : [])];
  }

  /** All effects so far by run; read line by line, for a long soak leaves many. */
  async traces(): Promise<Map<string, Trace>> {
    const traces = new Map<string, Trace>();
    for await (const line of createInterface({ input: createReadStream(this.file) })) {
      const [runId = '', pid, at] = line.split(' ');
      const trace = traces.get(runId) ?? { pids: new Set(), count: 0, lastAtMs: 0 };
      trace.pids.add(Number(pid));
      trace.count += 1;
      trace.lastAtMs = Math.max(trace.lastAtMs, Number(at));
      traces.set(runId, trace);
    }
    return traces;
  }

  /** What became of `runs`, all of which have ended. */
  async judge(runs: readonly EndedRun[]): Promise<Verdict> {
    const traces = await this.traces();
    const traced = runs.map((run) => ({ ...run, trace: traces.get(run.id) }));
    return {
      duplicates: traced.filter(({ trace }) => trace && trace.pids.size > 1).map(({ id }) => id),
      losses: traced.filter(({ state, trace }) => state === 'succeeded' && !trace).map(({ id }) => id),
      late: traced.flatMap(({ id, endedAtMs, trace }) =>
        trace && trace.lastAtMs > endedAtMs ? [{ id, byMs: trace.lastAtMs - endedAtMs }] : [],
      ),
    };
  }
}

/** Nothing ran twice, nothing is missing, nothing happened after an end. */
export const CLEAN: Verdict = { duplicates: [], losses: [], late: [] };
