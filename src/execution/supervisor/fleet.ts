/**
 * All tools of one supervisor: who may start, and who must stop.
 * Invariant: between the judgement that lets a tool start and its spawn lies no `await`; once `stopAll` was called
 * nothing starts any more.
 */
import { join } from 'node:path';
import { FifoPool } from './fifo.js';
import { removeTree } from './folder.js';
import { jsonFrame, outputFrame } from './frames.js';
import { GroupWatch } from './groups.js';
import { failureOf, PIPES_PER_TOOL, prepareTool, spawnTool } from './launch.js';
import type { Lease } from './lease.js';
import type { EndCause, LaunchFailure, Refusal } from './plan.js';
import type { Hello, Start, SupervisorEvent } from './protocol.js';
import { Tool } from './tool.js';

export interface FleetOptions {
  readonly hello: Hello;
  readonly lease: Lease;
  /** Command in front of every tool. */
  readonly wrapper: readonly string[];
  send(frame: Buffer): void;
  isCongested(): boolean;
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #tools = new Map<number, Tool>();
  readonly #waiting = new Map<number, Start>();
  /** Runs of both maps: a run has one tool at a time, whatever was asked. */
  readonly #runs = new Set<string>();
  readonly #groups = new GroupWatch();
  readonly #fifos: FifoPool;
  readonly #removals = new Set<Promise<void>>();
  #isStarting = false;
  #isStopping = false;
  #discards = false;
  #onEmpty: (() => void) | null = null;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#fifos = new FifoPool(options.hello.root);
  }

  /** Whether the key names a tool that has not ended. */
  has(key: number): boolean {
    return this.#tools.has(key) || this.#waiting.has(key);
  }

  /** Answers with `started`, `refused` or `failed`. */
  start(start: Start): void {
    if (this.#runs.has(start.runId)) {
      this.#send({ type: 'failed', key: start.key, code: 'internal', detail: 'this run has a tool already' });
      return;
    }
    this.#runs.add(start.runId);
    this.#waiting.set(start.key, start);
    if (!this.#isStarting) this.#startWaiting();
  }

  /** A key that is not known has ended already. */
  stop(key: number, cause: EndCause, graceMs: number): void {
    this.#tools.get(key)?.stop(cause, graceMs);
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) this.#refuse(waiting, 'stopping');
  }

  grant(key: number, bytes: number): void {
    this.#tools.get(key)?.grant(bytes);
  }

  resumeOutput(): void {
    for (const tool of this.#tools.values()) tool.resumeOutput();
  }

  /** Stops tools whose deadline has passed; KILL comes `graceMs` after the deadline, however late it was noticed. */
  enforceDeadline(): void {
    const { isExpired, overdueMs } = this.#options.lease.judgeNow();
    if (!isExpired) return;
    const graceMs = Math.max(0, this.#options.hello.graceMs - overdueMs);
    for (const tool of this.#tools.values()) tool.stop('deadline', graceMs);
  }

  /** Stops everything for good; calls `onEmpty` when no group is left and the folders are gone. */
  stopAll(cause: EndCause, onEmpty: () => void): void {
    this.#isStopping = true;
    this.#onEmpty ??= onEmpty;
    for (const start of this.#waiting.values()) this.#refuse(start, 'stopping');
    for (const tool of this.#tools.values()) tool.stop(cause, this.#options.hello.graceMs);
    this.#reportEmpty();
  }

  /** KILL to all, now. */
  killAll(): void {
    for (const tool of this.#tools.values()) tool.stop('lost', 0);
  }

  /** The replica is gone. */
  discardOutput(): void {
    this.#discards = true;
    for (const tool of this.#tools.values()) tool.discardOutput();
  }

  /** One spawn per turn of the event loop: a burst of starts must not hold up reading, stopping and the deadline. */
  async #startWaiting(): Promise<void> {
    this.#isStarting = true;
    try {
      for (const start of this.#waiting.values()) {
        await this.#startOne(start);
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      this.#isStarting = false;
      this.#reportEmpty();
    }
  }

  async #startOne(start: Start): Promise<void> {
    const { key, plan } = start;
    let pipes: string[];
    try {
      pipes = await this.#fifos.take(PIPES_PER_TOOL);
    } catch (error) {
      if (this.#waiting.has(key)) this.#fail(start, failureOf(error, 'make pipes'));
      return;
    }
    // A stop may have come meanwhile, and was answered.
    if (!this.#waiting.delete(key)) return this.#fifos.giveBack(pipes);
    const folder = join(this.#options.hello.root, `t${key}`);
    const prepared = prepareTool(plan, folder);
    const refusal = this.#refusalOf(start);
    if ('code' in prepared || refusal !== null) {
      this.#fifos.giveBack(pipes);
      this.#remove(folder);
      if (refusal !== null) return this.#refuse(start, refusal);
      return 'code' in prepared ? this.#fail(start, prepared) : undefined;
    }
    const spawned = await spawnTool(prepared, this.#options.wrapper, pipes);
    if ('code' in spawned) {
      this.#remove(folder);
      return this.#fail(start, spawned);
    }
    const tool = new Tool(spawned, plan.timeoutMs, {
      graceMs: this.#options.hello.graceMs,
      groups: this.#groups,
      onOutput: (stream, bytes) => {
        if (!this.#discards) this.#options.send(outputFrame({ key, stream, at: Date.now(), bytes }));
      },
      mayRead: () => this.#discards || !this.#options.isCongested(),
      onEnded: (end) => {
        this.#tools.delete(key);
        this.#runs.delete(start.runId);
        this.#remove(folder);
        this.#send({ type: 'ended', key, at: Date.now(), ...end });
        this.#reportEmpty();
      },
    });
    this.#tools.set(key, tool);
    this.#send({ type: 'started', key, pgid: spawned.pgid, at: Date.now() });
    // Everything may have been told to stop between spawn and here.
    if (this.#discards) tool.discardOutput();
    if (this.#isStopping) tool.stop('lost', this.#options.hello.graceMs);
  }

  #refusalOf(start: Start): Refusal | null {
    if (this.#isStopping) return 'stopping';
    if (start.incarnation !== this.#options.hello.incarnation) return 'incarnation';
    return this.#options.lease.judgeNow().isExpired ? 'deadline' : null;
  }

  #refuse(start: Start, reason: Refusal): void {
    this.#forget(start);
    this.#send({ type: 'refused', key: start.key, reason });
  }

  #fail(start: Start, failure: LaunchFailure): void {
    this.#forget(start);
    this.#send({ type: 'failed', key: start.key, ...failure });
  }

  #forget(start: Start): void {
    this.#waiting.delete(start.key);
    this.#runs.delete(start.runId);
  }

  #send(event: SupervisorEvent): void {
    this.#options.send(jsonFrame(event));
  }

  #remove(folder: string): void {
    const removal = removeTree(folder).finally(() => {
      this.#removals.delete(removal);
      this.#reportEmpty();
    });
    this.#removals.add(removal);
  }

  #reportEmpty(): void {
    const isEmpty = this.#tools.size === 0 && this.#removals.size === 0 && !this.#isStarting;
    if (!this.#isStopping || !isEmpty) return;
    const onEmpty = this.#onEmpty;
    this.#onEmpty = null;
    onEmpty?.();
  }
}
