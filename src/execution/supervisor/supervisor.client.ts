/**
 * The replica's side of the supervisor: starts it, speaks to it, and cleans up after it.
 * Invariant: when the supervisor is gone, so are its tools, or nobody is told that they are (see launches.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KEEPER_PIPE } from './abandoned.js';
import { findOwnCgroup } from './cgroup.js';
import { Channel } from './channel.js';
import {
  decodeOutput,
  FRAME_JSON,
  FRAME_OUTPUT,
  type Frame,
  FrameError,
  jsonFrame,
  MAX_EVENT_BYTES,
} from './frames.js';
import { type Launch, Launches, type LaunchHandlers } from './launches.js';
import { MEMORY_DIR, makePlaces, type Places, removePlaces } from './places.js';
import type { StopCause } from './plan.js';
import { type Command, decodeEvent, type HttpSettings } from './protocol.js';
import { emptyCgroupFolder, type OnGroupsOnly, removeCgroupsOfDead } from './tool-cgroups.js';

const DEFAULT_HTTP: HttpSettings = { allow: [], userAgent: 'capstan', caFile: null };
const READY_LIMIT_MS = 15_000;
/** What a shutdown may take beyond the grace period. */
const SHUTDOWN_EXTRA_MS = 5_000;

export interface SupervisorOptions {
  /** UUID in lower case: the life of the worker whose tools these are. */
  readonly incarnation: string;
  /** From TERM to KILL. */
  readonly graceMs: number;
  /** From the time a renewal was sent to TERM. */
  readonly deadlineMs: number;
  /** How requests of runs are made; by default to public addresses only. */
  readonly http?: HttpSettings;
  /** Compiled entry; by default the one beside this file. */
  readonly entry?: URL;
  /** Where the supervisor's folder is made; by default the system's folder for temporary files. */
  readonly tempDir?: string;
  /** Where its pipes are made, if that is in memory. */
  readonly memoryDir?: string;
  /** The cgroup (version 2) below which its tools get theirs; by default this process's own, null for none. */
  readonly cgroup?: string | null;
  /** Of these tools a process that leaves its group by `setsid` is out of reach. */
  readonly onGroupsOnly?: OnGroupsOnly;
  /** Cgroups in which something lives on that dead supervisors left; called at most once. */
  onLeftovers?(cgroups: readonly string[]): void;
  /** Its stderr, on which only a crash of Node shows; by default the replica's. */
  readonly stderr?: 'inherit' | 'ignore';
}

export interface SupervisorExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Starts a supervisor and waits until it is ready. Rejects when it does not come up; nothing is left behind then. */
export async function startSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  if (process.platform === 'win32') throw new Error('a supervisor needs process groups, which Windows does not have');
  const tempDir = options.tempDir ?? tmpdir();
  const { cgroup = findOwnCgroup() } = options;
  if (cgroup === null) options.onGroupsOnly?.('all', 'no cgroup of version 2');
  const places = await makePlaces(tempDir, options.memoryDir ?? MEMORY_DIR);
  const fds: number[] = [];
  try {
    const pipe = join(places.root, KEEPER_PIPE);
    const readFd = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    fds.push(readFd);
    const keeperFd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    fds.push(keeperFd);
    const supervisor = new Supervisor(spawnSupervisor(options, readFd), places, keeperFd);
    await supervisor.begin(options, cgroup);
    fds.pop();
    if (cgroup !== null && supervisor.hasCgroups) void sweep(cgroup, options);
    return supervisor;
  } catch (error) {
    await removePlaces(places);
    throw error;
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}

/** Nothing waits for it: what was left may be another user's, or stuck in the kernel. */
async function sweep(cgroup: string, options: SupervisorOptions): Promise<void> {
  const left = await removeCgroupsOfDead(cgroup);
  if (left.length > 0) options.onLeftovers?.(left);
}

function spawnSupervisor(options: SupervisorOptions, keeperReadFd: number): ChildProcess {
  const entry = options.entry ?? new URL('./supervisor.main.js', import.meta.url);
  // Few threads and a small young generation: it sleeps nearly always, and its memory counts on every replica.
  const flags = ['--v8-pool-size=1', '--max-semi-space-size=2'];
  return spawn(process.execPath, [...flags, fileURLToPath(entry)], {
    detached: true,
    cwd: '/',
    env: { UV_THREADPOOL_SIZE: '2', MALLOC_ARENA_MAX: '1' },
    stdio: ['ignore', 'ignore', options.stderr ?? 'inherit', 'pipe', keeperReadFd],
  });
}

export class Supervisor {
  /**
   * Writing end of the keeper's pipe, non-blocking: a write of one frame is whole, or EAGAIN (the supervisor has not
   * read for hours), or EPIPE (it is gone). It stays open, also after the supervisor's end, until `closeKeeperFd`:
   * closed earlier, the number could be another file's while the keeper's thread still writes to it.
   */
  readonly keeperFd: number;
  /** Settles when it is gone, every group and cgroup of it is empty, every end was told and its folder is removed. */
  readonly gone: Promise<void>;
  readonly #child: ChildProcess;
  readonly #places: Places;
  readonly #channel: Channel;
  readonly #launches = new Launches();
  readonly #exited: Promise<SupervisorExit>;
  readonly #exitListeners: ((exit: SupervisorExit) => void)[] = [];
  readonly #ackListeners: ((seq: number) => void)[] = [];
  #onReady: (() => void) | null = null;
  #onGroupsOnly: OnGroupsOnly | undefined;
  /** Where its tools have their cgroups. */
  #cgroups: string | null = null;
  /** Nothing that is sent from now on can reach it. */
  #isDeaf = false;
  #graceMs = 0;

  /** Use `startSupervisor`. */
  constructor(child: ChildProcess, places: Places, keeperFd: number) {
    this.#child = child;
    this.#places = places;
    this.keeperFd = keeperFd;
    const socket = child.stdio[3];
    if (!(socket instanceof Socket)) throw new Error('the supervisor has no command channel');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    this.#channel = new Channel(socket, MAX_EVENT_BYTES, {
      onFrame: (frame) => this.#take(frame),
      onClosed: (reason) => {
        this.#isDeaf = true;
        if (reason === 'malformed') this.destroy();
      },
    });
    this.#exited = new Promise((resolve) => {
      child.once('error', () => resolve({ code: null, signal: null }));
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    // What it said before it died is still in the channel: groups are known from it, and ends.
    this.gone = Promise.all([this.#exited, closed]).then(([exit]) => this.#afterExit(exit));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasCgroups(): boolean {
    return this.#cgroups !== null;
  }

  /** Process groups that were told to have started and not to have ended. */
  groups(): number[] {
    return this.#launches.groups();
  }

  /** Greets, and waits for the answer; `startSupervisor` does this. */
  async begin(options: SupervisorOptions, cgroup: string | null): Promise<void> {
    const { incarnation, graceMs, deadlineMs, http = DEFAULT_HTTP } = options;
    this.#graceMs = graceMs;
    this.#onGroupsOnly = options.onGroupsOnly;
    const ready = new Promise<'ready'>((resolve) => {
      this.#onReady = () => resolve('ready');
    });
    this.#send({ type: 'hello', incarnation, graceMs, deadlineMs, ...this.#places, http, cgroup });
    const timer = setTimeout(() => this.destroy(), READY_LIMIT_MS);
    const outcome = await Promise.race([ready, this.#exited]);
    clearTimeout(timer);
    if (outcome === 'ready') return;
    throw new Error(`the supervisor did not start (exit code ${outcome.code}, signal ${outcome.signal})`);
  }

  /** Asks for a tool. Throws when the key is in use. After the supervisor's end the answer is `stopping`. */
  launch(launch: Launch, handlers: LaunchHandlers): void {
    if (this.#isDeaf) {
      queueMicrotask(() => handlers.onRefused('stopping'));
      return;
    }
    this.#launches.add(launch.key, handlers);
    this.#send({ type: 'start', ...launch });
  }

  /** Lets `bytes` more of the tool's output come; INITIAL_CREDIT_BYTES are granted from the start. */
  grantCredit(key: number, bytes: number): void {
    this.#send({ type: 'credit', key, bytes });
  }

  /** TERM, and KILL after the grace period. Of several causes the first counts. */
  stop(key: number, cause: StopCause): void {
    this.#send({ type: 'stop', key, cause });
  }

  /** KILL at once; ends as `cancel` when no other cause came before. */
  kill(key: number): void {
    this.#send({ type: 'kill', key });
  }

  /** Kills the supervisor itself, for when it doesn't answer: its tools are then killed from here, their ends are `lost`. */
  destroy(): void {
    this.#child.kill('SIGKILL');
  }

  /** Stops every tool with its grace period (ends: `drain`), then the process. Resolves with `gone`. */
  async shutdown(): Promise<void> {
    this.#send({ type: 'shutdown' });
    const timer = setTimeout(() => this.destroy(), this.#graceMs + SHUTDOWN_EXTRA_MS);
    await this.#exited;
    clearTimeout(timer);
    await this.gone;
  }

  /** Called when the process has ended, expected or not; its tools may still be dying (see `gone`). */
  onExit(listener: (exit: SupervisorExit) => void): void {
    this.#exitListeners.push(listener);
  }

  /** Called with the `seq` of each extension that the supervisor has read. */
  onAck(listener: (seq: number) => void): void {
    this.#ackListeners.push(listener);
  }

  /** Only after the keeper has stopped writing to it. */
  closeKeeperFd(): void {
    closeSync(this.keeperFd);
  }

  #send(command: Command): void {
    this.#channel.send(jsonFrame(command));
  }

  #take(frame: Frame): void {
    if (frame.type === FRAME_OUTPUT) {
      this.#launches.output(decodeOutput(frame.payload));
      return;
    }
    if (frame.type !== FRAME_JSON) throw new FrameError('unknown frame type');
    const event = decodeEvent(frame.payload);
    if (event.type === 'ready') {
      this.#cgroups = event.cgroup;
      this.#onReady?.();
    } else if (event.type === 'groups_only') this.#onGroupsOnly?.(event.tools, event.why);
    else if (event.type === 'ack') for (const listener of this.#ackListeners) listener(event.seq);
    else this.#launches.take(event);
  }

  async #afterExit(exit: SupervisorExit): Promise<void> {
    for (const listener of this.#exitListeners) listener(exit);
    await this.#launches.loseAll(this.#cgroups);
    await removePlaces(this.#places);
    if (this.#cgroups !== null) await emptyCgroupFolder(this.#cgroups);
  }
}
