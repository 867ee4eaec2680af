/**
 * Follows a run to its end: hands on what its stream brings, in order, one at a time, says what a run that doesn't start
 * is waiting for, and stops when the time is over.
 */
import type { StreamPick } from '../client/stream.js';
import type { Timing } from '../platform/time.js';
import type { Answer } from './api.js';
import { Failure } from './failure.js';
import type { Run } from './resources.js';
import type { Session } from './session.js';
import { messagesOf, type StreamMessage } from './stream.js';

export interface FollowOptions extends StreamPick {
  /** The next message is read when this one was taken. Not told the end. */
  take(message: Exclude<StreamMessage, { type: 'end' }>): Promise<void>;
  /** Milliseconds; none: until the end. */
  readonly limitMs?: number | undefined;
}

/** A queue that is served takes a run within a second. */
const UNTAKEN_MS = 3_000;
/** A timer holds no more than 24 days. */
const LONGEST_TIMER_MS = 86_400_000;

/** Where a run stands after an event; every other leaves it where it is. */
const STATE_AFTER: Readonly<Record<string, string>> = {
  'run.claimed': 'claimed',
  'run.started': 'running',
  'run.released': 'pending',
  'run.requeued': 'pending',
};

/** The state of a run that a message tells; none when it tells none. */
export function stateAfter(message: StreamMessage): string | undefined {
  if (message.type === 'output') return 'running';
  return message.type === 'event' ? STATE_AFTER[message.event.type] : undefined;
}

/** `run` is what was known of it before. Fails with `waitOver` when the limit has passed; the run goes on then. */
export async function follow(session: Session, run: Run, options: FollowOptions): Promise<Answer<Run>> {
  const { api, shell } = session;
  const { timing } = shell;
  const done = new AbortController();
  let { state } = run;
  const toTheEnd = async () => {
    for await (const message of messagesOf(api.http, run.id, options)) {
      if (message.type === 'end') return message.run;
      state = stateAfter(message) ?? state;
      await options.take(message);
    }
    throw new Error('the messages of a run ended without its end');
  };
  const untaken = async () => {
    await timing.delay(UNTAKEN_MS, done.signal);
    const line = done.signal.aborted ? undefined : waitingLine({ ...run, state });
    if (line !== undefined) await session.note(line, whyHint(run.id));
  };
  const limit = async () => {
    await longDelay(timing, options.limitMs ?? Number.POSITIVE_INFINITY, done.signal);
    throw waitOver(run.id, state);
  };
  try {
    // A remark that can't be written is no reason to stop.
    void untaken().catch(() => undefined);
    return await Promise.race([toTheEnd(), limit()]);
  } finally {
    done.abort();
  }
}

async function longDelay(timing: Timing, ms: number, signal: AbortSignal): Promise<void> {
  const untilMs = timing.monotonicMs() + ms;
  for (let leftMs = ms; leftMs > 0 && !signal.aborted; leftMs = untilMs - timing.monotonicMs()) {
    await timing.delay(Math.min(leftMs, LONGEST_TIMER_MS), signal);
  }
}

/** What a run that has not begun waits for; `undefined` for one that has. */
export function waitingLine({
  id,
  state,
  queue,
  notBefore,
}: Pick<Run, 'id' | 'state' | 'queue' | 'notBefore'>): string | undefined {
  if (state === 'held') return `${id} is held`;
  if (state !== 'pending') return undefined;
  if (notBefore !== null) return `${id} is pending; it is due at ${notBefore}`;
  return `${id} is pending; no worker has taken it yet (queue ${queue})`;
}

function waitOver(id: string, state: string): Failure {
  const hints = state === 'pending' || state === 'held' ? [whyHint(id)] : [];
  return new Failure(
    'waitOver',
    {
      title: 'wait time over',
      detail: `${id} is ${state} and goes on`,
      code: 'wait_over',
    },
    hints,
  );
}

function whyHint(id: string): string {
  return `see why: capstan why ${id}`;
}

/** What can be done about a run that somebody stopped waiting for. */
export function leftBehind(id: string): [follow: string, cancel: string] {
  return [`follow it: capstan logs -f ${id}`, `cancel it: capstan cancel ${id}`];
}
