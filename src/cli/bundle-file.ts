/** A bundle on its way from the server into a file. Invariant: what stands under the file's name is the whole of it. */
import { open, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { Failure } from './failure.js';

export interface BundleFile {
  readonly bytes: Buffer;
  /** As the server calls it; null when it gave no name that may be one of a file here. */
  readonly name: string | null;
  readonly receipt: string | null;
}

export async function readBundleFile(response: Response): Promise<BundleFile> {
  const { headers } = response;
  const bytes = Buffer.from(await response.arrayBuffer());
  // A path or a hidden file is none of the server's business.
  const name = /filename="([A-Za-z0-9_][\w.-]{0,200})"/.exec(headers.get('content-disposition') ?? '')?.[1] ?? null;
  return { bytes, name, receipt: headers.get('audit-receipt') };
}

/** Writes beside the file and moves there once all of it is on the disk. Fails with `unable`. */
export async function writeWhole(path: string, bytes: Uint8Array, mayReplace: boolean): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() && !mayReplace) throw cannotWrite(path, 'it exists already', 'name another: -o FILE');
  const draft = `${path}.part-${process.pid}`;
  try {
    // A device or a pipe is written to, not replaced.
    if (found && !found.isFile()) return await writeFile(path, bytes);
    const file = await open(draft, 'wx');
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await unlink(draft).catch(() => undefined);
    throw cannotWrite(path, error instanceof Error && 'code' in error ? String(error.code) : String(error));
  }
}

function cannotWrite(path: string, why: string, ...hints: readonly string[]): Failure {
  const problem = { title: 'output', detail: `cannot write ${path}: ${why}`, code: 'output' };
  return new Failure('unable', problem, hints);
}
