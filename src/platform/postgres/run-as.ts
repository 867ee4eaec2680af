/**
 * As whom the server runs. PostgreSQL refuses user 0, and initdb refuses a user without a name, so root and nameless
 * users get one. Preferred is a user namespace: files stay the caller's own and folders open to the caller alone work.
 */
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import { accounts, DataDirError, type DataDirectory, ownName, userName } from './data-directory.js';

/** The server's programs see no variable of ours: a `PGDATA` or `PGPORT` set for other ends would mislead them. */
export const BARE_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

/** `prefix` goes before the command; `uid` and `gid` are set when the process is to be another account's. */
export interface RunAs {
  readonly prefix: readonly string[];
  readonly account?: { readonly name: string; readonly uid: number; readonly gid: number };
}

/** @throws DataDirError when the folder is another user's, or when no way to run the server exists. */
export async function chooseRunAs(dir: DataDirectory, namespace = userNamespace): Promise<RunAs> {
  const uid = process.getuid?.();
  const clusterOwner = fs.statSync(dir.clusterPath, { throwIfNoEntry: false })?.uid;
  if (uid !== 0) {
    if (clusterOwner !== undefined && clusterOwner !== uid) throw foreign(dir.clusterPath, clusterOwner);
    const isNameless = ownName() === undefined;
    return { prefix: (isNameless && (await namespace())) || [] };
  }
  const folderOwner = fs.statSync(dir.path).uid;
  // Root may write anywhere, but would leave files there that the owner can't open any more.
  if (folderOwner !== 0) throw foreign(dir.path, folderOwner);
  const candidates = ['postgres', '_postgres', 'nobody'].flatMap(
    (name) => accounts().find((a) => a.name === name) ?? [],
  );
  if (clusterOwner !== undefined && clusterOwner !== 0) {
    const account = candidates.find((candidate) => candidate.uid === clusterOwner);
    if (!account) throw foreign(dir.clusterPath, clusterOwner);
    return { prefix: [], account };
  }
  const prefix = await namespace();
  if (prefix) return { prefix };
  const account = candidates[0];
  if (!account)
    throw new DataDirError(
      'PostgreSQL does not run as root, and there is no user namespace, user postgres or user nobody to run it: ' +
        'run Capstan as an ordinary user, or set DATABASE_URL',
    );
  if (clusterOwner === 0)
    throw new DataDirError(
      `${dir.clusterPath} belongs to root and this system allows no user namespace: ` +
        `chown -R ${account.uid}:${account.gid} ${dir.clusterPath}`,
    );
  return { prefix: [], account };
}

/** Lets the server's account reach its own part of the folder, and nobody else anything. */
export function admit(dir: DataDirectory, { account }: RunAs): void {
  if (!account) return;
  fs.chownSync(dir.path, 0, account.gid);
  fs.chmodSync(dir.path, 0o710);
}

/** The command that enters a user namespace as a named user other than root, when the system lets us. */
async function userNamespace(): Promise<readonly string[] | undefined> {
  const user = accounts().find((account) => account.uid > 0)?.uid;
  if (process.platform !== 'linux' || user === undefined) return undefined;
  const prefix = ['unshare', '--user', `--map-user=${user}`, `--map-group=${user}`, '--'];
  const works = await new Promise<boolean>((done) => {
    execFile('unshare', [...prefix.slice(1), 'true'], { env: BARE_ENVIRONMENT }, (error) => done(error === null));
  });
  return works ? prefix : undefined;
}

function foreign(path: string, owner: number): DataDirError {
  return new DataDirError(
    `${path} belongs to ${userName(owner)} and Capstan runs as ${userName(process.getuid?.())}: ` +
      'run it as the owner, or set CAPSTAN_DATA_DIR to another folder',
  );
}
