/** The first token of an embedded install: made once, kept in a file that only its owner reads. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generateToken } from '../access/access.service.js';
import { DataDirError } from '../platform/postgres/data-directory.js';

export function adminTokenFile(dataDir: string): string {
  return join(dataDir, 'admin-token');
}

/** The token in the data folder's file, which is made when it is missing. Throws `DataDirError`. */
export async function adminToken(dataDir: string): Promise<string> {
  const file = adminTokenFile(dataDir);
  const token = generateToken();
  try {
    await writeFile(file, `${token}\n`, { flag: 'wx', mode: 0o600 });
    return token;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) {
      throw new DataDirError(`${file} can't be written: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const kept = (await readFile(file, 'utf8')).trim();
  if (!/^[\x21-\x7e]{24,255}$/.test(kept)) {
    throw new DataDirError(`${file} holds no token: remove the file, and the next start makes a new one`);
  }
  return kept;
}
