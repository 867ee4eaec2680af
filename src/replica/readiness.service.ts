/** Whether this process should get requests: answered at once from what was found last. */
import type { Traffic } from '../platform/http/traffic.js';
import type { Platform } from '../platform/platform.js';
import { registerReadinessMetrics } from './readiness.metrics.js';
import { type Checks, isReady, LOOK_AGAIN_MS } from './readiness.rules.js';
import { DatabaseWatch } from './readiness-watch.js';

/** Only the very first look is waited for. */
const FIRST_ANSWER_WITHIN_MS = 900;

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, or what is wrong. */
  readonly checks: Checks;
}

export class ReadinessService {
  private readonly watch: DatabaseWatch;

  constructor(
    private readonly platform: Platform,
    private readonly traffic: Traffic,
  ) {
    this.watch = new DatabaseWatch(platform);
    registerReadinessMetrics(platform.metrics, () => this.watch.found);
  }

  /** Begins to look at the database. */
  start(): void {
    this.watch.start();
  }

  /** A statement that this process sent anyway has told whether the database takes writes. */
  noteWritable(writable: boolean): void {
    this.watch.noteWritable(writable);
  }

  stop(): void {
    this.watch.stop();
  }

  async check(): Promise<Readiness> {
    this.start();
    await Promise.race([this.watch.firstLook, this.platform.timing.delay(FIRST_ANSWER_WITHIN_MS)]);
    const { phase } = this.traffic;
    const checks = { ...this.watch.found, process: phase === 'serving' ? 'ok' : phase } as const;
    return { ready: isReady(checks), checks };
  }

  /** Looks again and again until nothing but the process itself may still speak against it, for `withinMs` at most. */
  async untilUsable(withinMs: number): Promise<void> {
    const { timing } = this.platform;
    const untilMs = timing.monotonicMs() + withinMs;
    for (;;) {
      await this.watch.look();
      const isUsable = isReady({ ...this.watch.found, process: 'ok' });
      if (isUsable || timing.monotonicMs() >= untilMs) return;
      await timing.delay(LOOK_AGAIN_MS);
    }
  }
}
