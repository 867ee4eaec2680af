/**
 * The sources compiled to JavaScript, for tests that start real processes of the product.
 * The result lies below `node_modules/.cache`, so that packages resolve, in a folder named by a digest of the sources:
 * made once, shared by every test process, never stale.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Options, transform } from '@swc/core';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CACHE = join(ROOT, 'node_modules', '.cache', 'capstan-test');
const STALE_AFTER_MS = 24 * 60 * 60 * 1000;

const SWC_OPTIONS: Options = {
  swcrc: false,
  sourceMaps: 'inline',
  module: { type: 'nodenext' },
  jsc: {
    target: 'es2023',
    parser: { syntax: 'typescript', decorators: true, dynamicImport: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
    keepClassNames: true,
  },
};

let compiled: Promise<string> | undefined;

/** Absolute path of a folder laid out like `dist/`; what stands beside `dist/` in the repository stands beside it too. */
export function compiledSource(): Promise<string> {
  compiled ??= compile();
  return compiled;
}

async function compile(): Promise<string> {
  const sources = await readSources(join(ROOT, 'src'));
  // The folder too: a copy of this one may share its node_modules, and what stands beside a build is linked there.
  const hash = createHash('sha256').update(JSON.stringify([ROOT, SWC_OPTIONS]));
  for (const { file, content } of sources) hash.update(`${file}\0`).update(content);
  const target = join(CACHE, hash.digest('hex').slice(0, 16));
  if (!existsSync(target)) await build(target, sources);
  return join(target, 'dist');
}

interface Source {
  /** Relative to `src/`. */
  readonly file: string;
  readonly content: Buffer;
}

async function build(target: string, sources: readonly Source[]): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  await removeStale();
  const draft = await mkdtemp(join(CACHE, 'draft-'));
  try {
    // Some tests start a process as another user.
    await chmod(draft, 0o755);
    await Promise.all(sources.map((source) => emit(source, join(draft, 'dist'))));
    // `type: module` counts for the nearest package.json, and none above node_modules is looked at.
    await copyFile(join(ROOT, 'package.json'), join(draft, 'package.json'));
    for (const entry of await readdir(ROOT, { withFileTypes: true })) {
      const isBeside = entry.isDirectory() && !/^(\..*|src|test|dist|node_modules)$/.test(entry.name);
      if (isBeside) await symlink(join(ROOT, entry.name), join(draft, entry.name));
    }
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another test process may have been first; its result has the same digest.
    if (!existsSync(target)) throw error;
  }
}

async function emit({ file, content }: Source, dist: string): Promise<void> {
  const isTypeScript = /\.ts$/.test(file) && !/\.d\.ts$/.test(file);
  const target = join(dist, isTypeScript ? file.replace(/\.ts$/, '.js') : file);
  await mkdir(dirname(target), { recursive: true });
  const options = { ...SWC_OPTIONS, filename: join(ROOT, 'src', file) };
  await writeFile(target, isTypeScript ? (await transform(content.toString(), options)).code : content);
}

async function readSources(folder: string): Promise<Source[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((file) => !file.startsWith('console/'))
    .sort();
  return Promise.all(files.map(async (file) => ({ file, content: await readFile(join(folder, file)) })));
}

async function removeStale(): Promise<void> {
  for (const name of await readdir(CACHE)) {
    const path = join(CACHE, name);
    const info = await stat(path).catch(() => undefined);
    if (info !== undefined && Date.now() - info.mtimeMs > STALE_AFTER_MS) {
      await rm(path, { recursive: true, force: true });
    }
  }
}
