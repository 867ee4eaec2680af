/**
 * All tools of one supervisor, processes and requests alike: who may start, and who must stop.
 * Invariant: between the judgement that lets a tool start and its spawn (or a request's way to the process that makes
 * it) lies no `await`; once `stopAll` was called nothing starts any more.
 */
import { jsonFrame } from './frames.js';
import { HttpRun } from './http-run.js';
import { type SpawnedTool, spawnTool } from './launch.js';
import type { Lease } from './lease.js';
import { OutputSender } from './output-sender.js';
import type { EndCause, HttpPlan, LaunchFailure, Refusal, ToolEnd, ToolPlan } from './plan.js';
import { Preparer } from './preparer.js';
import type { PrivateFolder } from './private-folders.js';
import { ProcessWatch } from './processes.js';
import type { Hello, Start, SupervisorEvent } from './protocol.js';
import { Requester } from './requester.js';
import { Tool } from './tool.js';
import type { ToolCgroups } from './tool-cgroups.js';

export interface FleetOptions {
  readonly hello: Hello;
  readonly lease: Lease;
  /** Command in front of every tool. */
  readonly wrapper: readonly string[];
  /** Null: tools have no cgroup. */
  readonly cgroups: ToolCgroups | null;
  send(frame: Buffer, onSent?: () => void): void;
  isCongested(): boolean;
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #tools = new Map<number, Tool | HttpRun>();
  readonly #waiting = new Map<number, Start>();
  /** Runs of both maps: a run has one tool at a time, whatever was asked. */
  readonly #runs = new Set<string>();
  readonly #watch = new ProcessWatch();
  readonly #preparer: Preparer;
  readonly #requester: Requester;
  readonly #output: OutputSender;
  readonly #removals = new Set<Promise<void>>();
  #lastTurn: Promise<void> = Promise.resolve();
  #startsUnderWay = 0;
  #isStopping = false;
  #onEmpty: (() => void) | null = null;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#preparer = new Preparer(options.hello);
    this.#output = new OutputSender((frame, onSent) => options.send(frame, onSent));
    this.#requester = new Requester({
      http: options.hello.http,
      wrapper: options.wrapper,
      watch: this.#watch,
      onOutput: (chunk) => this.#output.send(chunk),
      isCongested: () => !this.#mayRead(),
    });
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
    this.#startsUnderWay += 1;
    const { plan } = start;
    const startedOne = 'http' in plan ? this.#startRequest(start, plan) : this.#startOne(start, plan);
    void startedOne.finally(() => {
      this.#startsUnderWay -= 1;
      this.#reportEmpty();
    });
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
    this.#requester.endIfIdle();
    this.#reportEmpty();
  }

  /** KILL to all, now. */
  killAll(): void {
    for (const tool of this.#tools.values()) tool.stop('lost', 0);
    this.#requester.kill();
  }

  /** The replica is gone. */
  discardOutput(): void {
    this.#output.discard();
    for (const tool of this.#tools.values()) tool.discardOutput();
  }

  async #startRequest(start: Start, plan: HttpPlan): Promise<void> {
    const { key } = start;
    const requester = await this.#requester.ready();
    await this.#nextTurn();
    const isWanted = this.#waiting.delete(key);
    if (!isWanted) return;
    const refusal = this.#refusalOf(start);
    if (refusal !== null) this.#refuse(start, refusal);
    else if ('code' in requester) this.#fail(start, requester);
    else if (requester.isGone)
      this.#fail(start, { code: 'unavailable', detail: 'the process that makes requests ended' });
    else {
      this.#tools.set(key, new HttpRun(start, plan, requester, (end) => this.#ended(start, end)));
      this.#send({ type: 'started', key, pgid: requester.pgid, at: Date.now() });
    }
  }

  async #startOne(start: Start, plan: ToolPlan): Promise<void> {
    const { key } = start;
    const prepared = await this.#preparer.prepare(plan);
    await this.#nextTurn();
    // A stop may have come meanwhile, and was answered.
    const isWanted = this.#waiting.delete(key);
    const refusal = this.#refusalOf(start);
    if (!isWanted || refusal !== null || 'code' in prepared) {
      if (!('code' in prepared)) this.#track(this.#preparer.drop(prepared));
      if (isWanted && refusal !== null) this.#refuse(start, refusal);
      else if (isWanted && 'code' in prepared) this.#fail(start, prepared);
      return;
    }
    const { tool, folder, pipes } = prepared;
    const spawned = await spawnTool(key, tool, this.#options, pipes);
    if ('code' in spawned) {
      this.#track(this.#preparer.giveBack(folder, false));
      this.#fail(start, spawned);
      return;
    }
    this.#tools.set(key, this.#newTool(start, plan, folder, spawned));
    this.#send({ type: 'started', key, pgid: spawned.processes.pgid, at: Date.now() });
  }

  /** One spawn per turn of the event loop: a burst of starts must not hold up reading, stopping and the deadline. */
  #nextTurn(): Promise<void> {
    const turn = this.#lastTurn;
    this.#lastTurn = turn.then(() => new Promise((resolve) => setImmediate(resolve)));
    return turn;
  }

  #newTool(start: Start, plan: ToolPlan, folder: PrivateFolder, spawned: SpawnedTool): Tool {
    const { key } = start;
    return new Tool(spawned, plan.timeoutMs, {
      graceMs: this.#options.hello.graceMs,
      watch: this.#watch,
      onOutput: (source, bytes) => this.#output.send({ key, source, at: Date.now(), bytes }),
      onUnread: (source, reason) => this.#send({ type: 'unread', key, source, reason, at: Date.now() }),
      mayRead: () => this.#mayRead(),
      isFolderUntouched: () => folder.isUntouched(),
      onEnded: (end) => {
        this.#track(this.#preparer.giveBack(folder, spawned.cgroup !== null));
        if (spawned.cgroup !== null) this.#track(spawned.cgroup.remove());
        this.#ended(start, end);
      },
    });
  }

  #ended(start: Start, end: ToolEnd): void {
    this.#tools.delete(start.key);
    this.#runs.delete(start.runId);
    this.#send({ type: 'ended', key: start.key, at: Date.now(), ...end });
    this.#reportEmpty();
  }

  #mayRead(): boolean {
    return this.#output.discards || !this.#options.isCongested();
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

  #track(removing: Promise<void>): void {
    const removal = removing.finally(() => {
      this.#removals.delete(removal);
      this.#reportEmpty();
    });
    this.#removals.add(removal);
  }

  #reportEmpty(): void {
    const isEmpty = this.#tools.size === 0 && this.#removals.size === 0 && this.#startsUnderWay === 0;
    if (!this.#isStopping || !isEmpty) return;
    const onEmpty = this.#onEmpty;
    this.#onEmpty = null;
    if (onEmpty !== null) this.#requester.end(onEmpty);
  }
}
