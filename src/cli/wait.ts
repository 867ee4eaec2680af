/**
 * `--wait`: copies a run's streams to ours until it ends, and hands its end on as an exit code. Ctrl-C leaves the run
 * alone; on a terminal a second one within 3 s cancels it.
 */
import type { Submitted } from './api.js';
import { CutLines, lineBehind } from './cut.rules.js';
import { EXIT_CODES, exitCodeOf } from './exit-codes.js';
import { Failure, interrupted } from './failure.js';
import { follow, leftBehind } from './follow.js';
import { span } from './print.js';
import type { Run } from './resources.js';
import type { Session } from './session.js';
import type { StreamMessage } from './stream.js';
import { WaitStatus } from './wait-status.js';

export interface WaitOptions {
  readonly wait?: boolean;
  /** Milliseconds. */
  readonly waitLimit?: number;
}

const SECOND_CTRL_C_MS = 3_000;

/** What a command that made a run, or found the one it had made, has to say, now or after its end. */
export async function conclude(
  session: Session,
  submitted: Submitted,
  options: WaitOptions & { readonly isFound: boolean },
): Promise<number> {
  const { id } = submitted.value;
  const isAwaited = options.wait === true || options.waitLimit !== undefined;
  if (options.isFound) await session.note(`this key was used before: it made ${id}`);
  else if (isAwaited) await session.note(`${id} submitted`);
  return await (isAwaited ? awaitEnd(session, submitted.value, options.waitLimit) : report(session, submitted));
}

/** What ended the command did not end the run: that is told, also to whoever closed our standard output. */
async function ofRun(session: Session, id: string, error: unknown): Promise<unknown> {
  if (!(error instanceof Failure)) return error;
  const hints = leftBehind(id);
  if (!isReaderGone(error)) return error.of(id, hints);
  // It may have been standard error.
  await session.note(`standard output was closed; ${id} goes on to its own end`, ...hints).catch(() => undefined);
  return error;
}

async function report(session: Session, { document, value }: Submitted): Promise<number> {
  const { isJson, isQuiet, printer, program, shell } = session;
  try {
    await (isJson ? printer.document(document) : printer.line(value.id));
  } catch (error) {
    throw await ofRun(session, value.id, error);
  }
  if (!isJson && !isQuiet && shell.stdout.isTerminal) {
    await shell.stderr.write(`see it: ${program} show ${value.id}\n`);
  }
  return EXIT_CODES.done.code;
}

async function awaitEnd(session: Session, run: Run, limitMs: number | undefined): Promise<number> {
  const { id } = run;
  const departure = new Departure(session, id);
  session.leave = () => departure.begin();
  const done = new AbortController();
  try {
    const cuts = new CutLines(id, session.program);
    const status = new WaitStatus(session, run);
    void status.keep(done.signal);
    let refusals = 0;
    const take = async (message: StreamMessage) => {
      if (message.type === 'event' && message.event.type === 'run.report_refused') refusals += 1;
      status.take(message);
      await copy(session, cuts, message);
    };
    const options = { limitMs, take };
    // A program that wants one document wants no output: nothing of what is there already is sent for.
    const { document, value } = await follow(session, run, session.isJson ? { ...options, tail: 0 } : options);
    if (departure.canceling !== undefined) return await departure.canceling;
    if (session.isJson) await session.printer.document(document);
    await session.note(endLine(value));
    if (refusals > 0) await session.note(refusalsLine(session, id, refusals));
    return exitCodeOf(value);
  } catch (error) {
    if (departure.canceling !== undefined) return await departure.canceling;
    throw departure.isTold && isReaderGone(error) ? error : await ofRun(session, id, error);
  } finally {
    done.abort();
  }
}

async function copy({ isJson, shell }: Session, cuts: CutLines, message: StreamMessage): Promise<void> {
  if (isJson) return;
  if (message.type === 'output') await shell[message.stream].write(message.data);
  // Standard output holds the tool's bytes and nothing else.
  if (message.type === 'cut') await shell.stderr.write(lineBehind(shell.stderr.isLineOpen, cuts.next(message)));
}

function isReaderGone(error: unknown): boolean {
  return error instanceof Failure && error.exit === 'readerGone';
}

/** Ctrl-C, once or twice. Meanwhile the output goes on. */
class Departure {
  /** Set from the second Ctrl-C on: then the answer to the cancel is the end of the wait, not the end of the run. */
  canceling: Promise<number> | undefined;
  /** It was said that the run goes on. */
  isTold = false;

  constructor(
    private readonly session: Session,
    private readonly id: string,
  ) {}

  async begin(): Promise<number> {
    const { session, id } = this;
    const { shell, isJson } = session;
    const [follow, cancel] = leftBehind(id);
    if (isJson || !shell.isInteractive) throw interrupted(`${id} goes on`).of(id, [follow, cancel]);
    const again = shell.interrupted();
    // The terminal has shown ^C on this line.
    await shell.stderr.write('\n');
    this.isTold = true;
    await session.note(`${id} goes on`, follow, `${cancel}, or Ctrl-C again within 3 s`);
    const isSure = await Promise.race([again.then(() => true), shell.timing.delay(SECOND_CTRL_C_MS).then(() => false)]);
    if (!isSure) return EXIT_CODES.interrupted.code;
    this.canceling = this.cancel();
    return await this.canceling;
  }

  private async cancel(): Promise<number> {
    const { session, id } = this;
    try {
      await session.shell.stderr.write('\n');
      const { value } = await session.api.cancel(id);
      await session.note(cancelLine(value));
      return EXIT_CODES.interrupted.code;
    } catch (error) {
      throw error instanceof Failure ? error.of(id, leftBehind(id)) : error;
    }
  }
}

function refusalsLine({ program }: Session, id: string, count: number): string {
  const what = count === 1 ? '1 report of the tool was' : `${count} reports of the tool were`;
  return `${what} refused; see: ${program} events ${id}`;
}

/** What a cancel came to. */
export function cancelLine({ id, state, endedAt }: Run): string {
  return endedAt === null ? `${id} is being stopped` : `${id} ${state}`;
}

/** `run_… failed: exit code 7 (tool_failed) after 3.20s`. */
export function endLine({ id, state, end, startedAt, endedAt }: Run): string {
  const took = span(startedAt, endedAt);
  const why = end === null || end.code === 'ok' ? '' : `: ${end.detail || 'no detail'} (${end.code})`;
  return `${id} ${state}${why}${took === null ? '' : ` after ${took}`}`;
}
