/** A bundle on its way from the server into a file. Invariant: what stands under the file's name is the whole of it. */
import { stat, writeFile } from 'node:fs/promises';
import { Failure } from './failure.js';
import { errorCode, replaceFile } from './whole-file.js';

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

/** Fails with `unable`. */
export async function writeWhole(path: string, bytes: Uint8Array, mayReplace: boolean): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() && !mayReplace) throw cannotWrite(path, 'it exists already', 'name another: -o FILE');
  try {
    // A device or a pipe is written to, not replaced.
    if (found && !found.isFile()) await writeFile(path, bytes);
    else await replaceFile(path, bytes);
  } catch (error) {
    throw cannotWrite(path, errorCode(error));
  }
}

function cannotWrite(path: string, why: string, ...hints: readonly string[]): Failure {
  const problem = { title: 'output', detail: `cannot write ${path}: ${why}`, code: 'output' };
  return new Failure('unable', problem, hints);
}
