/** `runs`, `show`, `logs` and `cancel`: what there is, what it wrote, and its end before its time. */
import { Option } from 'commander';
import type { ClientCommands } from './commands.js';
import { isFields } from './decode.js';
import { EXIT_CODES } from './exit-codes.js';
import { wrongUsage } from './failure.js';
import { follow } from './follow.js';
import { endLine } from './launch.js';
import { integer, pairs } from './launch-options.js';
import { OutputCopy, type StreamName } from './output.js';
import { type Column, type Field, span } from './print.js';
import type { Run } from './resources.js';
import type { Session } from './session.js';
import { quoted } from './text.js';

const DEFAULT_LIMIT = 50;

interface RunsOptions {
  readonly state?: readonly string[];
  readonly queue?: string;
  readonly kind?: string;
  readonly label?: ReadonlyMap<string, string>;
  readonly limit?: number;
  readonly all?: boolean;
}

interface LogsOptions {
  readonly stream?: 'stdout' | 'stderr';
  readonly follow?: boolean;
}

export function addRunsCommands(commands: ClientCommands): void {
  commands
    .add('runs', 'list runs, newest first', listRuns)
    .option('--state <state>', 'in this state; may be given again', collect)
    .option('--queue <queue>', 'of this queue')
    .option('--kind <kind>', 'of this kind')
    .option('--label <key=value>', 'with this label; may be given again', pairs('--label'))
    .addOption(new Option('--limit <n>', `how many (default: ${DEFAULT_LIMIT})`).argParser(integer(1, 1_000_000)))
    .addOption(new Option('--all', 'all of them').conflicts('limit'));
  commands.add('show', 'show one run', (session, args) => show(session, idIn(args))).argument('<id>', 'the run');
  commands
    .add('logs', 'print what a run wrote', (session, args, options: LogsOptions) => logs(session, idIn(args), options))
    .argument('<id>', 'the run')
    .addOption(new Option('--stream <name>', 'one stream (default: both as they came)').choices(['stdout', 'stderr']))
    .option('--follow', 'go on until the run ends');
  commands.add('cancel', 'cancel a run', (session, args) => cancel(session, idIn(args))).argument('<id>', 'the run');
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(',')];
}

/** Whether there is such a run is the server's to say; what can't be an id would only make another path. */
function idIn(args: readonly string[]): string {
  const [id = ''] = args;
  if (/^[A-Za-z0-9_-]{1,90}$/.test(id)) return id;
  throw wrongUsage('expected the id of a run, such as run_01h455vb4pex5vsknk084sn02q');
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
  const { state = [], kind, queue, label = new Map(), limit = DEFAULT_LIMIT, all = false } = options;
  const filter = { state, labels: [...label], ...(kind && { kind }), ...(queue && { queue }) };
  const { items, next } = await api.runs(filter, all ? Number.POSITIVE_INFINITY : limit);
  if (isJson) {
    await printer.document({ items: items.map(({ document }) => document), next });
    return EXIT_CODES.done.code;
  }
  await printer.table(
    RUN_COLUMNS,
    items.map(({ value }) => rowOf(value)),
  );
  if (items.length === 0) await session.note('no such runs');
  if (next !== null) await session.note(`these are the newest ${items.length}; more: --limit N or --all`);
  return EXIT_CODES.done.code;
}

async function show({ api, isJson, printer }: Session, id: string): Promise<number> {
  const { document, value } = await api.run(id);
  if (isJson) await printer.document(document);
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
    ['worker', worker === null ? null : `${worker.name ?? ''} (${worker.id})`.trim()],
    ['fence', run.fence],
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
  const { argv, interpreter, args } = isFields(spec) ? spec : {};
  if (Array.isArray(argv)) return texts(argv).map(quoted).join(' ');
  if (interpreter === undefined) return null;
  const program = typeof interpreter === 'string' ? [interpreter] : texts(interpreter);
  return [...program, '(script)', ...texts(args).map(quoted)].join(' ');
}

async function logs(session: Session, id: string, options: LogsOptions): Promise<number> {
  const { api, isJson, printer, shell } = session;
  const chunks: Uint8Array[] = [];
  const collector = { write: async (data: Uint8Array) => void chunks.push(data) };
  const to = isJson ? collector : shell.stdout;
  const stream: StreamName = options.stream;
  if (options.follow) {
    const { value } = await follow(session, id, { copies: [{ stream, to }] });
    await session.note(endLine(value));
  } else {
    const lost = async () => undefined;
    await new OutputCopy(api.http, id, stream, { write: (data) => to.write(data), lost }).copyNew();
  }
  if (isJson) await printer.document({ run: id, stream: stream ?? null, ...encoded(Buffer.concat(chunks)) });
  return EXIT_CODES.done.code;
}

/** JSON holds text: bytes that are none travel as base64. */
function encoded(data: Buffer): { encoding: 'utf8' | 'base64'; data: string } {
  const text = data.toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(data);
  return isText ? { encoding: 'utf8', data: text } : { encoding: 'base64', data: data.toString('base64') };
}

async function cancel({ api, isJson, printer }: Session, id: string): Promise<number> {
  const { document, value } = await api.cancel(id);
  if (isJson) await printer.document(document);
  else await printer.line(value.endedAt === null ? `${value.id} is being stopped` : `${value.id} ${value.state}`);
  return EXIT_CODES.done.code;
}
