/** What a person who waits sees at the bottom of the screen: where the run stands, for how long, and what its tool says. */
import { isFields } from './decode.js';
import { stateAfter } from './follow.js';
import { lasting } from './print.js';
import type { Run } from './resources.js';
import type { Session } from './session.js';
import type { StreamMessage } from './stream.js';
import { progressOf } from './top-view.js';

const EVERY_MS = 1_000;

export class WaitStatus {
  private state: string;
  private sinceMs: number;
  private progress: Run['progress'];

  constructor(
    private readonly session: Session,
    private readonly run: Run,
  ) {
    this.state = run.state;
    this.progress = run.progress;
    this.sinceMs = session.shell.timing.monotonicMs();
  }

  take(message: StreamMessage): void {
    const state = stateAfter(message) ?? this.state;
    if (state !== this.state) this.sinceMs = this.session.shell.timing.monotonicMs();
    this.state = state;
    if (message.type === 'event' && message.event.type === 'progress' && isFields(message.event.data)) {
      this.progress = message.event.data;
    }
  }

  /** Until `signal` aborts. */
  async keep(signal: AbortSignal): Promise<void> {
    const { timing } = this.session.shell;
    while (this.session.isWatched && !signal.aborted) {
      await timing.delay(EVERY_MS, signal);
      if (!signal.aborted) await this.session.progress(this.line(timing.monotonicMs()));
    }
  }

  private line(nowMs: number): string {
    const { id, queue } = this.run;
    // Whole seconds: nothing else changes between two looks.
    const ms = nowMs - this.sinceMs;
    const time = ms < 10_000 ? `${Math.floor(ms / 1_000)}s` : lasting(ms);
    const where = this.state === 'pending' ? ` in queue ${queue}` : '';
    const said = progressOf(this.progress);
    return `${id} ${this.state}${where} ${time}${said === null ? '' : `, ${said}`}`;
  }
}
