/**
 * One tool from its spawn to its end. Modes, and what may happen in each:
 *
 *   running    the first process lives.            Left when it exits.
 *   leaving    it exited, others of its group or its cgroup live. They may finish for SETTLE_MS, then TERM, then KILL.
 *              Left when none is; skipped when that is so at once.
 *   draining   no process is left.                 What its pipes still hold is read, credit or not; what its report files
 *                                                  hold, as credit comes. A stop now only ends that wait, after its grace.
 *                                                  Left when the pipes are closed and the files read.
 *   ended      reported, exactly once, after all output.
 *
 * Invariants: the first cause of an end stays; a tool told to stop is never reprieved, a later stop can only bring
 * KILL forward; nothing is signalled once no process was left.
 */
import { creditOf, type Source } from './frames.js';
import type { SpawnedTool } from './launch.js';
import { OutputPipe } from './output.js';
import type { EndCause, ToolEnd } from './plan.js';
import type { Processes, ProcessWatch } from './processes.js';
import { INITIAL_CREDIT_BYTES, type ReportSource, type UnreadReason } from './protocol.js';
import { ReportFiles } from './reports.js';

/** A last `tee` or process substitution ends by itself a moment after the shell; killed at once, it loses its output. */
const SETTLE_MS = 250;
const LEFTOVER_GRACE_MS = 2_000;
/** KILL is sent again: a group nobody may signal now (a setuid program) may change. */
const KILL_AGAIN_MS = 1_000;
/** Node fires longer timers at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface ToolPorts {
  readonly graceMs: number;
  readonly watch: ProcessWatch;
  /** The bytes are valid during the call only. */
  onOutput(source: Source, bytes: Buffer): void;
  /** Why a report was not read, or not to its end; behind the output that was read of it. */
  onUnread(source: ReportSource, reason: UnreadReason): void;
  /** False while the replica does not take output; `resumeOutput` follows. */
  mayRead(): boolean;
  /** Whether nothing was ever made in its private folder. */
  isFolderUntouched(): Promise<boolean>;
  onEnded(end: ToolEnd): void;
}

export class Tool {
  readonly #processes: Processes;
  readonly #ports: ToolPorts;
  readonly #pipes: readonly OutputPipe[];
  readonly #reports: ReportFiles;
  #mode: 'running' | 'leaving' | 'draining' | 'ended' = 'running';
  #openPipes = 2;
  #areReportsRead = false;
  #credit = INITIAL_CREDIT_BYTES;
  #cause: EndCause | null = null;
  #exit: { readonly exitCode: number | null; readonly signal: string | null } = { exitCode: null, signal: null };
  #leftovers = false;
  #killedAfterMs: number | null = null;
  #killAtMs = Number.POSITIVE_INFINITY;
  #killTimer: NodeJS.Timeout | undefined;
  #settleTimer: NodeJS.Timeout | undefined;
  #hurryTimer: NodeJS.Timeout | undefined;
  #timeoutTimer: NodeJS.Timeout | undefined;

  /** Must be made in the turn of the spawn, or the exit could be missed. */
  constructor(spawned: SpawnedTool, timeoutMs: number | null, ports: ToolPorts) {
    this.#processes = spawned.processes;
    this.#ports = ports;
    this.#pipes = spawned.outputFds.map((fd, index) => this.#openPipe(fd, index === 0 ? 1 : 2));
    this.#reports = new ReportFiles(spawned.reports, {
      onBytes: (source, bytes) => this.#take(source, bytes),
      // A few bytes, once for each file: it needs no credit.
      onUnread: (source, reason) => ports.onUnread(source, reason),
      canRead: () => this.#canRead(),
      isFolderUntouched: () => ports.isFolderUntouched(),
    });
    spawned.child.once('exit', (exitCode, signal) => this.#leaderExited(exitCode, signal));
    if (timeoutMs !== null) this.#armTimeout(performance.now() + timeoutMs);
  }

  /** TERM to all its processes, and KILL after `graceMs`; with 0 only KILL, at once. */
  stop(cause: EndCause, graceMs: number): void {
    if (this.#mode === 'ended') return;
    if (graceMs <= 0) this.#reports.hurry();
    if (this.#mode === 'draining') {
      this.#hurryTimer ??= setTimeout(() => this.#reports.hurry(), graceMs);
      return;
    }
    const isFirst = this.#cause === null;
    this.#cause ??= cause;
    if (isFirst && graceMs > 0) this.#processes.term();
    this.#killIn(graceMs);
  }

  /** The replica has room for this many more bytes. */
  grant(bytes: number): void {
    const wasSpent = this.#credit <= 0;
    this.#credit += bytes;
    if (wasSpent && this.#credit > 0) this.resumeOutput();
  }

  /** Nobody wants the output any more: it is read so that the tool can end, however much it is. */
  discardOutput(): void {
    this.#credit = Number.POSITIVE_INFINITY;
    this.#reports.giveUp();
    this.resumeOutput();
  }

  resumeOutput(): void {
    if (!this.#canRead()) return;
    // They first, or a tool that talks without a pause would use up all credit before its reports get any.
    this.#reports.resume();
    for (const pipe of this.#pipes) pipe.resume();
  }

  #openPipe(fd: number, source: Source): OutputPipe {
    return new OutputPipe(fd, {
      onBytes: (bytes) => {
        this.#take(source, bytes);
        return this.#canRead();
      },
      onClosed: () => {
        this.#openPipes -= 1;
        this.#endWhenDrained();
      },
    });
  }

  #take(source: Source, bytes: Buffer): void {
    this.#credit -= creditOf(bytes.length);
    this.#ports.onOutput(source, bytes);
  }

  #canRead(): boolean {
    return this.#credit > 0 && this.#ports.mayRead();
  }

  #armTimeout(atMs: number): void {
    const leftMs = atMs - performance.now();
    this.#timeoutTimer = setTimeout(
      () => (leftMs > LONGEST_TIMER_MS ? this.#armTimeout(atMs) : this.stop('timeout', this.#ports.graceMs)),
      Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS),
    );
  }

  #leaderExited(exitCode: number | null, signal: string | null): void {
    clearTimeout(this.#timeoutTimer);
    this.#exit = { exitCode, signal };
    this.#cause ??= 'self';
    this.#mode = 'leaving';
    this.#ports.watch.whenEmpty(this.#processes, () => this.#noneLeft());
    // A group that was told to stop keeps its whole grace period, also when the shell in front of it died at once.
    if (this.#mode === 'leaving' && this.#cause === 'self') {
      this.#settleTimer = setTimeout(() => this.#endLeftovers(), SETTLE_MS);
    }
  }

  #endLeftovers(): void {
    this.#leftovers = true;
    this.#processes.term();
    this.#killIn(Math.min(this.#ports.graceMs, LEFTOVER_GRACE_MS));
  }

  #noneLeft(): void {
    clearTimeout(this.#settleTimer);
    clearTimeout(this.#killTimer);
    this.#mode = 'draining';
    for (const pipe of this.#pipes) pipe.readRest();
    void this.#reports.readRest().then(() => {
      this.#areReportsRead = true;
      this.#endWhenDrained();
    });
  }

  #endWhenDrained(): void {
    if (this.#mode !== 'draining' || this.#openPipes > 0 || !this.#areReportsRead) return;
    this.#mode = 'ended';
    clearTimeout(this.#hurryTimer);
    const facts = { leftovers: this.#leftovers, killedAfterMs: this.#killedAfterMs, verdict: null };
    this.#ports.onEnded({ ...this.#exit, cause: this.#cause ?? 'self', ...facts });
  }

  #killIn(graceMs: number): void {
    const atMs = performance.now() + graceMs;
    if (atMs >= this.#killAtMs) return;
    this.#killAtMs = atMs;
    clearTimeout(this.#killTimer);
    if (graceMs <= 0) this.#kill();
    else this.#killTimer = setTimeout(() => this.#killAfter(graceMs), graceMs);
  }

  #killAfter(graceMs: number): void {
    // The watch may not have seen yet that all are gone.
    if (!this.#processes.isDead()) this.#killedAfterMs = Math.round(graceMs);
    this.#kill();
  }

  #kill(): void {
    this.#processes.kill();
    this.#killTimer = setTimeout(() => this.#kill(), KILL_AGAIN_MS);
  }
}
