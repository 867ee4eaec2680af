/**
 * A supervisor and its tools as the real ones keep their word: a tool is told to stop when the deadline has come,
 * counted from when the last renewal was *sent*, or when the replica died; it is gone at most a grace later. Tools
 * outlive their replica here as they may there, and what they did is on record for the laws.
 */
import type { Executor } from '../../src/execution/executor.js';
import type { LaunchHandlers } from '../../src/execution/supervisor/launches.js';
import type { EndCause, StopCause } from '../../src/execution/supervisor/plan.js';
import type { Wire } from './wire.js';
import type { World } from './world.js';

export type SupervisorPort = ConstructorParameters<typeof Executor>[0]['supervisor'];
type Launch = Parameters<SupervisorPort['launch']>[0];

export interface Limits {
  readonly deadlineMs: number;
  readonly graceMs: number;
}

export interface Tool {
  readonly key: number;
  /** A TypeID. */
  readonly run: string;
  readonly fence: number;
  readonly incarnation: string;
  readonly handlers: LaunchHandlers;
  /** It stops only when it is killed. */
  isStubborn: boolean;
  /** Why it was told to stop, once it was; and when it is killed then. */
  stop: { readonly cause: EndCause; readonly killAtMs: number } | undefined;
  isGone: boolean;
}

export class Machine implements SupervisorPort {
  readonly tools = new Map<number, Tool>();
  private renewalSentAtMs: number | undefined;
  private mode: 'open' | 'stopping' | 'gone' = 'open';
  private onGone: () => void = () => undefined;
  /** Resolves when it was asked to shut down, or died, and no tool is left. */
  readonly gone = new Promise<void>((resolve) => {
    this.onGone = resolve;
  });
  private launched = 0;

  constructor(
    private readonly world: World,
    private readonly wire: Wire,
    readonly incarnation: string,
    private readonly limits: Limits,
    private readonly onStart: (tool: Tool) => void,
  ) {}

  /** Tools that have not ended, told to stop or not. */
  get living(): Tool[] {
    return [...this.tools.values()].filter((tool) => !tool.isGone);
  }

  /** How long a tool that is started now may run. */
  get leftMs(): number {
    return this.renewalSentAtMs === undefined ? 0 : this.renewalSentAtMs + this.limits.deadlineMs - this.world.nowMs;
  }

  /** What the keeper writes: forward only. */
  extend(sentAtMs: number): void {
    this.renewalSentAtMs = Math.max(sentAtMs, this.renewalSentAtMs ?? 0);
  }

  launch(launch: Launch, handlers: LaunchHandlers): void {
    const refusal =
      this.mode !== 'open' ? 'stopping' : launch.incarnation !== this.incarnation ? 'incarnation' : undefined;
    const refused = refusal ?? (this.leftMs <= 0 ? ('deadline' as const) : undefined);
    if (refused !== undefined) {
      this.world.tell(() => `    no tool for ${launch.runId}: ${refused}`);
      queueMicrotask(() => this.wire.deliver(() => handlers.onRefused(refused)));
      return;
    }
    const { key, runId, fence } = launch;
    this.launched += 1;
    const isStubborn = this.launched % 3 === 0;
    const tool: Tool = {
      key,
      run: runId,
      fence,
      incarnation: this.incarnation,
      handlers,
      isStubborn,
      stop: undefined,
      isGone: false,
    };
    this.tools.set(key, tool);
    this.world.tell(() => `    tool of ${runId} starts on ${this.wire.name}, fence ${fence}`);
    this.onStart(tool);
    queueMicrotask(() => this.wire.deliver(() => handlers.onStarted({ pgid: key, at: this.world.nowMs })));
  }

  grantCredit(): void {}

  stop(key: number, cause: StopCause): void {
    const tool = this.tools.get(key);
    if (tool) this.tellToStop(tool, cause);
  }

  kill(key: number): void {
    const tool = this.tools.get(key);
    if (tool && !tool.isGone) this.endOf(tool, tool.stop?.cause ?? 'cancel', 'SIGKILL');
  }

  /** Bytes that a tool writes to one of its streams (1, 2) or files (3, 4). */
  write(tool: Tool, source: 1 | 2 | 3 | 4, text: string): void {
    const chunk = { key: tool.key, source, at: this.world.nowMs, bytes: Buffer.from(text) };
    this.wire.deliver(() => tool.handlers.onOutput(chunk));
  }

  /** A tool ends by itself. */
  exit(tool: Tool, exitCode: number): void {
    this.endOf(tool, tool.stop?.cause ?? 'self', exitCode);
  }

  /** Ends every tool with its grace, then itself. */
  shutdown(): Promise<void> {
    this.leave('drain');
    return this.gone;
  }

  /** Its process died, and the replica kills what it had started: what it can say is that they are gone. */
  die(): void {
    this.mode = 'stopping';
    for (const tool of this.living) this.endOf(tool, 'lost', null);
    this.leaveIfEmpty();
  }

  /** The replica died: the pipe tells. */
  orphan(): void {
    this.leave('lost');
  }

  /** Called before time goes on to `untilMs`: what happens on the way. */
  pass(untilMs: number): void {
    const deadlineMs = (this.renewalSentAtMs ?? Number.NEGATIVE_INFINITY) + this.limits.deadlineMs;
    for (const tool of this.living) {
      if (deadlineMs <= untilMs) this.tellToStop(tool, 'deadline', deadlineMs);
      if (!tool.isGone && tool.stop && tool.stop.killAtMs <= untilMs) this.endOf(tool, tool.stop.cause, 'SIGKILL');
    }
  }

  private leave(cause: StopCause): void {
    if (this.mode !== 'open') return;
    this.mode = 'stopping';
    for (const tool of this.living) this.tellToStop(tool, cause);
    this.leaveIfEmpty();
  }

  private leaveIfEmpty(): void {
    if (this.mode === 'open' || this.living.length > 0) return;
    this.mode = 'gone';
    this.wire.deliver(() => this.onGone());
  }

  private tellToStop(tool: Tool, cause: EndCause, atMs = this.world.nowMs): void {
    if (tool.isGone || tool.stop) return;
    tool.stop = { cause, killAtMs: atMs + this.limits.graceMs };
    this.world.tell(() => `    tool of ${tool.run} is told to stop: ${cause}`);
    if (!tool.isStubborn) this.endOf(tool, cause, 'SIGTERM');
  }

  private endOf(tool: Tool, cause: EndCause, how: number | 'SIGTERM' | 'SIGKILL' | null): void {
    tool.isGone = true;
    this.world.tell(() => `    tool of ${tool.run} is gone: ${cause}, ${how}`);
    const exitCode = typeof how === 'number' ? how : null;
    const signal = typeof how === 'string' ? how : null;
    const killedAfterMs = how === 'SIGKILL' ? this.limits.graceMs : null;
    const end = { exitCode, signal, cause, leftovers: false, killedAfterMs, verdict: null, at: this.world.nowMs };
    this.wire.deliver(() => tool.handlers.onEnded(end));
    this.leaveIfEmpty();
  }
}
