/** Whether this replica should get requests: asked when called, each answer shared for a second, never later than one. */
import { knownMigrations } from '../platform/db/migrate.js';
import type { Platform } from '../platform/platform.js';
import { probe } from './readiness.sql.js';

const SHARED_FOR_MS = 1_000;
const ANSWER_WITHIN_MS = 900;

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, or what is wrong. */
  readonly checks: { readonly database: string; readonly schema: string; readonly draining: string };
}

export class ReadinessService {
  private stopping = false;
  private shared: { readonly answer: Promise<Readiness>; readonly untilMs: number } | undefined;

  constructor(private readonly platform: Platform) {}

  /** From now on not ready: the process is stopping. */
  noteStopping(): void {
    this.stopping = true;
    this.shared = undefined;
  }

  check(): Promise<Readiness> {
    const now = this.platform.timing.monotonicMs();
    if (!this.shared || this.shared.untilMs <= now) {
      this.shared = { answer: this.ask(), untilMs: now + SHARED_FOR_MS };
    }
    return this.shared.answer;
  }

  private async ask(): Promise<Readiness> {
    const draining = this.stopping ? 'stopping' : 'ok';
    const late = this.platform.timing
      .delay(ANSWER_WITHIN_MS)
      .then(() => ({ database: 'no answer in time', schema: 'unknown' }));
    const facts = await Promise.race([this.look(), late]);
    const checks = { ...facts, draining };
    return { ready: Object.values(checks).every((check) => check === 'ok'), checks };
  }

  private async look(): Promise<{ database: string; schema: string }> {
    try {
      const newest = (await knownMigrations()).at(-1) ?? '';
      const { writable, applied } = await probe(this.platform.pools.read, newest);
      return { database: writable ? 'ok' : 'read-only', schema: applied ? 'ok' : `migration ${newest} is missing` };
    } catch {
      return { database: 'unreachable', schema: 'unknown' };
    }
  }
}
