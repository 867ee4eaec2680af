/**
 * Entry of the supervisor process. It holds no settings and no state beyond its own life.
 *
 *   fd 3  command channel; only the replica holds the other end, so its end of file means that the replica is gone
 *   fd 4  the keeper's pipe, read at every tick and before every decision
 *
 * Invariant: it ends only when no process of its tools is left, whatever makes it end; and it writes nothing to stderr
 * before that, because a full pipe there would stop it.
 */
import { closeSync, constants, openSync, readdirSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { KEEPER_PIPE } from './abandoned.js';
import { Channel } from './channel.js';
import { Fleet } from './fleet.js';
import { FRAME_JSON, type Frame, FrameError, jsonFrame, MAX_COMMAND_BYTES } from './frames.js';
import { detectWrapper } from './launch.js';
import { Lease } from './lease.js';
import { removePlaces } from './places.js';
import type { EndCause } from './plan.js';
import { type Command, decodeCommand, type Hello, type SupervisorEvent } from './protocol.js';
import { type OnGroupsOnly, ToolCgroups } from './tool-cgroups.js';

const COMMAND_FD = 3;
const KEEPER_FD = 4;
const TICK_MS = 250;
const LAST_WORDS_MS = 5_000;

interface Working {
  readonly hello: Hello;
  readonly fleet: Fleet;
  readonly cgroups: ToolCgroups | null;
}

let working: Working | null = null;
let isEnding = false;
let exitCode = 0;

const channel = new Channel(new Socket({ fd: COMMAND_FD, readable: true, writable: true }), MAX_COMMAND_BYTES, {
  onFrame: (frame) => take(frame),
  onDrain: () => working?.fleet.resumeOutput(),
  onClosed: (reason) => {
    working?.fleet.discardOutput();
    end('lost', reason === 'closed' ? 0 : 1);
  },
});

function take(frame: Frame): void {
  if (frame.type !== FRAME_JSON) throw new FrameError('unknown frame type');
  const command = decodeCommand(frame.payload);
  if (working === null) {
    if (command.type !== 'hello') throw new FrameError('no hello');
    working = begin(command);
  } else {
    obey(command, working);
  }
}

function begin(hello: Hello): Working {
  // Never closed: as long as somebody reads it, the folder is not taken for that of a dead supervisor.
  if (hello.pipes !== hello.root) openSync(join(hello.pipes, KEEPER_PIPE), constants.O_RDONLY | constants.O_NONBLOCK);
  const lease = new Lease({
    incarnation: hello.incarnation,
    deadlineMs: hello.deadlineMs,
    keeperFd: KEEPER_FD,
    onExtension: (seq) => send({ type: 'ack', seq }),
  });
  const sayGroupsOnly: OnGroupsOnly = (tools, why) => send({ type: 'groups_only', tools, why });
  const cgroups = hello.cgroup === null ? null : ToolCgroups.open(hello.cgroup, sayGroupsOnly);
  const fleet = new Fleet({
    hello,
    lease,
    wrapper: detectWrapper(),
    cgroups,
    send: (bytes, onSent) => channel.send(bytes, onSent),
    isCongested: () => channel.isCongested,
  });
  setInterval(() => fleet.enforceDeadline(), TICK_MS);
  send({ type: 'ready', pid: process.pid, cgroup: cgroups?.folder ?? null });
  return { hello, fleet, cgroups };
}

function obey(command: Command, { hello, fleet }: Working): void {
  switch (command.type) {
    case 'hello':
      throw new FrameError('a second hello');
    case 'start':
      if (fleet.has(command.key)) throw new FrameError('a key that is in use');
      fleet.start(command);
      break;
    case 'stop':
      fleet.stop(command.key, command.cause, hello.graceMs);
      break;
    case 'kill':
      fleet.stop(command.key, 'cancel', 0);
      break;
    case 'credit':
      fleet.grant(command.key, command.bytes);
      break;
    case 'shutdown':
      end('drain', 0);
      break;
  }
}

function send(event: SupervisorEvent): void {
  channel.send(jsonFrame(event));
}

/** Stops every tool, removes every folder, tells the ends and exits. The first call decides. */
function end(cause: EndCause, code: number): void {
  exitCode = Math.max(exitCode, code);
  if (isEnding) return;
  isEnding = true;
  if (working === null) process.exit(exitCode);
  const { fleet, hello, cgroups } = working;
  fleet.stopAll(cause, () => {
    cgroups?.close();
    void Promise.all([channel.close(LAST_WORDS_MS), removePlaces(hello)]).then(() => process.exit(exitCode));
  });
}

let failure: unknown;

process.on('uncaughtException', (error) => {
  if (failure !== undefined) {
    // The orderly way failed as well.
    working?.fleet.killAll();
    process.exit(1);
  }
  failure = error;
  end('lost', 1);
});
process.on('exit', () => {
  if (failure !== undefined) console.error('supervisor failed, its tools were stopped:', failure);
});
process.on('SIGTERM', () => end('lost', 0));
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});

/**
 * Whatever the replica was started with and left open (a lock, a log, a pipe) stops here: Node marks its own
 * descriptors close-on-exec, and of inherited ones only the lowest.
 */
function closeForeignDescriptors(): void {
  if (process.platform !== 'linux') return;
  for (const fd of readdirSync('/proc/self/fd').map(Number)) {
    if (fd <= KEEPER_FD) continue;
    try {
      const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'));
      const isCloseOnExec = flags?.[1] !== undefined && (Number.parseInt(flags[1], 8) & 0o2000000) !== 0;
      if (!isCloseOnExec) closeSync(fd);
    } catch {
      // Gone already: it was the listing's own.
    }
  }
}

closeForeignDescriptors();
