/** The way to an embedded PostgreSQL for who didn't start it. Nothing here makes or changes anything. */
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { explain } from './data-directory.js';
import { occupancy } from './occupancy.js';
import { ownerUrl } from './sessions.js';

export type Beside =
  | { readonly state: 'none' | 'stopped' }
  /** Past the password, `url` opens the application's own database. */
  | { readonly state: 'running'; readonly url: string };

/** @throws DataDirError when this user may not read the folder. */
export function lookBeside(dataDir: string, databaseName: string): Beside {
  const path = resolve(dataDir);
  const cluster = join(path, 'postgres');
  try {
    if (!isThere(join(cluster, 'PG_VERSION'))) return { state: 'none' };
    const found = occupancy(cluster);
    if (found.state !== 'running') return { state: 'stopped' };
    const password = readFileSync(join(path, 'postgres-password'), 'utf8').trim();
    return { state: 'running', url: ownerUrl({ port: found.port, password }, databaseName) };
  } catch (error) {
    throw explain(error, path);
  }
}

/** @throws what the system says, when that can't be known. */
function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
