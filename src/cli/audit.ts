/** `audit verify` and `audit list`: what the server says of a chain, and what stands in it. */
import { InvalidArgumentError, Option } from 'commander';
import { parseInstant } from '../kernel/instant.js';
import type { ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { wrongUsage } from './failure.js';
import { idIn } from './ids.js';
import { integer } from './launch-options.js';
import type { Column, Field } from './print.js';
import type { AuditEntry, ChainVerification } from './resources.js';
import type { Session } from './session.js';
import { type Progress, verification } from './verification.js';

const DEFAULT_LIMIT = 50;
/** What is over sooner needs no progress. */
const QUIET_MS = 500;
const CLEAR_LINE = '\r\u001b[K';
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
  commands
    .add('audit list', 'list audit entries, newest first', (session, _args, options: ListOptions) =>
      listAudit(session, options),
    )
    .option('--action <action>', 'such as run.ended')
    .option('--principal <id>', 'who: its id (tok_…, wrk_…), as --json shows it, or system')
    .option('--object <id>', 'on what: an id')
    .option('--run <id>', 'all that is about this run')
    .option('--after <instant>', 'later than, such as 2026-03-02T00:00:00Z', instant)
    .option('--before <instant>', 'earlier than', instant)
    .option('--installation', INSTALLATION)
    .addOption(new Option('--limit <n>', `how many (default: ${DEFAULT_LIMIT})`).argParser(integer(1, 1_000_000)))
    .addOption(new Option('--all', 'all of them').conflicts('limit'));
}

function seq(text: string): string {
  if (/^[1-9]\d{0,14}$/.test(text)) return text;
  throw new InvalidArgumentError('Expected the number of an entry, 1 or more.');
}

function instant(text: string): string {
  if (parseInstant(text)) return text;
  throw new InvalidArgumentError('Expected an instant such as 2026-03-02T00:00:00Z.');
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
  const line = progressLine(session);
  const asked = verification(session, queryOf({ from, to }, installation), line.show);
  const { document, value } = await asked.finally(line.clear);
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

/** On a terminal alone, one line that is gone afterwards. */
function progressLine({ shell, isJson }: Session) {
  const { stderr, timing } = shell;
  const fromMs = timing.monotonicMs() + QUIET_MS;
  let isShown = false;
  return {
    async show({ verified, of }: Progress): Promise<void> {
      if (isJson || !stderr.isTerminal || timing.monotonicMs() < fromMs) return;
      isShown = true;
      const counts = [verified, of].map((count) => count.toLocaleString('en-US'));
      await stderr.write(`${CLEAR_LINE}verified ${counts.join(' of ')} entries`);
    },
    async clear(): Promise<void> {
      if (isShown) await stderr.write(CLEAR_LINE);
    },
  };
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
  const run = options.run === undefined ? undefined : idIn([options.run]);
  const filter = queryOf({ action, principal, object, run, after, before }, installation);
  const { items, next } = await api.auditEntries(filter, all ? Number.POSITIVE_INFINITY : limit);
  if (isJson) {
    await printer.document({ items: items.map(({ document }) => document), next });
    return EXIT_CODES.done.code;
  }
  await printer.table(
    ENTRY_COLUMNS,
    items.map(({ value }) => rowOf(value)),
  );
  if (items.length === 0) await session.note('no such entries');
  if (next !== null) await session.note(`these are the newest ${items.length}; more: --limit N or --all`);
  return EXIT_CODES.done.code;
}
