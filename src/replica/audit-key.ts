/**
 * The signing key of an embedded install: made once, before the installation has any, and kept in a file that only its
 * owner reads. Invariant: a key that was lost is never quietly replaced, as what it signed would look like another's.
 */
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { newSeed } from '../kernel/signing-key.js';
import { signingSeed } from '../platform/config/parsers.js';
import { errorCode } from '../platform/db/db.js';
import { DataDirError } from '../platform/postgres/data-directory.js';

function auditKeyFile(dataDir: string): string {
  return join(dataDir, 'audit-key');
}

/** The seed in the data folder's file; `undefined` when there is no such file. Throws `DataDirError`. */
export async function keptSeed(dataDir: string): Promise<Buffer | undefined> {
  const file = auditKeyFile(dataDir);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new DataDirError(`${file} can't be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  const seed = signingSeed.parse(text.replace(/\r?\n$/, ''));
  if (seed) return seed;
  throw new DataDirError(
    `${file} holds no signing key: put back the file as it was, or move it away to start without signed bundles`,
  );
}

/** Makes the file with a new seed. It is there as a whole or not at all. Throws `DataDirError`. */
export async function makeSeed(dataDir: string): Promise<Buffer> {
  const file = auditKeyFile(dataDir);
  const draft = `${file}.new`;
  const seed = newSeed();
  try {
    const handle = await open(draft, 'w', 0o600);
    try {
      await handle.writeFile(`${seed.toString('base64')}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
    // The key is put on record next; the file must not be lost behind that.
    const folder = await open(dataDir, 'r');
    await folder.sync().finally(() => folder.close());
  } catch (error) {
    throw new DataDirError(`${file} can't be written: ${error instanceof Error ? error.message : String(error)}`);
  }
  return seed;
}
