/** `audit verify`, `list` and `receipt`: what the server says of a chain, and what stands in it. */
import { InvalidArgumentError, Option } from 'commander';
import { addQuietOption, type ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { wrongUsage } from './failure.js';
import { checkSpan, instant } from './filters.js';
import { idIn } from './ids.js';
import { integer } from './launch-options.js';
import type { Column, Field } from './print.js';
import type { AuditEntry, ChainVerification } from './resources.js';
import type { Session } from './session.js';
import { grouped } from './text.js';
import { type Progress, verification } from './verification.js';

const DEFAULT_LIMIT = 50;
const INSTALLATION = "the installation's own chain, for its admins";

interface VerifyOptions {
  readonly from?: string;
  readonly to?: string;
  readonly installation?: boolean;
}

interface ListOptions {
  readonly action?: string;
  readonly principal?: string;
  readonly object?: string;
  readonly run?: string;
  readonly after?: string;
  readonly before?: string;
  readonly installation?: boolean;
  readonly limit?: number;
  readonly all?: boolean;
}

export function addAuditCommands(commands: ClientCommands): void {
  commands.addGroup('audit', 'chain, bundles, keys');
  commands
    .add('audit verify', 'check the audit chain', (session, _args, options: VerifyOptions) =>
      verifyAudit(session, options),
    )
    .option('--from <seq>', 'first entry (default: 1)', seq)
    .option('--to <seq>', 'last entry, included (default: the newest)', seq)
    .option('--installation', INSTALLATION);
  const list = commands
    .add('audit list', 'list audit entries, newest first', (session, _args, options: ListOptions) =>
      listAudit(session, options),
    )
    .option('--action <action>', 'such as run.ended')
    .option('--principal <id>', 'who: its id (tok_…, wrk_…), as --json shows it, or system')
    .option('--object <id>', 'on what: an id')
    .option('--run <id>', 'all that is about this run')
    .option('--after <when>', 'later than: 2h ago, or 2026-03-02T00:00:00Z', instant)
    .option('--before <when>', 'earlier than', instant)
    .option('--installation', INSTALLATION)
    .addOption(new Option('--limit <n>', `how many (default: ${DEFAULT_LIMIT})`).argParser(integer(1, 1_000_000)))
    .addOption(new Option('--all', 'all of them').conflicts('limit'))
    .addHelpText('after', '\nExample:\n  capstan audit list --action run.ended --after 24h');
  addQuietOption(list);
  commands
    .add('audit receipt', 'whether an entry still stands', (session, [receipt = '']) => checkReceipt(session, receipt))
    .argument('<receipt>', 'as a change was answered with: CHAIN:SEQ:LINK')
    .addHelpText(
      'after',
      '\nWho keeps a receipt finds out when its entry is cut off or changed: exit code 1.\n\n' +
        'Example:\n  capstan audit receipt org_…:17:5b0c…',
    );
}

function seq(text: string): string {
  if (/^[1-9]\d{0,14}$/.test(text)) return text;
  throw new InvalidArgumentError('Expected the number of an entry, 1 or more.');
}

/** What was given, under the names that the API has for it. */
function queryOf(options: Readonly<Record<string, string | undefined>>, isInstallations = false): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) if (value !== undefined) query.set(name, value);
  if (isInstallations) query.set('chain', 'installation');
  return query;
}

async function verifyAudit(session: Session, { from, to, installation }: VerifyOptions): Promise<number> {
  const { isJson, printer } = session;
  if (Number(from ?? 1) > Number(to ?? Number.POSITIVE_INFINITY)) throw wrongUsage('--from is behind --to');
  const { document, value } = await verification(session, queryOf({ from, to }, installation), (progress) =>
    session.progress(progressLine(progress)),
  );
  if (isJson) await printer.document(document);
  else await printer.facts(factsOf(value));
  if (!value.ok) await noteBreak(session, value);
  return value.ok ? EXIT_CODES.done.code : EXIT_CODES.runFailed.code;
}

/** What each check means, for who has to do something about it. */
const CHECKS: Readonly<Record<string, string>> = Object.freeze({
  gap: 'an entry is missing',
  prev: 'it follows another entry than it says: entries were swapped, or one was put in between',
  link: 'its content was changed after it was linked',
  column: 'what stands beside its content, to find it by, was changed',
  head: 'the head of the chain is another than its last entry',
  behind: 'the chain is shorter than it was, or was made anew from there on',
  anchor: 'it is another entry than the one that an outside authority dated, or its timestamp was changed',
});

function noteBreak(session: Session, { brokenAt, check }: ChainVerification): Promise<void> {
  const means = CHECKS[check ?? ''] ?? 'it does not hold';
  return session.note(
    `entry ${brokenAt}: ${means}; nothing of this chain is signed any more, and work goes on`,
    'keep a copy of the database as it is, and compare it with backups, receipts and bundles of before',
  );
}

function progressLine({ verified, of }: Progress): string {
  return `verified ${[verified, of].map(grouped).join(' of ')} entries`;
}

function factsOf(verified: ChainVerification): [string, Field][] {
  const { ok, chain, entries, head, anchors, brokenAt, check, tookMs } = verified;
  return [
    ['chain', chain],
    ['verdict', { state: ok ? 'ok' : 'broken' }],
    ['broken at', brokenAt],
    ['failed check', check],
    ['entries that hold', entries],
    ['head', `${head.seq}:${head.link}`],
    ['anchors that hold', anchors],
    ['took', `${tookMs}ms`],
  ];
}

const ENTRY_COLUMNS: readonly Column[] = [
  { title: 'SEQ' },
  { title: 'AT' },
  { title: 'ACTION' },
  { title: 'PRINCIPAL', isFlexible: true },
  { title: 'OBJECT' },
];

function rowOf({ seq, at, action, principal, principalName, object }: AuditEntry): Field[] {
  return [seq, { at }, action, principalName ?? principal, object];
}

async function listAudit(session: Session, options: ListOptions): Promise<number> {
  const { api, isJson, printer } = session;
  const { action, principal, object, after, before, installation, limit = DEFAULT_LIMIT, all = false } = options;
  checkSpan(after, before);
  const run = options.run === undefined ? undefined : idIn([options.run]);
  const filter = queryOf({ action, principal, object, run, after, before }, installation);
  const { items, next } = await api.auditEntries(filter, all ? Number.POSITIVE_INFINITY : limit);
  if (isJson) await printer.document({ items: items.map(({ document }) => document), next });
  else if (session.isQuiet) await printer.lines(items.map(({ value }) => String(value.seq)));
  else {
    await printer.table(
      ENTRY_COLUMNS,
      items.map(({ value }) => rowOf(value)),
    );
  }
  if (items.length === 0) await session.note('no such entries');
  if (next !== null) await session.note(`these are the newest ${items.length}; more: --limit N or --all`);
  return EXIT_CODES.done.code;
}

const REASONS: Readonly<Record<string, string>> = Object.freeze({
  missing: 'the chain ends before it, or it was taken out',
  altered: 'its content is not what was linked',
  differs: 'another entry stands in its place',
});

async function checkReceipt(session: Session, receipt: string): Promise<number> {
  const { api, isJson, printer } = session;
  const { document, value } = await api.receipt(receipt);
  const { holds, reason, entry } = value;
  if (isJson) await printer.document(document);
  else {
    await printer.facts([
      ['receipt', value.receipt],
      ['holds', { state: holds ? 'yes' : 'no' }],
      ['why not', reason === null ? null : (REASONS[reason] ?? reason)],
      ['entry', entry === null ? null : entry.seq],
      ['at', { at: entry?.at ?? null }],
      ['action', entry?.action ?? null],
      ['principal', entry?.principalName ?? entry?.principal ?? null],
      ['object', entry?.object ?? null],
    ]);
  }
  if (!holds) await session.note('keep the receipt, and compare with others', 'look: capstan audit verify');
  return holds ? EXIT_CODES.done.code : EXIT_CODES.runFailed.code;
}
