/**
 * What the replica asked a supervisor for and what became of it.
 * Invariant: every launch gets exactly one of refused, failed or ended, last; a loss is told only after all processes are gone.
 */

import type { OutputChunk } from './frames.js';
import type { LaunchFailure, Plan, Refusal, ToolEnd } from './plan.js';
import { Processes, ProcessWatch } from './processes.js';
import type { SupervisorEvent, Unread } from './protocol.js';
import { toolCgroup } from './tool-cgroups.js';

const KILL_AGAIN_MS = 250;

export interface Launch {
  /** Chosen by the caller, never used again in the life of this supervisor. */
  readonly key: number;
  readonly incarnation: string;
  readonly runId: string;
  readonly fence: number;
  readonly plan: Plan;
}

/** `started` comes before output and `unread`, they before `ended`; exactly one of ended, failed and refused comes, last. */
export interface LaunchHandlers {
  /** `at` is in milliseconds of the epoch, here and below. */
  onStarted(started: { readonly pgid: number; readonly at: number }): void;
  /** Call `grantCredit` once the bytes are taken care of, or the tool stands still. */
  onOutput(chunk: OutputChunk): void;
  /** In order with the output: behind all that was read of that file before. */
  onUnread(unread: Unread): void;
  onEnded(end: ToolEnd & { readonly at: number }): void;
  /** No tool was started. */
  onFailed(failure: LaunchFailure): void;
  /** No tool was started. */
  onRefused(reason: Refusal): void;
}

/** Events that name a launch. */
export type LaunchEvent = Exclude<SupervisorEvent, { type: 'ready' | 'groups_only' | 'ack' }>;

interface Open {
  readonly handlers: LaunchHandlers;
  /** Null until it is known to have started. */
  pgid: number | null;
}

export class Launches {
  readonly #open = new Map<number, Open>();
  readonly #watch = new ProcessWatch();

  /** Throws when the key is in use. */
  add(key: number, handlers: LaunchHandlers): void {
    if (this.#open.has(key)) throw new Error(`key ${key} is in use`);
    this.#open.set(key, { handlers, pgid: null });
  }

  /** Groups that were told to have started and not to have ended. */
  groups(): number[] {
    return [...this.#open.values()].flatMap(({ pgid }) => (pgid === null ? [] : [pgid]));
  }

  output(chunk: OutputChunk): void {
    this.#open.get(chunk.key)?.handlers.onOutput(chunk);
  }

  /** Hands the event to its launch; one that is not known is passed over. */
  take(event: LaunchEvent): void {
    const launch = this.#open.get(event.key);
    if (launch === undefined) return;
    if (event.type === 'started') {
      launch.pgid = event.pgid;
      launch.handlers.onStarted({ pgid: event.pgid, at: event.at });
      return;
    }
    if (event.type === 'unread') {
      launch.handlers.onUnread({ source: event.source, reason: event.reason, at: event.at });
      return;
    }
    this.#open.delete(event.key);
    switch (event.type) {
      case 'refused':
        launch.handlers.onRefused(event.reason);
        break;
      case 'failed':
        launch.handlers.onFailed({ code: event.code, detail: event.detail });
        break;
      case 'ended': {
        const { type: _, key: __, ...end } = event;
        launch.handlers.onEnded(end);
      }
    }
  }

  /** The supervisor is gone: kills what is left and tells each end as `lost`. Resolves when all were told. */
  async loseAll(cgroups: string | null): Promise<void> {
    await Promise.all([...this.#open].map(([key, launch]) => this.#lose(key, launch, cgroups)));
  }

  async #lose(key: number, launch: Open, cgroups: string | null): Promise<void> {
    const cgroup = cgroups === null ? null : toolCgroup(cgroups, key);
    if (launch.pgid !== null) await this.#killUntilEmpty(new Processes(launch.pgid, cgroup));
    // It may have started without a word of it having come.
    else await cgroup?.empty();
    this.#open.delete(key);
    const end = { exitCode: null, signal: null, leftovers: false, killedAfterMs: null, verdict: null } as const;
    launch.handlers.onEnded({ ...end, cause: 'lost', at: Date.now() });
  }

  /** However long it takes: an end told earlier would be a lie. */
  async #killUntilEmpty(processes: Processes): Promise<void> {
    const again = setInterval(() => processes.kill(), KILL_AGAIN_MS);
    processes.kill();
    await new Promise<void>((resolve) => this.#watch.whenEmpty(processes, resolve));
    clearInterval(again);
  }
}
