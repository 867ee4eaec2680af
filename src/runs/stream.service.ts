/**
 * Who follows runs here: one tail per run for all its viewers, and no more viewers than this process can serve. Without
 * viewers nothing is read.
 */

import type { Writable } from 'node:stream';
import { Problem } from '../kernel/problems.js';
import { isTransient } from '../platform/db/db.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Platform } from '../platform/platform.js';
import { MessageStore } from './message-store.js';
import type { OutputStream } from './output.js';
import type { OutputService } from './output.service.js';
import { readOutput } from './output.sql.js';
import { BEGINNING, type Place } from './place.rules.js';
import { findRun, type RunRow } from './read.sql.js';
import type { RunMetrics } from './run.metrics.js';
import { RunTail } from './run-tail.js';
import { endMessage } from './stream-message.rules.js';
import { type StreamBounds, StreamPlaces } from './stream-places.js';
import type { Look } from './tail.rules.js';
import { findStanding } from './tail.sql.js';
import { Viewer } from './viewer.js';

export interface StreamLimits extends StreamBounds {
  readonly heartbeatMs: number;
  /** A connection that takes nothing for so long is cut off. */
  readonly stallMs: number;
  /** Of messages that are kept for others, all runs together. */
  readonly storeBytes: number;
  readonly storeMs: number;
}

export const STREAM_LIMITS: StreamLimits = Object.freeze({
  maxStreams: 1_000,
  maxStreamsOfCaller: 500,
  heartbeatMs: 15_000,
  stallMs: 60_000,
  storeBytes: 8 * 1024 * 1024,
  storeMs: 10_000,
});
const EVENTS_PER_LOOK = 200;
const LINGER_MS = 5_000;
/** Of a database that is away, one line in this time is enough. */
const TELL_FAULTS_EVERY_MS = 30_000;

/** Where a stream begins. */
export type StreamFrom =
  | { readonly from: 'beginning' }
  | { readonly from: 'place'; readonly place: Place }
  /** So many lines before the present end of the output; all events come. */
  | { readonly from: 'tail'; readonly lines: number };

/** A stream that was let in. It must be given a connection. */
export interface OpenStream {
  /** Resolves when the connection has been ended by either side. */
  to(out: Writable): Promise<void>;
}

/** What is remembered of a run that is followed: no payloads. */
type FollowedRun = Pick<RunRow, 'id' | 'organizationId' | 'createdAt' | 'fence' | 'endedAt'>;

interface Beginning {
  readonly place: Place;
  readonly skipBytes: number;
}

interface Follow {
  readonly run: FollowedRun;
  readonly tail: RunTail;
  /** Runs out some time after the last viewer has left. */
  lingering?: NodeJS.Timeout;
}

export class StreamService {
  private readonly store: MessageStore;
  private readonly follows = new Map<string, Follow>();
  /** Under way for everybody who asks for the same meanwhile. */
  private readonly lookups = new Map<string, Promise<FollowedRun>>();
  private readonly beginnings = new Map<string, Promise<Beginning>>();
  private readonly viewers = new Set<Viewer>();
  private readonly places: StreamPlaces;
  private isClosed = false;
  private faultToldMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly platform: Platform,
    private readonly output: OutputService,
    private readonly metrics: RunMetrics,
    /** The run as callers see it. */
    private readonly show: (run: RunRow) => unknown,
    private readonly limits: StreamLimits = STREAM_LIMITS,
  ) {
    this.store = new MessageStore({ maxBytes: limits.storeBytes, keepMs: limits.storeMs }, platform.timing);
    this.places = new StreamPlaces(limits, (open) => metrics.setStreams(open));
    platform.bells.ended.onRing((ids) => {
      for (const id of ids) this.follows.get(id)?.tail.wake();
    });
  }

  /** Lets a stream in. Throws `not_found`, and `too_many_streams` or `unavailable` when there are too many. */
  async open(
    caller: RequestCaller,
    id: string,
    from: StreamFrom,
    stream: OutputStream | undefined,
  ): Promise<OpenStream> {
    if (this.isClosed) {
      throw new Problem('unavailable', 'this replica is stopping: connect again', { retryAfterSeconds: 1 });
    }
    const leave = this.places.take(caller.principal.id);
    try {
      const run = await this.runOf(caller.organizationId, id, from.from === 'tail');
      const { place, skipBytes } = await this.beginningOf(run, from, stream);
      return { to: (out) => this.serve(out, run, { from: place, skipBytes, stream }, leave) };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Ends all streams, so that whoever follows goes on at another replica, and lets nobody in any more. */
  close(): void {
    this.isClosed = true;
    for (const viewer of this.viewers) viewer.stop();
  }

  private async serve(
    out: Writable,
    run: FollowedRun,
    start: { readonly from: Place; readonly skipBytes: number; readonly stream: OutputStream | undefined },
    leave: () => void,
  ): Promise<void> {
    const follow = this.followOf(run);
    const onSent = (bytes: number) => this.metrics.countStreamed(bytes);
    const viewer = new Viewer(out, follow.tail, { ...start, ...this.limits, onSent });
    let isGone = false;
    const gone = () => {
      if (isGone) return;
      isGone = true;
      this.viewers.delete(viewer);
      leave();
      this.unfollow(follow);
    };
    // An error of the connection is followed by its close.
    out.on('error', () => undefined).once('close', gone);
    this.viewers.add(viewer);
    if (this.isClosed) viewer.stop();
    try {
      await viewer.run();
    } finally {
      gone();
    }
  }

  /** The organization's run; as it was when somebody began to follow it, unless it must be `fresh`. */
  private async runOf(organizationId: string, id: string, fresh: boolean): Promise<FollowedRun> {
    const known = this.follows.get(id);
    const isKnown = known?.run.organizationId === organizationId && !known.tail.isBroken;
    if (isKnown && !fresh) return known.run;
    return together(this.lookups, `${organizationId} ${id}`, async () => {
      const { createdAt, fence, endedAt } = await this.findRun(organizationId, id);
      return { id, organizationId, createdAt, fence, endedAt };
    });
  }

  private async findRun(organizationId: string, id: string): Promise<RunRow> {
    const run = await findRun(this.platform.pools.read, organizationId, id);
    if (!run) throw new Problem('not_found', 'there is no such run');
    return run;
  }

  private async beginningOf(run: FollowedRun, from: StreamFrom, stream: OutputStream | undefined): Promise<Beginning> {
    if (from.from === 'place') return { place: from.place, skipBytes: 0 };
    if (from.from === 'beginning') return { place: BEGINNING, skipBytes: 0 };
    return together(this.beginnings, `${run.id} ${stream} ${from.lines}`, async () => {
      const begin = await this.output.tailPlace(run, stream, from.lines);
      if (!begin) return { place: BEGINNING, skipBytes: 0 };
      return { place: { ...BEGINNING, fence: begin.fence, batch: begin.batch - 1 }, skipBytes: begin.skip };
    });
  }

  private followOf(run: FollowedRun): Follow {
    const known = this.follows.get(run.id);
    const follow: Follow = known && !known.tail.isBroken ? known : { run, tail: this.tailOf(run) };
    this.follows.set(run.id, follow);
    clearTimeout(follow.lingering);
    follow.tail.join();
    return follow;
  }

  /** What is known of a run is kept for a while: of many short visits each would cost as much as the first. */
  private unfollow(follow: Follow): void {
    const { run, tail } = follow;
    tail.leave();
    if (tail.isFollowed) return;
    const forget = () => {
      if (this.follows.get(run.id) === follow) this.follows.delete(run.id);
    };
    follow.lingering = setTimeout(forget, LINGER_MS).unref();
  }

  private tailOf(run: FollowedRun): RunTail {
    return new RunTail(run.id, {
      look: (after) => this.lookBehind(run, after),
      end: async () => endMessage(this.show(await this.findRun(run.organizationId, run.id))),
      store: this.store,
      timing: this.platform.timing,
      onFault: (error) => this.tellFault(run.id, error),
    });
  }

  /**
   * How the run stands is read first and its output behind it: of a run that had ended then, all of it was there. Only
   * as many chunks are read as were there then, so the two are of one instant.
   */
  private async lookBehind(run: FollowedRun, after: Place): Promise<Look | undefined> {
    const { read } = this.platform.pools;
    const standing = await findStanding(read, run, after, EVENTS_PER_LOOK);
    if (!standing) return undefined;
    const chunks =
      standing.chunks === 0
        ? []
        : await readOutput(read, run, after, undefined, { chunks: standing.chunks, bytes: Number.MAX_SAFE_INTEGER });
    return { standing, chunks };
  }

  private tellFault(runId: string, error: unknown): void {
    const { log, timing } = this.platform;
    if (timing.monotonicMs() - this.faultToldMs < TELL_FAULTS_EVERY_MS) return;
    this.faultToldMs = timing.monotonicMs();
    if (isTransient(error)) log.warn({ code: 'stream_waits', err: error }, 'streams can’t be fed right now; trying on');
    else log.error({ code: 'stream_failed', runId, err: error }, 'a run can’t be followed: its streams are closed');
  }
}

/** The answer of `ask`, which is asked once for all who want it while it is under way. */
function together<T>(pending: Map<string, Promise<T>>, name: string, ask: () => Promise<T>): Promise<T> {
  const known = pending.get(name);
  if (known) return known;
  const answer = ask().finally(() => pending.delete(name));
  pending.set(name, answer);
  return answer;
}
