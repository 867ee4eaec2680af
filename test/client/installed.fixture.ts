/** A project that has this package installed: the declarations as the build makes them, beside the compiled client. */
import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { compiledSource } from '../compiled.js';

const ROOT = resolve(import.meta.dirname, '../..');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const run = promisify(execFile);

/** What the client needs to run and its declarations to be read; the types of Node are the project's own. */
const PACKAGES = ['openapi-fetch', 'openapi-typescript-helpers', 'eventsource-parser', '@types/node', 'undici-types'];

export interface Project {
  /** Writes a file beside package.json. */
  write(name: string, text: string): Promise<void>;
  /** What the compiler has to say about files; nothing when it is content. Not spared: the declarations of packages. */
  faults(names: readonly string[], ...options: readonly string[]): Promise<string>;
  /** Standard output of a program; fails when it does. */
  output(name: string, env: Readonly<Record<string, string>>): Promise<string>;
  remove(): Promise<void>;
}

export async function installedProject(): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-project-'));
  const modules = join(folder, 'node_modules');
  const capstan = join(modules, 'capstan');
  for (const name of PACKAGES) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  await cp(join(await compiledSource(), 'client'), join(capstan, 'dist/client'), { recursive: true });
  await copyFile(join(ROOT, 'package.json'), join(capstan, 'package.json'));
  await run(process.execPath, [TSC, '-p', join(ROOT, 'tsconfig.client.json'), '--outDir', join(capstan, 'dist')]);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'of-yours', type: 'module' }));
  return {
    write: (name, text) => writeFile(join(folder, name), text),
    faults: async (names, ...options) => {
      const args = [TSC, '--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2023', ...options, ...names];
      return await run(process.execPath, args, { cwd: folder }).then(
        () => '',
        (error: { stdout: string }) => error.stdout,
      );
    },
    output: async (name, env) => {
      const { PATH = '' } = process.env;
      return (await run(process.execPath, [join(folder, name)], { cwd: folder, env: { PATH, ...env } })).stdout;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
