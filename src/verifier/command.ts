/** The command `verify`, as two programs offer it: files in, a verdict as text and as a document out. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isDigest } from './bundle.js';
import { joinParts, type Part } from './join.js';
import { report } from './report.js';
import { shown } from './shown.js';
import type { Verdict } from './verdict.js';
import { type VerifyOptions, verifyWindow } from './verify.js';

export interface VerifyCommand {
  /** `-` is standard input. */
  readonly files: readonly string[];
  readonly fingerprint?: string | undefined;
  /** Folder of artifacts. */
  readonly evidence?: string | undefined;
  readonly requireEvidence?: boolean | undefined;
}

export interface Outcome {
  /** 0 verified, 1 not. */
  readonly exitCode: 0 | 1;
  readonly text: string;
  /** The verdict, of all files together, and in short that of each. */
  readonly document: Verdict & { readonly files: readonly object[] };
}

/** The question could not be asked: exit code 2. */
export class UsageError extends Error {}

/** Some ten times the largest that Capstan makes; to read it takes about half a gigabyte of memory. */
const MAX_BUNDLE_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

/** What became of some files: of each, and of all of them together. */
export interface Verified {
  readonly verdict: Verdict;
  readonly parts: readonly Part[];
}

/**
 * One file after the other, so that memory holds one bundle at a time. `readStdin` gets the limit of bytes; `onBundle`
 * is told the bytes of each bundle that verified by itself.
 */
export async function verifyFiles(
  { files, fingerprint, evidence, requireEvidence }: VerifyCommand,
  readStdin: (limit: number) => Promise<Uint8Array>,
  onBundle: (bytes: Uint8Array) => void = () => undefined,
): Promise<Verified> {
  if (files.length === 0) throw new UsageError('no bundle is named');
  if (files.filter((file) => file === '-').length > 1) throw new UsageError('standard input is read once');
  if (fingerprint !== undefined && !isDigest(fingerprint)) {
    throw new UsageError('--fingerprint: expected sha256: and 64 lower-case hexadecimal digits');
  }
  const given = evidence === undefined ? undefined : await digestsIn(evidence);
  const options: VerifyOptions = { fingerprint, evidence: given, requireEvidence };
  const parts: Part[] = [];
  for (const file of files) {
    const bytes = file === '-' ? await readStdin(MAX_BUNDLE_BYTES) : await readFile(file);
    const part = { file, ...verifyWindow(bytes, options) };
    if (part.verdict.ok) onBundle(bytes);
    parts.push(part);
  }
  const alone = badPart(parts) ?? (parts.length === 1 ? parts[0] : undefined);
  return { verdict: alone?.verdict ?? joinParts(parts, options), parts };
}

/** The whole command. */
export async function runVerify(
  command: VerifyCommand,
  readStdin: (limit: number) => Promise<Uint8Array>,
): Promise<Outcome> {
  const { verdict, parts } = await verifyFiles(command, readStdin);
  const files = parts.map(({ file, verdict: { ok, level, failed, facts } }) => {
    const { from, to } = facts?.chain ?? {};
    return { file, ok, level, ...(failed && { failed }), ...(from !== undefined && { from, to }) };
  });
  const bad = badPart(parts);
  const text = report(verdict, bad ? [bad.file] : parts.map(({ file }) => file));
  return { exitCode: verdict.ok ? 0 : 1, text, document: { ...verdict, files } };
}

function badPart(parts: readonly Part[]): Part | undefined {
  return parts.find(({ verdict }) => !verdict.ok);
}

async function readFile(file: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunksOf(file)) {
    size += chunk.length;
    if (size > MAX_BUNDLE_BYTES) throw new UsageError(`${shown(file)} holds more than ${MAX_BUNDLE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Of all files below the folder, whatever they are called. */
async function digestsIn(folder: string): Promise<ReadonlySet<string>> {
  const digests = new Set<string>();
  const found = await orUsage(folder, readdir(folder, { recursive: true, withFileTypes: true }));
  for (const entry of found) {
    const path = join(entry.parentPath, entry.name);
    // A link counts as the file it leads to; one to a folder may lead back up.
    const isFile = entry.isSymbolicLink() ? (await orUsage(path, stat(path))).isFile() : entry.isFile();
    if (!isFile) continue;
    const hash = createHash('sha256');
    for await (const chunk of chunksOf(path)) hash.update(chunk);
    digests.add(`sha256:${hash.digest('hex')}`);
  }
  return digests;
}

async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: CHUNK_BYTES })) yield chunk;
  } catch (error) {
    throw unreadable(file, error);
  }
}

function orUsage<T>(path: string, promise: Promise<T>): Promise<T> {
  return promise.catch((error: unknown) => {
    throw unreadable(path, error);
  });
}

function unreadable(path: string, error: unknown): UsageError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  return new UsageError(code === 'ENOENT' ? `${shown(path)} does not exist` : `${shown(path)} cannot be read: ${code}`);
}
