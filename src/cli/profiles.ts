/**
 * Profiles: servers under a name, each with the token for it, in one file of the user's. Invariants: nobody else can read
 * the file, or it isn't read; it is written whole or not at all, and no change undoes another; a token stands beside the one URL that it was given for.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { mkdir, open, realpath, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { closest } from 'fastest-levenshtein';
import { type Fields, isFields } from './decode.js';
import { Failure, wrongUsage } from './failure.js';
import { errorCode, replaceFile } from './whole-file.js';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const OTHERS = 0o077;
/** Some ten thousand profiles. */
const LIMIT_BYTES = 4 * 1024 * 1024;
const LOCK_WAIT_MS = 3_000;
const LOCK_LOOK_EVERY_MS = 20;

export interface Profile {
  readonly url: string;
  readonly token: string | null;
}

export interface Profiles {
  /** The one that is used when nothing else is said. */
  readonly current: string | null;
  readonly named: ReadonlyMap<string, Profile>;
}

const NONE: Profiles = { current: null, named: new Map() };

export function profilesFile(configDir: string): string {
  return join(configDir, 'config.json');
}

export function profileName(text: string): string {
  if (NAME.test(text)) return text;
  throw wrongUsage('a profile is called by 1 to 63 letters, digits, dots, dashes and underscores, such as prod');
}

/** Of a user who has none, none. Fails with `usage` when others can read the file, or it is damaged. */
export function readProfiles(configDir: string | undefined): Profiles {
  if (configDir === undefined) return NONE;
  const path = profilesFile(configDir);
  const text = textOf(path);
  return text === undefined ? NONE : decoded(path, text);
}

function textOf(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw unusable(`${path} cannot be read: ${code}`);
  }
  try {
    const { mode, size } = fstatSync(file);
    if ((mode & OTHERS) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, '0');
      throw unusable(`${path} holds tokens, and others may read or write it (mode ${shown})`, `chmod 600 ${path}`);
    }
    if (size > LIMIT_BYTES) throw damaged(path, `more than ${LIMIT_BYTES} bytes`);
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

/** No text of the file is ever shown: it may be a token. */
function decoded(path: string, text: string): Profiles {
  const document = parsed(path, text);
  const { current = null, profiles } = document;
  if (!isFields(profiles)) throw damaged(path, 'it has no profiles');
  const named = new Map<string, Profile>();
  for (const [name, value] of Object.entries(profiles)) {
    const { url, token = null } = isFields(value) ? value : {};
    const isWhole = typeof url === 'string' && (token === null || typeof token === 'string');
    if (!NAME.test(name) || !isWhole) throw damaged(path, 'one of its profiles is none');
    named.set(name, { url, token });
  }
  if (current !== null && typeof current !== 'string') throw damaged(path, 'current is no name');
  return { current, named };
}

function parsed(path: string, text: string): Fields {
  try {
    const document: unknown = JSON.parse(text);
    if (isFields(document)) return document;
  } catch {
    throw damaged(path, 'it is not JSON');
  }
  throw damaged(path, 'it is not an object');
}

function damaged(path: string, why: string): Failure {
  return unusable(
    `${path} is damaged: ${why}`,
    'mend it, or move it away and make the profiles anew: capstan config set',
  );
}

function unusable(detail: string, ...hints: readonly string[]): Failure {
  return new Failure('usage', { title: 'profiles', detail, code: 'profiles' }, hints);
}

/** The one of this name. `source` is who named it. */
export function profileCalled({ named }: Profiles, name: string, source: string): Profile {
  const found = named.get(name);
  if (found) return found;
  const near = named.size === 0 ? undefined : closest(name, [...named.keys()]);
  throw wrongUsage(
    `${source}: there is no profile of that name`,
    ...(near === undefined ? [] : [`did you mean ${near}?`]),
    'look: capstan config list',
  );
}

interface Change {
  readonly before: Profiles;
  readonly after: Profiles;
}

/**
 * Reads, changes and writes as one: whoever else changes them waits, and what stands there stays when `change` throws.
 * Fails with `unable` when it can't be written.
 */
export async function changeProfiles(configDir: string, change: (before: Profiles) => Profiles): Promise<Change> {
  await mkdir(configDir, { recursive: true, mode: 0o700 }).catch((error) =>
    Promise.reject(unwritten(configDir, error)),
  );
  // Some keep the file elsewhere and link to it.
  const path = await realpath(profilesFile(configDir)).catch(() => profilesFile(configDir));
  const lock = `${path}.lock`;
  await take(lock);
  try {
    const before = readProfiles(configDir);
    const after = change(before);
    const document = { current: after.current, profiles: Object.fromEntries(after.named) };
    const text = JSON.stringify(document, undefined, 2);
    await replaceFile(path, `${text}\n`, 0o600).catch((error) => Promise.reject(unwritten(path, error)));
    return { before, after };
  } finally {
    await unlink(lock);
  }
}

/** A change takes a moment: a lock that stands for long was left behind by a process that was killed. */
async function take(lock: string): Promise<void> {
  const giveUpAt = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      return await (await open(lock, 'wx', 0o600)).close();
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw unwritten(lock, error);
    }
    if (performance.now() > giveUpAt) {
      throw unable(`${lock} says that another capstan changes the profiles`, `if none does: rm ${lock}`);
    }
    await delay(LOCK_LOOK_EVERY_MS);
  }
}

function unwritten(path: string, error: unknown): Failure {
  return unable(`cannot write ${path}: ${errorCode(error)}`);
}

function unable(detail: string, ...hints: readonly string[]): Failure {
  return new Failure('unable', { title: 'profiles', detail, code: 'profiles' }, hints);
}
