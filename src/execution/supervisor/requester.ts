/**
 * The supervisor's side of the requester: the one process, in a group of its own, that makes the requests of all runs.
 * It is started with the first of them, and again after it died. Invariant: a request that was handed over is told as
 * gone only when the requester said so, or when its process group is empty.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Channel } from './channel.js';
import {
  decodeOutput,
  FRAME_JSON,
  FRAME_OUTPUT,
  type Frame,
  FrameError,
  jsonFrame,
  MAX_EVENT_BYTES,
  type OutputChunk,
} from './frames.js';
import type { LaunchFailure, Verdict } from './plan.js';
import { Processes, type ProcessWatch } from './processes.js';
import type { HttpSettings } from './protocol.js';
import { decodeRequesterEvent, type MakeRequest, type RequesterCommand } from './requester-protocol.js';

const READY_LIMIT_MS = 15_000;
const KILL_AGAIN_MS = 250;

export interface RequesterOptions {
  readonly http: HttpSettings;
  /** Command in front of it. */
  readonly wrapper: readonly string[];
  readonly watch: ProcessWatch;
  /** The bytes are valid during the call only. */
  onOutput(chunk: OutputChunk): void;
  /** Nobody takes output now; `resumeOutput` follows. */
  isCongested(): boolean;
}

/** Exactly one of them is called, once. */
export interface RequestHandlers {
  onDone(verdict: Verdict): void;
  /** As it was told to; nothing of it is under way. */
  onAborted(): void;
  /** The process is gone, whatever became of the request. */
  onLost(): void;
}

/** Starts it when it is needed and not there. */
export class Requester {
  readonly #options: RequesterOptions;
  #current: RequesterProcess | null = null;
  /** Those of which something may be alive, the current one among them. */
  readonly #processes = new Set<RequesterProcess>();

  constructor(options: RequesterOptions) {
    this.#options = options;
  }

  /** The process, ready to take requests. */
  async ready(): Promise<RequesterProcess | LaunchFailure> {
    if (this.#current === null || this.#current.isGone) {
      const started = startProcess(this.#options);
      if ('code' in started) return started;
      this.#current = started;
      this.#processes.add(started);
      started.whenEmpty(() => this.#processes.delete(started));
    }
    const process = this.#current;
    if (await process.isReady) return process;
    return { code: 'unavailable', detail: 'the process that makes requests did not start' };
  }

  resumeOutput(): void {
    this.#current?.resumeOutput();
  }

  kill(): void {
    this.#current?.kill();
  }

  /** Ends it when it makes no request; one that is only starting would be waited for. */
  endIfIdle(): void {
    if (this.#current?.isIdle) this.#current.kill();
  }

  /** Ends it, and calls `onGone` when no group of it or of one before it is left. */
  end(onGone: () => void): void {
    const left = [...this.#processes];
    let leftCount = left.length;
    if (leftCount === 0) onGone();
    for (const process of left) {
      process.kill();
      process.whenEmpty(() => {
        leftCount -= 1;
        if (leftCount === 0) onGone();
      });
    }
  }
}

function startProcess(options: RequesterOptions): RequesterProcess | LaunchFailure {
  const entry = fileURLToPath(new URL('../requester/requester.main.js', import.meta.url));
  // Threads resolve names: a few that hang must not hold up the others.
  const { caFile } = options.http;
  const authorities = caFile === null ? {} : { NODE_EXTRA_CA_CERTS: caFile };
  const env = { UV_THREADPOOL_SIZE: '16', MALLOC_ARENA_MAX: '1', ...authorities };
  const flags = ['--v8-pool-size=1', '--max-semi-space-size=2'];
  const [command = '', ...args] = [...options.wrapper, process.execPath, ...flags, entry];
  const stdio = ['ignore', 'ignore', 'inherit', 'pipe'] as const;
  const child = spawn(command, args, { cwd: '/', env, stdio: [...stdio], detached: true });
  const socket = child.stdio[3];
  if (child.pid !== undefined && socket instanceof Socket) {
    return new RequesterProcess(child, child.pid, socket, options);
  }
  child.once('error', () => {});
  return { code: 'unavailable', detail: 'cannot start the process that makes requests' };
}

export class RequesterProcess {
  /** No cgroup of its own: it is in the supervisor's. */
  readonly #processes: Processes;
  /** False when it died first, or took too long. */
  readonly isReady: Promise<boolean>;
  readonly #options: RequesterOptions;
  readonly #channel: Channel;
  readonly #open = new Map<number, RequestHandlers>();
  /** Those of the open ones that were told to abort. */
  readonly #aborting = new Set<number>();
  readonly #onEmpty: (() => void)[] = [];
  #onReady: (isReady: boolean) => void = () => {};
  #isGone = false;
  #isEmpty = false;
  #killTimer: NodeJS.Timeout | undefined;

  constructor(child: ChildProcess, pgid: number, socket: Socket, options: RequesterOptions) {
    this.#processes = new Processes(pgid, null);
    this.#options = options;
    this.isReady = new Promise((resolve) => {
      this.#onReady = resolve;
    });
    const limit = setTimeout(() => this.kill(), READY_LIMIT_MS);
    void this.isReady.then(() => clearTimeout(limit));
    this.#channel = new Channel(socket, MAX_EVENT_BYTES, {
      onFrame: (frame) => this.#take(frame),
      onClosed: () => this.kill(),
    });
    child.once('exit', () => options.watch.whenEmpty(this.#processes, () => this.#emptied()));
    this.#send({ type: 'hello', http: options.http });
  }

  get pgid(): number {
    return this.#processes.pgid;
  }

  /** It takes no requests any more. */
  get isGone(): boolean {
    return this.#isGone;
  }

  get isIdle(): boolean {
    return this.#open.size === 0;
  }

  /** Hands a request over; not to one that is gone. */
  request(request: MakeRequest, handlers: RequestHandlers): void {
    this.#open.set(request.key, handlers);
    this.#send(request);
  }

  grant(key: number, bytes: number): void {
    this.#send({ type: 'credit', key, bytes });
  }

  abort(key: number): void {
    // What it still sends must come through, or it could not say that it obeyed.
    if (this.#open.has(key)) this.#aborting.add(key);
    this.#channel.resume();
    this.#send({ type: 'abort', key });
  }

  resumeOutput(): void {
    this.#channel.resume();
  }

  /** Ends the process, and with it every request it has. */
  kill(): void {
    this.#isGone = true;
    this.#onReady(false);
    if (this.#isEmpty) return;
    this.#processes.kill();
    clearTimeout(this.#killTimer);
    this.#killTimer = setTimeout(() => this.kill(), KILL_AGAIN_MS);
  }

  whenEmpty(onEmpty: () => void): void {
    if (this.#isEmpty) onEmpty();
    else this.#onEmpty.push(onEmpty);
  }

  #take(frame: Frame): void {
    if (frame.type === FRAME_OUTPUT) {
      const chunk = decodeOutput(frame.payload);
      if (this.#open.has(chunk.key)) this.#options.onOutput(chunk);
      if (this.#options.isCongested() && this.#aborting.size === 0) this.#channel.pause();
      return;
    }
    if (frame.type !== FRAME_JSON) throw new FrameError('unknown frame type');
    const event = decodeRequesterEvent(frame.payload);
    if (event.type === 'ready') {
      this.#onReady(true);
      return;
    }
    const handlers = this.#open.get(event.key);
    this.#open.delete(event.key);
    this.#aborting.delete(event.key);
    if (event.type === 'done') handlers?.onDone(event.verdict);
    else handlers?.onAborted();
  }

  #emptied(): void {
    this.#isGone = true;
    this.#isEmpty = true;
    clearTimeout(this.#killTimer);
    this.#onReady(false);
    const lost = [...this.#open.values()];
    this.#open.clear();
    for (const handlers of lost) handlers.onLost();
    for (const onEmpty of this.#onEmpty) onEmpty();
  }

  #send(command: RequesterCommand): void {
    this.#channel.send(jsonFrame(command));
  }
}
