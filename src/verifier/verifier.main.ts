#!/usr/bin/env node
/** The verifier as a program of its own: one file, no server, no network, nothing beside Node. */
import { parseArgs } from 'node:util';
import { runVerify, UsageError } from './command.js';

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
        fingerprint: { type: 'string' },
        evidence: { type: 'string' },
        'require-evidence': { type: 'boolean' },
        json: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

async function main(argv: string[]): Promise<number> {
  const { values, positionals: files } = parse(argv);
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const command = { ...values, files, requireEvidence: values['require-evidence'] };
  const { exitCode, text, document } = await runVerify(command, readStdin);
  process.stdout.write(values.json ? `${JSON.stringify(document)}\n` : text);
  return exitCode;
}

process.stdout.on('error', () => process.exit(READER_GONE));
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`capstan-verify: ${error.message}\nsee: capstan-verify --help\n`);
  process.exitCode = 2;
}
