/** Text that a command line names: a file, or `-` for standard input. */
import { readFile, stat } from 'node:fs/promises';
import { Failure, wrongUsage } from './failure.js';
import type { Shell } from './shell.js';

/** A submit with more than this in its body is refused by every server. */
const LIMIT_BYTES = 1024 * 1024;

/** What travels in JSON is UTF-8 text; everything else fails with `usage`, as does a file that can't be read. */
export async function textIn(shell: Shell, file: string): Promise<string> {
  const bytes = file === '-' ? await shell.readStdin(LIMIT_BYTES) : await bytesOf(file);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw wrongUsage(`${file === '-' ? 'standard input' : file} is not UTF-8 text`);
  }
}

async function bytesOf(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size > LIMIT_BYTES) throw wrongUsage(`${file} is larger than ${LIMIT_BYTES} bytes`);
    return await readFile(file);
  } catch (error) {
    if (error instanceof Failure) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw wrongUsage(code === 'ENOENT' ? `${file} does not exist` : `${file} cannot be read: ${code}`);
  }
}
