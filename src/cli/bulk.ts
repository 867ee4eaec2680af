/**
 * `cancel` and `rerun` of all that match a filter: counted first, asked about, then part by part. Invariants: without
 * somebody to ask, nothing is done that wasn't agreed to by `--yes`; only `next` says when all is done.
 */
import type { Command } from 'commander';
import { END_STATES, LIVE_STATES } from '../kernel/run-words.js';
import type { BulkPart, RunFilter } from './api.js';
import type { Canceled, Rerun, Reruns } from './bulk-answers.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure, interrupted, wrongUsage } from './failure.js';
import { addFilterOptions, type FilterOptions, filterOf, isAgo } from './filters.js';
import type { ReplayOptions } from './launch-options.js';
import type { Session } from './session.js';
import { counted, grouped } from './text.js';

export interface BulkOptions extends FilterOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** Its help tells the filters that are used most. */
const TOLD = ['--state', '--queue', '--search', '--after'];

export function addBulkOptions(command: Command): Command {
  addFilterOptions(command);
  for (const option of command.options) option.hideHelp(!TOLD.includes(option.long ?? ''));
  return command
    .option('--dry-run', 'only count what matches')
    .option('-y, --yes', "don't ask")
    .addHelpText(
      'after',
      '\nBy filters: all that match, once it has counted and asked. Also with the other\n' +
        'filters of capstan runs: --label, --kind, --before, …',
    );
}

/** What a command line asks for: runs by their ids, or by a filter. Both, or neither, is wrong usage. */
export function filterBesides(
  ids: readonly string[],
  options: BulkOptions,
  verb: 'cancel' | 'rerun',
): RunFilter | undefined {
  const filter = filterOf(options);
  const isFilter = Object.keys(filter).length > 0;
  const example = verb === 'cancel' ? 'pending --queue QUEUE' : 'failed --after 2h';
  if (isFilter && ids.length > 0) throw wrongUsage(`${verb}: ids and filters exclude each other`);
  if (!isFilter && ids.length === 0) {
    throw wrongUsage(
      `${verb}: expected the id of a run, or what to choose runs by`,
      'look: capstan runs',
      `many at once: capstan ${verb} --state ${example} --dry-run`,
    );
  }
  if (!isFilter && (options.dryRun || options.yes)) throw wrongUsage('--dry-run and --yes are for filters');
  checkStates(verb, options.state ?? []);
  return isFilter ? filter : undefined;
}

const ACTS_ON: Readonly<Record<'cancel' | 'rerun', readonly string[]>> = { cancel: LIVE_STATES, rerun: END_STATES };

function checkStates(verb: 'cancel' | 'rerun', states: readonly string[]): void {
  const beside = states.filter((state) => !ACTS_ON[verb].includes(state));
  if (beside.length === 0) return;
  const why = verb === 'cancel' ? 'what has ended is not canceled' : 'only what has ended is run again';
  throw wrongUsage(`${verb}: --state ${beside.join(',')}: ${why}; expected ${ACTS_ON[verb].join(', ')}`);
}

/** Walks from part to part; `take` is told each. */
async function walk<T extends { readonly next: string | null }>(
  ask: (part: BulkPart) => Promise<T>,
  dryRun: boolean,
  take: (answer: T) => Promise<void>,
): Promise<void> {
  let cursor: string | null = null;
  do {
    const answer: T = await ask({ dryRun, ...(cursor !== null && { cursor }) });
    await take(answer);
    cursor = answer.next;
  } while (cursor !== null);
}

interface Countable {
  readonly matched: number;
  readonly next: string | null;
}

/** True: go on. Otherwise all that there is to say was said. */
async function isAgreed(
  session: Session,
  verb: 'cancel' | 'rerun',
  { dryRun, yes }: BulkOptions,
  ask: (part: BulkPart) => Promise<Countable>,
): Promise<boolean> {
  const { isJson, printer, shell } = session;
  if (yes && !dryRun) return true;
  if (!dryRun && !shell.isInteractive) {
    throw wrongUsage(
      `${verb} of many: there is nobody to ask here`,
      'count first: the same with --dry-run',
      'then: the same with --yes',
    );
  }
  let matched = 0;
  await walk(ask, true, async (answer) => {
    matched += answer.matched;
    await session.progress(`${counted(matched, 'run')} so far`);
  });
  if (dryRun) {
    if (isJson) await printer.document({ dryRun: true, matched });
    else if (!session.isQuiet) await printer.line(`${counted(matched, 'run')} would be ${DONE[verb]}`);
    return false;
  }
  if (matched === 0) {
    await session.note('no such runs');
    return false;
  }
  await shell.status.clear();
  const answer = await shell.ask(`${verb} ${counted(matched, 'run')}? [y/N] `);
  if (/^y(es)?$/i.test(answer)) return true;
  throw interrupted('nothing was done');
}

const DONE = { cancel: 'canceled', rerun: 'run again' } as const;

export async function cancelAll(session: Session, filter: RunFilter, options: BulkOptions): Promise<number> {
  const { api, isJson, printer } = session;
  if (!(await isAgreed(session, 'cancel', options, (part) => api.cancelMany(filter, part))))
    return EXIT_CODES.done.code;
  // A first part that is sent again begins at the newest once more: what is submitted from now on isn't meant.
  const [newest] = (await api.runs(filter, 1)).items;
  const before = newest && new Date(Date.parse(newest.value.createdAt) + 1).toISOString();
  const meant = { ...filter, ...(before !== undefined && { createdBefore: before }) };
  const ask = (part: BulkPart) => api.cancelMany(meant, part);
  const sum = { matched: 0, canceled: 0, stopping: 0 };
  const soFar = () => `${counted(sum.canceled, 'run')} canceled${stopping(sum)}`;
  session.leave = () => Promise.reject(interrupted(`${soFar()} so far`, 'the rest: the same command again'));
  // Where nothing matches, only the filter is checked.
  await walk(ask, newest === undefined, async (answer: Canceled) => {
    sum.matched += answer.matched;
    sum.canceled += answer.canceled;
    sum.stopping += answer.stopping;
    await session.progress(soFar());
  }).catch((error: unknown) => {
    throw error instanceof Failure ? error.with(after(sum.canceled, soFar(), error)) : error;
  });
  if (isJson) await printer.document({ dryRun: false, ...sum, next: null });
  else if (!session.isQuiet) await printer.line(soFar());
  return EXIT_CODES.done.code;
}

/** What was done before a failure, and the way on where the same command is one. */
function after(done: number, soFar: string, { problem: { status = 500 } }: Failure): string[] {
  const mayPass = status >= 500 || status === 408 || status === 429;
  return [...(done > 0 ? [`${soFar} before`] : []), ...(mayPass ? ['the rest: the same command again'] : [])];
}

function stopping(sum: { readonly stopping: number }): string {
  return sum.stopping === 0 ? '' : `, ${grouped(sum.stopping)} being stopped`;
}

/** The server takes 255; the number of a part comes behind it. */
const KEY_BYTES = 240;

/** Prints the ids of the new runs as they come. */
export async function rerunAll(
  session: Session,
  filter: RunFilter,
  options: BulkOptions & ReplayOptions,
): Promise<number> {
  const { api, isJson, printer } = session;
  const { idempotencyKey: key = `cli-${crypto.randomUUID()}`, after, before } = options;
  if (options.idempotencyKey !== undefined && (isAgo(after) || isAgo(before))) {
    throw wrongUsage(
      '--idempotency-key: what has this key must be the same each time, and a time ago is not',
      'name an instant, such as 2026-03-02T00:00:00Z',
    );
  }
  if (Buffer.byteLength(key) > KEY_BYTES) throw wrongUsage(`--idempotency-key: for many at most ${KEY_BYTES} bytes`);
  // To count is another request than to make, and makes nothing.
  const count = (part: BulkPart) => api.rerunMany(filter, part, `cli-${crypto.randomUUID()}`);
  let parts = 0;
  // Another request for each part, and the same again for who gives the same key.
  const ask = (part: BulkPart) => {
    parts += 1;
    return api.rerunMany(filter, part, parts === 1 ? key : `${key}/${parts}`);
  };
  if (!(await isAgreed(session, 'rerun', options, count))) return EXIT_CODES.done.code;
  const items: Rerun[] = [];
  const soFar = () => `${counted(items.length, 'new run')} made`;
  session.leave = () => Promise.reject(interrupted(`${soFar()} so far, or some more`, wayOn(options)));
  await walk(ask, false, async (answer: Reruns) => {
    items.push(...answer.items);
    if (!isJson) for (const { id } of answer.items) await printer.line(id);
    await session.progress(soFar());
  }).catch((error: unknown) => {
    throw error instanceof Failure ? error.with([`${soFar()} before`, wayOn(options)]) : error;
  });
  if (isJson) await printer.document({ dryRun: false, matched: items.length, items, next: null });
  await session.note(soFar());
  return EXIT_CODES.done.code;
}

function wayOn({ idempotencyKey }: ReplayOptions): string {
  return idempotencyKey === undefined ? 'look: capstan runs' : 'again, which makes none twice: the same command';
}
