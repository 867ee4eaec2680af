/**
 * The folder that holds everything of a single-machine installation: the database cluster and its password.
 * Invariant: `postgres/` is either absent or a whole cluster, whatever was killed at whatever instant, and
 * `postgres-password` exists before any cluster that was made with it.
 */
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';

const UNFINISHED = 'postgres.new-';

/** Bytes. PostgreSQL's programs abort without a word when the paths of their files pass 1,023. */
const LONGEST_PATH = 900;

/** Why no embedded PostgreSQL can be had; the message is one line for the person at the terminal: what is going on and what to do. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
  constructor(message: string, options?: ErrorOptions) {
    super(message.replace(/\s*\n\s*/g, ' '), options);
  }
}

/** Absolute paths inside one data folder. */
export interface DataDirectory {
  readonly path: string;
  readonly clusterPath: string;
  readonly passwordPath: string;
  /** Where links to shared libraries go when they can't stand beside the libraries. */
  readonly libraryLinksPath: string;
}

/** Makes the folder (0700) when it is missing. @throws DataDirError when it isn't a folder that this user may write. */
export function openDataDirectory(path: string): DataDirectory {
  if (Buffer.byteLength(path) > LONGEST_PATH) throw tooLong(path);
  try {
    makeFolder(path);
    if (!fs.statSync(path).isDirectory()) throw new DataDirError(`The data folder ${path} is not a folder${ELSEWHERE}`);
    fs.accessSync(path, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
  } catch (error) {
    throw explain(error, path);
  }
  return {
    path,
    clusterPath: join(path, 'postgres'),
    passwordPath: join(path, 'postgres-password'),
    libraryLinksPath: join(path, 'postgres-libs'),
  };
}

/**
 * Whether there is a cluster to start.
 * @throws DataDirError when `postgres` is something else, or a cluster that the bundled server can't read.
 */
export function hasCluster(dir: DataDirectory, bundledMajor: string): boolean {
  let entries: readonly string[];
  let found = '';
  try {
    entries = fs.readdirSync(dir.clusterPath);
    if (entries.includes('PG_VERSION')) found = fs.readFileSync(join(dir.clusterPath, 'PG_VERSION'), 'utf8').trim();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw explain(error, dir.clusterPath);
  }
  if (entries.length === 0) return false;
  if (found === '')
    throw new DataDirError(`${dir.clusterPath} is not a PostgreSQL cluster: move it away, or set CAPSTAN_DATA_DIR`);
  if (found !== bundledMajor)
    throw new DataDirError(
      `${dir.clusterPath} was made by PostgreSQL ${found} and this Capstan brings PostgreSQL ${bundledMajor}: ` +
        `use the Capstan that made it, or set DATABASE_URL to a PostgreSQL ${found}`,
    );
  return true;
}

/**
 * The superuser's password: read, or made together with its file (0600) when the folder is new.
 * Several processes may do so at once and all get the same one.
 */
export function takePassword(dir: DataDirectory, clusterExists: boolean): string {
  try {
    const known = readIfPresent(dir.passwordPath);
    if (known) return known;
    if (clusterExists)
      throw new DataDirError(
        `${dir.passwordPath} is missing, and without it the data in ${dir.clusterPath} can't be opened: restore it from a backup`,
      );
    const draft = `${dir.passwordPath}.${randomBytes(6).toString('hex')}`;
    const file = fs.openSync(draft, 'wx', 0o600);
    try {
      fs.writeSync(file, `${randomBytes(32).toString('base64url')}\n`);
      fs.fsyncSync(file);
    } finally {
      fs.closeSync(file);
    }
    try {
      // A link, not a rename: it refuses to replace the password that another process has just put there.
      fs.linkSync(draft, dir.passwordPath);
    } catch (error) {
      // A server that has just come up removes drafts as leftovers, and was made with the password that counts.
      if (!fs.existsSync(dir.passwordPath)) throw error;
    } finally {
      fs.rmSync(draft, { force: true });
    }
    return fs.readFileSync(dir.passwordPath, 'utf8').trim();
  } catch (error) {
    throw explain(error, dir.passwordPath);
  }
}

/** A private folder beside the cluster, in which the next one is prepared. */
export function makeUnfinished(dir: DataDirectory): string {
  try {
    return fs.mkdtempSync(join(dir.path, UNFINISHED));
  } catch (error) {
    throw explain(error, dir.path);
  }
}

/**
 * Removes what killed starts left behind. Call it only while the cluster's server runs under this process: anybody
 * else who still prepares a cluster has lost the race and will find the finished one.
 */
export function removeLeftovers(dir: DataDirectory): void {
  for (const name of fs.readdirSync(dir.path)) {
    if (!name.startsWith(UNFINISHED) && !name.startsWith('postgres-password.')) continue;
    try {
      fs.rmSync(join(dir.path, name), { recursive: true, force: true });
    } catch {
      // Another starter is still writing into it and removes it itself; if it is killed, the next start does.
    }
  }
}

const ELSEWHERE = ': set CAPSTAN_DATA_DIR to a folder, or DATABASE_URL to a PostgreSQL of your own';

/** Turns a file system error into the sentence for the person. Anything that isn't one passes unchanged. */
export function explain(error: unknown, path: string): unknown {
  switch (errorCode(error)) {
    case 'ENOENT':
      return new DataDirError(`The data folder ${path} can't be made${ELSEWHERE}`, { cause: error });
    case 'ENOTDIR':
      return new DataDirError(`The data folder ${path} is not a folder${ELSEWHERE}`, { cause: error });
    case 'EACCES':
    case 'EPERM':
      return new DataDirError(
        `${path} can't be used by ${userName(process.getuid?.())}${ownerOf(path)}: ` +
          'run Capstan as its owner, or set CAPSTAN_DATA_DIR to a folder of your own',
        { cause: error },
      );
    case 'EROFS':
      return new DataDirError(`${path} is on a read-only file system${ELSEWHERE}`, { cause: error });
    case 'ENOSPC':
    case 'EDQUOT':
      return noSpace(path, error);
    case 'ENAMETOOLONG':
      return tooLong(path, error);
    default:
      return error;
  }
}

function tooLong(path: string, cause?: unknown): DataDirError {
  return new DataDirError(`The path of the data folder ${path} is too long: set CAPSTAN_DATA_DIR`, { cause });
}

export function noSpace(path: string, cause?: unknown): DataDirError {
  return new DataDirError(`There is no space left for ${path}: free some, or set CAPSTAN_DATA_DIR to another disk`, {
    cause,
  });
}

/** The name of a user id where it is known, for messages. */
export function userName(uid: number | undefined): string {
  if (uid === undefined) return 'this user';
  const name = uid === process.getuid?.() ? ownName() : accounts().find((account) => account.uid === uid)?.name;
  return name === undefined ? `user ${uid}` : `${name} (user ${uid})`;
}

/** The machine's local accounts, in the order of its password file. */
export function accounts(): readonly { name: string; uid: number; gid: number }[] {
  const lines = (readIfPresent('/etc/passwd') ?? '').split('\n').map((line) => line.split(':'));
  return lines
    .filter((fields) => fields.length >= 7)
    .map((fields) => ({ name: fields[0] ?? '', uid: Number(fields[2]), gid: Number(fields[3]) }));
}

/** The current user's name, or `undefined` when no directory knows it (initdb refuses to run then). */
export function ownName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

/** Node's own `recursive` never returns where a folder exists and takes no children, as in /proc. */
function makeFolder(path: string): void {
  if (fs.existsSync(path)) return;
  const parent = dirname(path);
  if (!fs.existsSync(parent)) makeFolder(parent);
  try {
    fs.mkdirSync(path, 0o700);
  } catch (error) {
    // Several processes may come at once.
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

function ownerOf(path: string): string {
  try {
    const { uid } = fs.statSync(path);
    return uid === process.getuid?.() ? '' : `, since it belongs to ${userName(uid)}`;
  } catch {
    return '';
  }
}

function readIfPresent(path: string): string | undefined {
  try {
    return fs.readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
