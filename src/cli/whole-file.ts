/** A file that stands there whole, or as it was before. */
import { randomUUID } from 'node:crypto';
import { open, rename, unlink } from 'node:fs/promises';

/** Writes beside the file and moves there once all of it is on the disk. Fails with the error of the system. */
export async function replaceFile(path: string, content: string | Uint8Array, mode = 0o666): Promise<void> {
  const draft = `${path}.part-${randomUUID()}`;
  try {
    const file = await open(draft, 'wx', mode);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await unlink(draft).catch(() => undefined);
    throw error;
  }
}

/** `ENOSPC`, as far as the system has said so. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
