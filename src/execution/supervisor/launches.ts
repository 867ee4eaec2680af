/**
 * What the replica asked a supervisor for and what became of it.
 * Invariant: every launch gets exactly one of refused, failed or ended, last; a loss is told only after the group is gone.
 */
import type { OutputChunk } from './frames.js';
import { GroupWatch, signalGroup } from './groups.js';
import type { LaunchFailure, Plan, Refusal, ToolEnd } from './plan.js';
import type { SupervisorEvent, Unread } from './protocol.js';

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
export type LaunchEvent = Exclude<SupervisorEvent, { type: 'ready' | 'ack' }>;

interface Open {
  readonly handlers: LaunchHandlers;
  /** Null until it is known to have started. */
  pgid: number | null;
}

export class Launches {
  readonly #open = new Map<number, Open>();
  readonly #groups = new GroupWatch();

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
        const { exitCode, signal, cause, leftovers, verdict, at } = event;
        launch.handlers.onEnded({ exitCode, signal, cause, leftovers, verdict, at });
      }
    }
  }

  /** The supervisor is gone: kills what is left and tells each end as `lost`. Resolves when all were told. */
  async loseAll(): Promise<void> {
    await Promise.all([...this.#open].map(([key, launch]) => this.#lose(key, launch)));
  }

  async #lose(key: number, launch: Open): Promise<void> {
    if (launch.pgid !== null) await this.#killUntilEmpty(launch.pgid);
    this.#open.delete(key);
    const end = { exitCode: null, signal: null, leftovers: false, verdict: null } as const;
    launch.handlers.onEnded({ ...end, cause: 'lost', at: Date.now() });
  }

  /** However long it takes: an end told earlier would be a lie. */
  async #killUntilEmpty(pgid: number): Promise<void> {
    const again = setInterval(() => signalGroup(pgid, 'SIGKILL'), KILL_AGAIN_MS);
    signalGroup(pgid, 'SIGKILL');
    await new Promise<void>((resolve) => this.#groups.whenEmpty(pgid, resolve));
    clearInterval(again);
  }
}
