#!/usr/bin/env node
/** The verifier as a program of its own: one file, no server, no network, nothing beside Node. */
import { parseArgs } from 'node:util';
import { runVerify, UsageError } from './command.js';
import { shown, shownJson } from './shown.js';

const USAGE = `Usage: capstan-verify FILE… [options]

Verifies LoomSeal 0.1 bundles offline; several windows of one chain are joined. FILE may be - for standard input.

  --fingerprint FP     the key that must have signed: sha256: and 64 hexadecimal digits, learned elsewhere
  --evidence DIR       compare the artifacts in this folder with those that the entries name
  --require-evidence   not verified unless every artifact is there
  --json               one JSON document and nothing else
  --help               this page

Exit codes: 0 verified   1 not verified   2 wrong usage, or a file that can't be read
`;

const READER_GONE = 141;

async function readStdin(limit: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > limit) throw new UsageError(`standard input holds more than ${limit} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function parse(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        fingerprint: { type: 'string', multiple: true },
        evidence: { type: 'string', multiple: true },
        'require-evidence': { type: 'boolean' },
        json: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** A file may be called like an option: it must not replace what was asked for. */
function onlyOne(name: string, values: readonly string[] = []): string | undefined {
  if (values.length > 1) throw new UsageError(`${name} is there twice`);
  return values[0];
}

async function main(argv: string[]): Promise<number> {
  const { values, positionals: files } = parse(argv);
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const fingerprint = onlyOne('--fingerprint', values.fingerprint);
  const evidence = onlyOne('--evidence', values.evidence);
  const command = { files, fingerprint, evidence, requireEvidence: values['require-evidence'] };
  const { exitCode, text, document } = await runVerify(command, readStdin);
  process.stdout.write(values.json ? `${shownJson(document)}\n` : text);
  return exitCode;
}

process.stdout.on('error', (error) => process.exit('code' in error && error.code === 'EPIPE' ? READER_GONE : 2));
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`capstan-verify: ${shown(error.message, 500)}\nsee: capstan-verify --help\n`);
  process.exitCode = 2;
}
