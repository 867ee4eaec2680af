/**
 * `top`: workers, queues and running runs, looked at again and again in place; once where there is no terminal. A look that
 * fails is told in a line, and the next one is made all the same.
 */
import { Option } from 'commander';
import { parseDuration } from '../kernel/duration.js';
import { clientSettings } from '../platform/config/config.js';
import type { Answer } from './api.js';
import type { ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure, wrongUsage } from './failure.js';
import type { FullScreen } from './full-screen.js';
import type { Queue, Run, Worker } from './resources.js';
import type { Session } from './session.js';
import { printable } from './text.js';
import { type Section, type Standing, screenOf, sectionsOf } from './top-view.js';

const DEFAULT_INTERVAL_MS = 2_000;
const SHORTEST_INTERVAL_MS = 500;
/** More than a screen has lines. */
const MOST_RUNS = 200;
const TAKEN = { state: ['claimed', 'running'] };
const CTRL_C = '\u0003';

interface TopOptions {
  readonly interval?: number;
  readonly once?: boolean;
}

export function addTopCommand(commands: ClientCommands): void {
  commands
    .add('top', 'all of it, refreshed in place', top)
    .description('Show workers, queues and running runs, refreshed in place. q quits.')
    .addOption(new Option('--interval <duration>', 'between two looks (default: 2s)').argParser(interval))
    .option('--once', 'print it once, as without a terminal')
    .addHelpText(
      'after',
      '\nIn a pipe each line begins with worker, queue or run; tabs are between fields.\n\n' +
        "Examples:\n  capstan top\n  capstan top --once | grep '^queue'",
    );
}

function interval(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= SHORTEST_INTERVAL_MS) return ms;
  throw wrongUsage('--interval: expected 500ms or more, such as 2s');
}

interface Look {
  readonly workers: readonly Answer<Worker>[];
  readonly queues: readonly Answer<Queue>[];
  readonly runs: readonly Answer<Run>[];
  readonly hasMoreRuns: boolean;
}

async function look({ api }: Session): Promise<Look> {
  const [workers, queues, runs] = await Promise.all([api.workers(), api.queues(), api.runs(TAKEN, MOST_RUNS)]);
  return { workers, queues, runs: runs.items, hasMoreRuns: runs.next !== null };
}

function standingOf({ workers, queues, runs, hasMoreRuns }: Look): Standing {
  const shown = <T>({ value }: Answer<T>) => value;
  return { workers: workers.map(shown), queues: queues.map(shown), runs: runs.map(shown), hasMoreRuns };
}

async function top(session: Session, _: readonly string[], options: TopOptions): Promise<number> {
  const screen = options.once || session.isJson ? undefined : session.shell.fullScreen();
  if (screen) return await watch(session, screen, options.interval ?? DEFAULT_INTERVAL_MS);
  const seen = await look(session);
  if (session.isJson) {
    const [workers, queues, runs] = [seen.workers, seen.queues, seen.runs].map((list) =>
      list.map(({ document }) => document),
    );
    await session.printer.document({ workers, queues, runs });
  } else
    for (const [index, section] of sectionsOf(standingOf(seen), Date.now()).entries()) {
      await printSection(session, section, index > 0);
    }
  return EXIT_CODES.done.code;
}

async function printSection({ printer, shell }: Session, section: Section, isBehind: boolean): Promise<void> {
  const { word, title, columns, rows } = section;
  if (shell.stdout.isTerminal) {
    await printer.line(`${isBehind ? '\n' : ''}${title}`);
    await printer.table(columns, rows);
  } else {
    await printer.table(
      [{ title: '' }, ...columns],
      rows.map((row) => [word, ...row]),
    );
  }
}

/** Until q or Ctrl-C. */
async function watch(session: Session, screen: FullScreen, intervalMs: number): Promise<number> {
  // The first look fails as any other command does, and leaves the screen alone.
  let standing = standingOf(await look(session));
  let trouble = '';
  const redraw = () => draw(session, screen, standing, trouble, intervalMs);
  screen.enter();
  session.leave = async () => EXIT_CODES.done.code;
  session.tellRetry = async ({ message }) => {
    trouble = `${message}; trying again`;
    await redraw();
  };
  try {
    for (;;) {
      await redraw();
      const next = session.shell.timing.delay(intervalMs).then(() => look(session));
      if (await isLeftBefore(next, screen, redraw)) return EXIT_CODES.done.code;
      try {
        standing = standingOf(await next);
        trouble = '';
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        trouble = error.message;
      }
    }
  } finally {
    screen.leave();
  }
}

async function draw(
  session: Session,
  screen: FullScreen,
  standing: Standing,
  trouble: string,
  intervalMs: number,
): Promise<void> {
  const { noColor } = clientSettings(session.shell.env);
  const at = new Date().toTimeString().slice(0, 8);
  const head =
    trouble === ''
      ? `capstan top  ${at}  every ${intervalMs / 1_000}s, q quits`
      : `${at}  ${printable(trouble)}; what follows is from before`;
  const size = { columns: screen.columns, rows: screen.rows, noColor };
  screen.draw(await screenOf(head, sectionsOf(standing, Date.now()), size));
}

/** True when it is to end, however long `next` may take. Drawn anew when the size of the screen changes. */
async function isLeftBefore(next: Promise<unknown>, screen: FullScreen, redraw: () => Promise<void>): Promise<boolean> {
  const over = new AbortController();
  const end = () => over.abort();
  void next.then(end, end);
  while (!over.signal.aborted) {
    const key = await screen.key(over.signal);
    if (key === 'q' || key === CTRL_C) return true;
    if (!over.signal.aborted) await redraw();
  }
  return false;
}
