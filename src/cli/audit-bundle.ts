/** `audit bundle`: entries as a signed file that anybody checks, looked at here before it is kept. */
import { parseInstant } from '../kernel/instant.js';
import type { BundleFile } from './bundle-file.js';
import { writeWhole } from './bundle-file.js';
import type { ClientCommands } from './commands.js';
import { isFields } from './decode.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure, wrongUsage } from './failure.js';
import { idIn } from './ids.js';
import type { Session } from './session.js';
import { printable, quoted } from './text.js';

interface BundleOptions {
  readonly run?: string;
  readonly from?: string;
  readonly to?: string;
  readonly installation?: boolean;
  readonly output?: string;
}

const MAX_HINTS = 10;

/** What is in a bundle, as our verifier reads it. */
interface Contents {
  readonly bundle: string;
  readonly chain: string;
  readonly from: number;
  readonly to: number;
  readonly entries: number;
  readonly fingerprint: string;
  readonly level: string;
  readonly createdAt: string;
}

export function addAuditBundleCommand(commands: ClientCommands): void {
  commands
    .add('audit bundle', 'export entries as a signed file', (session, _args, options: BundleOptions) =>
      exportBundle(session, options),
    )
    .option('--run <id>', 'the entries of a run, and those between them')
    .option('--from <entry>', 'first entry: its number, or an instant such as 2026-03-02T00:00:00Z')
    .option('--to <entry>', 'last entry, included: its number, or an instant')
    .option('--installation', "the installation's own chain, for its admins")
    .option(
      '-o, --output <file>',
      'where to (default: standard output; on a terminal a file of the name it comes with)',
    )
    .addHelpText(
      'after',
      '\nWithout a range: the whole chain, or its newest 10000 entries.\n\n' +
        'Examples:\n  capstan audit bundle --run RUN_ID -o run.json\n' +
        '  capstan verify run.json --fingerprint sha256:…',
    );
}

async function exportBundle(session: Session, options: BundleOptions): Promise<number> {
  const { api, shell, isJson, printer } = session;
  const query = queryOf(options);
  const found = await api.auditBundle(query).catch(withWindows);
  const contents = await contentsOf(found.bytes);
  const file = targetOf(session, options.output, found);
  if (file === undefined) await shell.stdout.write(found.bytes);
  else await writeWhole(file, found.bytes, options.output !== undefined);
  if (isJson && file !== undefined) {
    await printer.document({ file, bytes: found.bytes.length, ...contents, receipt: found.receipt });
  }
  const { from, to, entries, chain, fingerprint } = contents;
  const range = `${entries === 1 ? '1 entry' : `${entries} entries`} (${from} to ${to}) of ${chain}`;
  await session.note(
    `${file === undefined ? '' : `${printable(file)}: `}${range}, signed by ${fingerprint}`,
    ...(isWhole(options) && from > 1 ? [`before these: --from 1 --to ${from - 1}`] : []),
    `check it: capstan verify ${file === undefined ? 'FILE' : printable(quoted(file))} --fingerprint ${fingerprint}`,
  );
  return EXIT_CODES.done.code;
}

/** No range was asked for: all of it, as far as it goes into one bundle. */
function isWhole({ run, from, to }: BundleOptions): boolean {
  return run === undefined && from === undefined && to === undefined;
}

/** Too wide a range: the windows to ask for, as this command takes them. */
function withWindows(error: unknown): never {
  const windows = error instanceof Failure && Array.isArray(error.problem.windows) ? error.problem.windows : [];
  const hints = windows.filter(isFields).map(({ from, to }) => `--from ${Number(from)} --to ${Number(to)}`);
  if (!(error instanceof Failure) || hints.length === 0) throw error;
  const more = hints.length > MAX_HINTS ? [`and so on, ${hints.length} in all (--json tells each)`] : [];
  throw new Failure(error.exit, error.problem, [...hints.slice(0, MAX_HINTS), ...more, ...error.hints]);
}

/** Undefined: standard output. */
function targetOf({ shell }: Session, output: string | undefined, { name }: BundleFile): string | undefined {
  if (output !== undefined) return output === '-' ? undefined : output;
  return shell.stdout.isTerminal ? (name ?? 'bundle.loomseal.json') : undefined;
}

function queryOf({ run, from, to, installation }: BundleOptions): URLSearchParams {
  if (run !== undefined && (from !== undefined || to !== undefined)) {
    throw wrongUsage('--run stands alone, without --from and --to');
  }
  const query = new URLSearchParams();
  if (run !== undefined) query.set('run', idIn([run]));
  if (from !== undefined) query.set('from', boundIn('--from', from));
  if (to !== undefined) query.set('to', boundIn('--to', to));
  if (installation) query.set('chain', 'installation');
  return query;
}

function boundIn(option: string, text: string): string {
  if (/^[1-9]\d{0,14}$/.test(text) || parseInstant(text)) return text;
  throw wrongUsage(`${option}: expected the number of an entry, or an instant such as 2026-03-02T00:00:00Z`);
}

/** Fails with `unable` when the bytes are no bundle that holds, whoever signed it. */
async function contentsOf(bytes: Buffer): Promise<Contents> {
  const { verifyBundle } = await import('../verifier/verify.js');
  const { ok, level, failed, facts } = verifyBundle(bytes);
  if (!ok || !facts?.chain) {
    const why = failed ? ` (${failed.stage}: ${failed.reason})` : '';
    const detail = `what came doesn't verify${why}; nothing was written`;
    throw new Failure('unable', { title: 'bundle', detail, code: 'bundle_refused' }, ['look: capstan audit verify']);
  }
  const { bundleId, createdAt, fingerprint, claims, chain } = facts;
  const { installId, from, to } = chain;
  return { bundle: bundleId, chain: installId, from, to, entries: claims.count, fingerprint, level, createdAt };
}
