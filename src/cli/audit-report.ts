/** `audit report`: bundles as one page for people, which are verified before anything of them is shown. Asks no server. */
import { resolve } from 'node:path';
import { productVersion } from '../platform/http/product.js';
import type { Verdict } from '../verifier/verdict.js';
import { writeWhole } from './bundle-file.js';
import { type ClientCommands, once } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { wrongUsage } from './failure.js';
import { Entries } from './report/entries.js';
import { reportFacts } from './report/facts.rules.js';
import { reportPage } from './report/page.js';
import type { Session } from './session.js';
import { printable } from './text.js';

interface ReportOptions {
  readonly output?: string;
  readonly fingerprint?: string;
}

export function addAuditReportCommand(commands: ClientCommands): void {
  commands
    .addLocal('audit report', 'make a page for people of bundles', makeReport)
    .argument('<bundle...>', 'bundles of one chain, in any order; - is standard input')
    .option('-o, --output <file>', 'the HTML file to write (default: standard output)')
    .option(
      '--fingerprint <fp>',
      'the key that must have signed, sha256: and 64 hexadecimal digits',
      once('--fingerprint'),
    )
    .addHelpText(
      'after',
      '\nOne HTML file that needs no network, no script and no server, and prints well.\n' +
        'Of bundles that do not verify it says why and shows nothing else: exit code 1.\n\n' +
        'Example:\n  capstan audit report january.json -o january.html',
    );
}

/** 0 verified, 1 not. */
async function makeReport(session: Session, files: readonly string[], options: ReportOptions): Promise<number> {
  const { shell, isJson, printer } = session;
  const { output, fingerprint } = options;
  if (isJson && output === undefined) throw wrongUsage('--json needs -o FILE: the page itself is HTML');
  // The page would stand where the evidence was.
  if (output !== undefined && files.some((file) => resolve(file) === resolve(output))) {
    throw wrongUsage(`${output} is a bundle to read: name another file for the page`);
  }
  const entries = new Entries();
  const verdict = await verified(session, files, fingerprint, (bytes) => entries.add(bytes));
  const page = Buffer.from(pageOf(verdict, files, entries));
  if (output === undefined) await shell.stdout.write(page);
  else await writeWhole(output, page, true);
  const { ok, level, failed } = verdict;
  if (isJson) await printer.document({ file: output, bytes: page.length, ok, level, ...(failed && { failed }) });
  await session.note(`${output === undefined ? '' : `${printable(output)}: `}${standing(verdict)}`);
  return ok ? EXIT_CODES.done.code : EXIT_CODES.runFailed.code;
}

async function verified(
  { shell }: Session,
  files: readonly string[],
  fingerprint: string | undefined,
  onBundle: (bytes: Uint8Array) => void,
): Promise<Verdict> {
  const { verifyFiles, UsageError } = await import('../verifier/command.js');
  try {
    return (await verifyFiles({ files, fingerprint }, (limit) => shell.readStdin(limit), onBundle)).verdict;
  } catch (error) {
    throw error instanceof UsageError ? wrongUsage(error.message, 'see: capstan audit report --help') : error;
  }
}

function pageOf(verdict: Verdict, files: readonly string[], found: Entries): string {
  const { ok, facts, proven, notProven } = verdict;
  const entries = ok ? found.inOrder() : [];
  return reportPage({
    title: ok && facts ? `Audit report: ${facts.subject.id}` : 'Audit report',
    isVerified: ok,
    verdict: standing(verdict),
    standing: ok && facts ? factsOf(facts) : [],
    proven,
    notProven,
    note: noteOn(ok, files),
    facts: reportFacts(entries),
    entries,
  });
}

function noteOn(isVerified: boolean, files: readonly string[]): string {
  const made = `Made by Capstan ${productVersion()} at ${new Date().toISOString()} of ${files.join(', ')}.`;
  if (!isVerified) return `${made} Nothing that stands in there is shown. Ask whoever gave it to you for another copy.`;
  return `${made} The page itself proves nothing: check the bundle with capstan verify.`;
}

function standing({ ok, level, failed }: Verdict): string {
  if (ok) return `Verified: ${level}`;
  const { stage, reason, seq } = failed ?? { stage: 'parse', reason: 'no reason' };
  return `Not verified (${stage}: ${seq === undefined ? '' : `entry ${seq}: `}${reason})`;
}

function factsOf(facts: NonNullable<Verdict['facts']>): [name: string, value: string][] {
  const { claims, chain, anchors, producer } = facts;
  const rows: [string, string][] = [
    ['Period', `${claims.firstAt} to ${claims.lastAt}`],
    ['Entries', chain ? `${chain.from} to ${chain.to} (${claims.count})` : String(claims.count)],
    ['Signed by', `${facts.fingerprint} (${facts.isPinned ? 'the key that was asked for' : 'not compared with any'})`],
    ['Producer', `${producer.product} ${producer.version}, ${producer.installId}`],
    ['Bundle', `${facts.bundleId}, made ${facts.createdAt}`],
  ];
  if (chain) rows.push(['Head', `${chain.head.seq}:${chain.head.link}${chain.headMatched ? '' : ' (declared only)'}`]);
  for (const { seq, timestamp, ref } of anchors) {
    if (timestamp) rows.push(['Timestamp', `entry ${seq} at ${timestamp.genTime} by ${timestamp.signer}, ${ref}`]);
  }
  return rows;
}
