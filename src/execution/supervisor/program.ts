/**
 * Finds programs before anything is started, so that a missing one is a clear failure and not exit code 127.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { LaunchFailure } from './plan.js';

/** Where this program's own aids are looked for; never on a tool's PATH, which the caller chooses. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/current-system/sw/bin';

/** What a shell would use for a tool without a PATH. */
const DEFAULT_TOOL_PATH = '/usr/local/bin:/usr/bin:/bin';

/** Absolute path of an aid of the operating system, or null. */
export function findSystemProgram(name: string): string | null {
  const found = findProgram(name, SYSTEM_PATH, '/');
  return typeof found === 'string' ? found : null;
}

/** The absolute path that `execvp` would run with this PATH in the folder `cwd`. */
export function findProgram(name: string, path: string | undefined, cwd: string): string | LaunchFailure {
  const folders = name.includes('/') ? null : (path ?? DEFAULT_TOOL_PATH).split(':');
  const candidates = folders === null ? [resolve(cwd, name)] : folders.map((folder) => resolve(cwd, folder, name));
  const files = candidates.filter(isFile);
  const runnable = files.find(isRunnable);
  if (runnable !== undefined) return runnable;
  if (files[0] !== undefined) return { code: 'unavailable', detail: `program not executable: ${files[0]}` };
  const where = folders === null ? '' : ` (PATH ${folders.join(':')})`;
  return { code: 'unavailable', detail: `program not found: ${name}${where}${adviceOn(name)}` };
}

/** For what people write who think of their own shell and their own folder. */
function adviceOn(name: string): string {
  if (/[\s|&;<>$]/.test(name)) return '; there is no shell: a shell line needs sh -c';
  return name.startsWith('./') || name.startsWith('../')
    ? '; a run works in a folder of its own: name it whole, or set cwd'
    : '';
}

/** Null when a tool can be started in `cwd`. */
export function checkFolder(cwd: string): LaunchFailure | null {
  const problem = folderProblem(cwd);
  return problem === null ? null : { code: 'invalid_input', detail: `working directory ${problem}: ${cwd}` };
}

function folderProblem(cwd: string): string | null {
  if (!cwd.startsWith('/')) return 'is not an absolute path';
  try {
    if (!statSync(cwd).isDirectory()) return 'is not a folder';
  } catch {
    return 'not found';
  }
  return isRunnable(cwd) ? null : 'may not be entered';
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
