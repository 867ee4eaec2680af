/**
 * Profiles: servers under a name, each with the token for it, in one file of the user's. Invariants: nobody else can read
 * the file, or it isn't read; it is written whole or not at all; a token stands beside the one URL that it was given for.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { mkdir, open, realpath, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { closest } from 'fastest-levenshtein';
import { type Fields, isFields } from './decode.js';
import { Failure, wrongUsage } from './failure.js';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const OTHERS = 0o077;
/** Some ten thousand profiles. */
const LIMIT_BYTES = 4 * 1024 * 1024;

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
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
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

/** Fails with `unable`; then what stood there stands there still. */
export async function writeProfiles(configDir: string, { current, named }: Profiles): Promise<void> {
  const document = { current, profiles: Object.fromEntries(named) };
  // Some keep the file elsewhere and link to it.
  const path = await realpath(profilesFile(configDir)).catch(() => profilesFile(configDir));
  const draft = `${path}.${randomUUID()}`;
  try {
    await mkdir(configDir, { recursive: true, mode: 0o700 });
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(document, undefined, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await unlink(draft).catch(() => undefined);
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const detail = `cannot write ${profilesFile(configDir)}: ${code}`;
    throw new Failure('unable', { title: 'profiles', detail, code: 'profiles' });
  }
}
