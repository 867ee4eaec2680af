/**
 * Text that a command line names: a file, or `-` for standard input. Invariant: no more is read than is taken, whatever
 * stands there; a device has no end and no size.
 */
import { createReadStream } from 'node:fs';
import { Failure, wrongUsage } from './failure.js';
import type { Shell } from './shell.js';

/** A spec with more than this in it is refused by every server. */
const LIMIT_BYTES = 256 * 1024;

/** What travels in JSON is UTF-8 text; everything else fails with `usage`, as does a file that can't be read. */
export async function textIn(shell: Shell, file: string, limitBytes = LIMIT_BYTES): Promise<string> {
  const bytes = file === '-' ? await shell.readStdin(limitBytes) : await bytesOf(file, limitBytes);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw wrongUsage(`${file === '-' ? 'standard input' : file} is not UTF-8 text`);
  }
}

async function bytesOf(file: string, limitBytes: number): Promise<Buffer> {
  try {
    const chunks: Buffer[] = [];
    // One byte more tells that it is too long.
    for await (const chunk of createReadStream(file, { end: limitBytes })) chunks.push(Buffer.from(chunk));
    const bytes = Buffer.concat(chunks);
    if (bytes.length > limitBytes) throw wrongUsage(`${file} holds more than ${limitBytes} bytes`);
    return bytes;
  } catch (error) {
    if (error instanceof Failure) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw wrongUsage(code === 'ENOENT' ? `${file} does not exist` : `${file} cannot be read: ${code}`);
  }
}
