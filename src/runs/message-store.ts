/**
 * Messages of streams that were made already, for whoever comes to the same place: bounded in bytes, the oldest goes
 * first. What is behind a place never changes, so a message that is kept is never wrong.
 */
import type { Timing } from '../platform/time.js';
import { keyOf, type Place } from './place.rules.js';
import type { Message } from './stream-message.rules.js';

/** What an entry takes besides its bytes, roughly. */
const ENTRY_BYTES = 500;

interface Kept {
  readonly message: Message;
  readonly untilMs: number;
}

export class MessageStore {
  /** In the order in which they were made. */
  private readonly kept = new Map<string, Kept>();
  private bytes = 0;

  constructor(
    private readonly bounds: { readonly maxBytes: number; readonly keepMs: number },
    private readonly timing: Pick<Timing, 'monotonicMs'>,
  ) {}

  /** The message behind a place of a run, if it is kept. */
  get(runId: string, place: Place): Message | undefined {
    return this.kept.get(nameOf(runId, place))?.message;
  }

  /** Keeps messages that follow one another, as many of the first as there is room for: at least one. */
  put(runId: string, from: Place, messages: readonly Message[]): void {
    const untilMs = this.timing.monotonicMs() + this.bounds.keepMs;
    let place = from;
    let added = 0;
    for (const message of messages) {
      added += sizeOf(message);
      if (place !== from && added > this.bounds.maxBytes) break;
      const name = nameOf(runId, place);
      this.drop(name);
      this.kept.set(name, { message, untilMs });
      this.bytes += sizeOf(message);
      place = message.place;
    }
    this.sweep();
  }

  /** Lets go of what is too old or too much. The latest stays, or nobody could take what is larger than the store. */
  private sweep(): void {
    const nowMs = this.timing.monotonicMs();
    for (const [name, { untilMs }] of this.kept) {
      const isNeeded = untilMs > nowMs && this.bytes <= this.bounds.maxBytes;
      if (isNeeded || this.kept.size === 1) return;
      this.drop(name);
    }
  }

  private drop(name: string): void {
    const found = this.kept.get(name);
    if (!found) return;
    this.kept.delete(name);
    this.bytes -= sizeOf(found.message);
  }
}

function nameOf(runId: string, place: Place): string {
  return `${runId} ${keyOf(place)}`;
}

function sizeOf({ bytes }: Message): number {
  return bytes.length + ENTRY_BYTES;
}
