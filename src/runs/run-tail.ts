/**
 * A run as all its viewers on this replica follow it. Those who have everything wait for one poll together; who comes
 * later or was slow reads up to where the poll is and no further, so that all of them meet there, however they came.
 */
import { isTransient } from '../platform/db/db.js';
import type { Timing } from '../platform/time.js';
import type { MessageStore } from './message-store.js';
import { joined, keyOf, type Place, reaches } from './place.rules.js';
import { type Message, messageOf } from './stream-message.rules.js';
import { type Look, type Page, pageOf } from './tail.rules.js';

/** Between polls: this much while things move, growing to the longest while they don't. */
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 500;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5_000;

export interface TailPorts {
  /** What is behind a place; undefined when there is no such run any more. */
  readonly look: (after: Place) => Promise<Look | undefined>;
  /** The message that closes the stream of a run that has ended. */
  readonly end: () => Promise<Buffer>;
  readonly store: MessageStore;
  readonly timing: Timing;
  /** The run can't be read right now, or (not transient) at all. */
  readonly onFault: (error: unknown) => void;
}

export class RunTail {
  /** Everything up to here was seen: nobody reads any further by himself. */
  private edge: Place | undefined;
  /** The last message, once there is nothing else behind the edge. */
  private end: Buffer | undefined;
  private readonly reads = new Map<string, Promise<void>>();
  private pauseMs = SHORTEST_PAUSE_MS;
  private pollAtMs = 0;
  private failures = 0;
  private waking = new AbortController();
  private isWoken = false;
  private viewers = 0;
  /** Nothing more can be learned: the run was removed, or reading it is a bug. */
  isBroken = false;

  constructor(
    private readonly runId: string,
    private readonly ports: TailPorts,
  ) {}

  /** The next message for who is at a place, if it is at hand. */
  next(place: Place): Message | undefined {
    return this.ports.store.get(this.runId, place);
  }

  /** The last message, for who has taken all others. */
  endAt(place: Place): Buffer | undefined {
    return this.edge && reaches(place, this.edge) ? this.end : undefined;
  }

  /** Resolves when it is worth looking again; within seconds, whatever happens. Never rejects. */
  more(place: Place): Promise<void> {
    const { edge } = this;
    const isAtEdge = edge !== undefined && reaches(place, edge);
    const name = isAtEdge ? 'poll' : keyOf(place);
    const known = this.reads.get(name);
    if (known) return known;
    const read = (isAtEdge ? this.poll() : this.readBehind(place)).finally(() => this.reads.delete(name));
    this.reads.set(name, read);
    return read;
  }

  /** Something has happened to the run: poll now. */
  wake(): void {
    this.isWoken = true;
    this.waking.abort();
  }

  get isFollowed(): boolean {
    return this.viewers > 0;
  }

  join(): void {
    this.viewers += 1;
  }

  /** While nobody follows nothing is polled. */
  leave(): void {
    this.viewers -= 1;
    if (!this.isFollowed) this.waking.abort();
  }

  private async poll(): Promise<void> {
    const { timing } = this.ports;
    const waitMs = this.pollAtMs - timing.monotonicMs();
    this.waking = new AbortController();
    if (waitMs > 0 && !this.isWoken) await timing.delay(waitMs, this.waking.signal);
    const { edge } = this;
    if (!this.isFollowed || edge === undefined) return;
    this.isWoken = false;
    const page = await this.read(edge, (look) => {
      const all = pageOf(edge, look);
      this.edge = all.next;
      return all;
    });
    if (!page) return;
    const hasMoved = page.steps.length > 0;
    this.pauseMs = hasMoved ? SHORTEST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, this.pauseMs * 1.5);
    this.pollAtMs = timing.monotonicMs() + (hasMoved && page.hasMore ? 0 : this.pauseMs);
  }

  private async readBehind(place: Place): Promise<void> {
    await this.read(place, (look) => {
      const limit = this.edge && joined(this.edge, place);
      const page = limit && pageOf(place, look, limit);
      if (page && page.steps.length > 0) return page;
      // There is no edge yet, or what it was made of is gone (dropped output, a claim that was taken back).
      const whole = pageOf(place, look);
      if (!whole.hasMore) {
        this.edge = whole.next;
        this.pollAtMs = this.ports.timing.monotonicMs() + this.pauseMs;
      }
      return whole;
    });
  }

  /**
   * Reads behind a place and keeps the messages of the page that `take` makes of it. Undefined when it can't be read;
   * then some time has passed.
   */
  private async read(place: Place, take: (look: Look) => Page): Promise<Page | undefined> {
    const { timing, look, end, store, onFault } = this.ports;
    try {
      const seen = await look(place);
      if (!seen) this.isBroken = true;
      if (!seen) return undefined;
      const isLast = seen.standing.endedAt !== null && this.end === undefined && pageOf(place, seen).isLast;
      const last = isLast ? await end() : undefined;
      const page = take(seen);
      if (page.isLast) this.end ??= last;
      this.failures = 0;
      store.put(this.runId, place, page.steps.map(messageOf));
      return page;
    } catch (error) {
      onFault(error);
      if (!isTransient(error)) this.isBroken = true;
      const pauseMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.failures);
      this.failures += 1;
      await timing.delay(pauseMs * (0.5 + timing.random() / 2));
      return undefined;
    }
  }
}
