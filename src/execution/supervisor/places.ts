/**
 * The folders of one supervisor: the private folders of its tools on disk, the names of their pipes in memory where that
 * can be had. On ext4 a name costs about 0.5 ms once some thousands were taken away in the last minutes (for each new
 * one it looks through all of those), which at hundreds of tools a second is more than all the rest of a start.
 */
import { mkdtemp, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { KEEPER_PIPE, ROOT_PREFIX, removeAbandoned } from './abandoned.js';
import { makeFifos } from './fifo.js';
import { removeTree } from './folder.js';

/** Where Linux keeps a file system in memory for everybody. */
export const MEMORY_DIR = '/dev/shm';
const TMPFS = 0x01021994;

export interface Places {
  /** Private folders of tools; the keeper's pipe is in it. */
  readonly root: string;
  /** Pipes of tools; the same folder where no other can be had. A pipe of the keeper's name in it, read by the supervisor, keeps others' hands off. */
  readonly pipes: string;
}

/** Makes them, and removes those of supervisors that are dead. Nothing is left behind when it rejects. */
export async function makePlaces(tempDir: string, memoryDir: string): Promise<Places> {
  const root = await mkdtemp(join(tempDir, ROOT_PREFIX));
  let places: Places = { root, pipes: root };
  try {
    if (await isInMemory(memoryDir))
      places = { root, pipes: await mkdtemp(join(memoryDir, ROOT_PREFIX)).catch(() => root) };
    for (const made of new Set([places.root, places.pipes])) await removeAbandoned(made);
    await makeFifos([...new Set([places.root, places.pipes])].map((folder) => join(folder, KEEPER_PIPE)));
    return places;
  } catch (error) {
    await removePlaces(places);
    throw error;
  }
}

/** Resolves also when something could not be removed. */
export async function removePlaces({ root, pipes }: Places): Promise<void> {
  await removeTree(root);
  if (pipes !== root) await removeTree(pipes);
}

async function isInMemory(folder: string): Promise<boolean> {
  const info = await statfs(folder).catch(() => null);
  return info?.type === TMPFS;
}
