/**
 * Waits for the end of a run and copies its output meanwhile. Invariant: the output is read once more after the run
 * was seen ended, and nothing of a run is stored after its end, so all of it is copied.
 */
import { Failure } from './failure.js';
import { OutputCopy, type OutputSink, type StreamName } from './output.js';
import type { Run } from './resources.js';
import type { Session } from './session.js';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 1_000;

export interface FollowOptions {
  /** Which streams go where. */
  readonly copies: readonly { readonly stream: StreamName; readonly to: Pick<OutputSink, 'write'> }[];
  /** Milliseconds; none: until the end. */
  readonly limitMs?: number;
}

/** Fails with `waitOver` when the limit has passed; the run goes on then. */
export async function follow(
  session: Session,
  id: string,
  options: FollowOptions,
): Promise<{ readonly document: unknown; readonly value: Run }> {
  const { api, shell } = session;
  const { timing } = shell;
  const untilMs = timing.monotonicMs() + (options.limitMs ?? Number.POSITIVE_INFINITY);
  const copies = options.copies.map(({ stream, to }) => copyOf(session, id, stream, to));
  let pauseMs = FIRST_PAUSE_MS;
  let state = '';
  for (;;) {
    const answer = await api.run(id);
    const run = answer.value;
    let isMoving = run.state !== state;
    state = run.state;
    if (run.startedAt !== null || run.endedAt !== null) {
      for (const copy of copies) isMoving = (await copy.copyNew()) > 0 || isMoving;
    }
    if (run.endedAt !== null) return answer;
    const leftMs = untilMs - timing.monotonicMs();
    if (leftMs <= 0) throw waitOver(run);
    pauseMs = isMoving ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5);
    await timing.delay(Math.min(pauseMs, leftMs));
  }
}

function copyOf(session: Session, id: string, stream: StreamName, to: Pick<OutputSink, 'write'>): OutputCopy {
  const lost = () => session.note(`${id} writes more than is kept: a part of its output is missing here`);
  return new OutputCopy(session.api.http, id, stream, { write: (data) => to.write(data), lost });
}

function waitOver(run: Run): Failure {
  const detail = `${run.id} is ${run.state} and goes on`;
  return new Failure('waitOver', { title: 'wait time over', detail, code: 'wait_over' });
}

/** What can be done about a run that somebody stopped waiting for. */
export function leftBehind(id: string): string[] {
  return [`follow it: capstan logs --follow ${id}`, `cancel it: capstan cancel ${id}`];
}
