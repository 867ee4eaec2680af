/** `runs`, `show` and `events`: what there is, and what happened to it. */
import { Option } from 'commander';
import { addListOperand, addQuietOption, type ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { addFilterOptions, type FilterOptions, filterOf } from './filters.js';
import { idIn } from './ids.js';
import { integer } from './launch-options.js';
import { type Column, type Field, span } from './print.js';
import type { Run, RunEvent } from './resources.js';
import type { Session } from './session.js';
import { brief, quoted } from './text.js';

const DEFAULT_LIMIT = 50;
const DEFAULT_EVENTS = 1_000;

interface RunsOptions extends FilterOptions {
  readonly limit?: number;
  readonly all?: boolean;
}

interface EventsOptions {
  readonly limit?: number;
  readonly all?: boolean;
}

export function addRunsCommands(commands: ClientCommands): void {
  const runs = commands
    .add('runs', 'list runs', listRuns)
    .description('List runs, newest first.')
    .addHelpText(
      'after',
      "\nExamples:\n  capstan runs --state failed,timed_out --after 24h --search 'nightly backup'" +
        "\n  capstan runs --label env=prod --json | jq -r '.items[].id'",
    );
  addListOperand(runs, '[list] [options]');
  addQuietOption(addFilterOptions(runs))
    .addOption(new Option('--limit <n>', `how many (default: ${DEFAULT_LIMIT})`).argParser(integer(1, 1_000_000)))
    .addOption(new Option('--all', 'all of them').conflicts('limit'));
  const shown = commands.add('show', 'show one run', (session, args) => show(session, idIn(args)));
  addQuietOption(shown.argument('<id>', 'the run'));
  commands
    .add('events', "list a run's events", (session, args, options: EventsOptions) =>
      listEvents(session, idIn(args), options),
    )
    .argument('<id>', 'the run')
    .addOption(
      new Option('--limit <n>', `how many, oldest first (default: ${DEFAULT_EVENTS})`).argParser(integer(1, 1_000_000)),
    )
    .addOption(new Option('--all', 'all of them').conflicts('limit'))
    .addHelpText('after', "\nExample:\n  capstan events RUN_ID --all --json | jq -c '.items[] | [.at, .type, .data]'");
}

const RUN_COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'STATE' },
  { title: 'KIND' },
  { title: 'QUEUE' },
  { title: 'CREATED' },
  { title: 'TOOK' },
  { title: 'NAME', isFlexible: true },
];

function rowOf({ id, state, kind, queue, createdAt, startedAt, endedAt, name }: Run): Field[] {
  return [id, { state }, kind, queue, { at: createdAt }, span(startedAt, endedAt), name];
}

async function listRuns(session: Session, _: readonly string[], options: RunsOptions): Promise<number> {
  const { api, isJson, printer } = session;
  const { limit = DEFAULT_LIMIT, all = false } = options;
  const { items, next } = await api.runs(filterOf(options), all ? Number.POSITIVE_INFINITY : limit);
  if (isJson) await printer.document({ items: items.map(({ document }) => document), next });
  else if (session.isQuiet) await printer.lines(items.map(({ value }) => value.id));
  else {
    await printer.table(
      RUN_COLUMNS,
      items.map(({ value }) => rowOf(value)),
    );
  }
  if (items.length === 0) await session.note('no such runs');
  if (next !== null) await session.note(`these are the newest ${items.length}; more: --limit N or --all`);
  return EXIT_CODES.done.code;
}

async function show({ api, isJson, isQuiet, printer }: Session, id: string): Promise<number> {
  const { document, value } = await api.run(id);
  if (isJson) await printer.document(document);
  else if (isQuiet) await printer.line(value.id);
  else await printer.facts(factsOf(value));
  return EXIT_CODES.done.code;
}

function factsOf(run: Run): [string, Field][] {
  const { end, worker, receipts } = run;
  return [
    ['id', run.id],
    ['state', { state: run.state }],
    ['end', end === null ? null : end.code],
    ['detail', end === null ? null : end.detail],
    ['exit code', end === null ? null : end.exitCode],
    ['signal', end === null ? null : end.signal],
    ['name', run.name],
    ['kind', run.kind],
    ['command', commandOf(run)],
    ['queue', run.queue],
    ['priority', run.priority],
    [
      'labels',
      Object.entries(run.labels)
        .map((pair) => pair.join('='))
        .join(' '),
    ],
    ['timeout', run.timeout],
    ['origin', run.origin],
    ['made by', run.principal],
    ['parent', run.parentId],
    ['worker', worker === null ? null : `${worker.name ?? ''} (${worker.id})`.trim()],
    ['fence', run.fence],
    ['rerun of', run.rerunOf],
    ['progress', brief(run.progress)],
    ['output', brief(run.output)],
    ['created', { at: run.createdAt }],
    ['started', { at: run.startedAt }],
    ['cancel requested', { at: run.cancelRequestedAt }],
    ['ended', { at: run.endedAt }],
    ['took', span(run.startedAt, run.endedAt)],
    ...Object.entries(receipts).map(([what, receipt]): [string, Field] => [`receipt ${what}`, receipt]),
  ];
}

/** What it runs, on one line; of a script its interpreter and arguments. */
function commandOf({ spec }: Run): string | null {
  const texts = (value: unknown) => (Array.isArray(value) ? value.map(String) : []);
  const { argv, interpreter, args, method, url } = spec;
  if (Array.isArray(argv)) return texts(argv).map(quoted).join(' ');
  if (typeof url === 'string') return `${method ?? 'GET'} ${url}`;
  if (interpreter === undefined) return null;
  const program = typeof interpreter === 'string' ? [interpreter] : texts(interpreter);
  return [...program, '(script)', ...texts(args).map(quoted)].join(' ');
}

const EVENT_COLUMNS: readonly Column[] = [
  { title: 'SEQ' },
  { title: 'AT' },
  { title: 'TYPE' },
  { title: 'DATA', isFlexible: true },
];

function eventRow({ seq, at, type, data }: RunEvent): Field[] {
  return [seq, { at }, type, brief(data)];
}

async function listEvents(session: Session, id: string, options: EventsOptions): Promise<number> {
  const { api, isJson, printer } = session;
  const { limit = DEFAULT_EVENTS, all = false } = options;
  const { items, next } = await api.events(id, all ? Number.POSITIVE_INFINITY : limit);
  if (isJson) {
    await printer.document({ items: items.map(({ document }) => document), next });
    return EXIT_CODES.done.code;
  }
  await printer.table(
    EVENT_COLUMNS,
    items.map(({ value }) => eventRow(value)),
  );
  if (next !== null) await session.note(`these are the oldest ${items.length}; more: --limit N or --all`);
  return EXIT_CODES.done.code;
}
