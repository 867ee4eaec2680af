import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { findBinaries } from '../../../src/platform/postgres/binaries.js';
import { startEmbeddedPostgres } from '../../../src/platform/postgres/embedded.js';
import {
  giveToOrdinaryUser,
  install,
  installReadOnly,
  KILL_PROOF,
  makeFolder,
  type Owner,
  type OwnerOptions,
  query,
  startOwner,
} from './owner-process.js';

const isRoot = process.getuid?.() === 0;
const folder = makeFolder();
const installation = join(folder, 'installation');
const readOnlyInstallation = join(folder, 'read-only');
const template = join(folder, 'template');
const owners: Owner[] = [];
let count = 0;
let scratch = '';
let makeRemovable = () => {};

beforeAll(async () => {
  install(installation);
  makeRemovable = installReadOnly(readOnlyInstallation);
  await (await start(template)).stop();
});
afterEach(async () => {
  for (const { child } of owners) child.kill('SIGTERM');
  await Promise.all(owners.splice(0).map(({ exited }) => exited));
  if (scratch) fs.rmSync(scratch, { recursive: true, force: true });
});
afterAll(() => {
  makeRemovable();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** A path for one test, in a folder open to everybody. */
function path(name: string): string {
  count += 1;
  scratch = join(folder, `test-${count}`);
  fs.mkdirSync(scratch);
  return join(scratch, name);
}

function usedDataDir(): string {
  const dataDir = path('used');
  fs.cpSync(template, dataDir, { recursive: true });
  return dataDir;
}

const start = (dataDir: string) =>
  startEmbeddedPostgres({ ...KILL_PROOF, dataDir, databaseName: 'capstan', log: String });

function own(options: OwnerOptions, how: Parameters<typeof startOwner>[2] = {}, from = installation): Owner {
  const owner = startOwner(from, options, how);
  owners.push(owner);
  return owner;
}

/** Proves that a refusal changed nothing: the same folder works once its fault is mended. */
async function expectUsable(dataDir: string): Promise<void> {
  const server = await start(dataDir);
  expect(await query(server.url, 'select 1 as n')).toEqual([{ n: 1 }]);
  await server.stop();
}

test('a path that is a file, or leads through one, is refused', async () => {
  const file = path('file');
  fs.writeFileSync(file, 'mine');
  const says = (at: string) =>
    `The data folder ${at} is not a folder: set CAPSTAN_DATA_DIR to a folder, or DATABASE_URL to a PostgreSQL of your own`;
  for (const dataDir of [file, join(file, 'below')]) await expect(start(dataDir)).rejects.toThrow(says(dataDir));
  expect(fs.readFileSync(file, 'utf8')).toBe('mine');
});

test('a folder that can never be made is refused', async () => {
  await expect(start('/proc/capstan')).rejects.toThrow(/\/proc\/capstan can't be (made|used)/);
  const longName = path('x'.repeat(300));
  const longPath = join(longName, '..', ...Array(10).fill('x'.repeat(100)));
  for (const dataDir of [longName, longPath])
    await expect(start(dataDir)).rejects.toThrow(`The path of the data folder ${dataDir} is too long`);
  expect(fs.readdirSync(scratch)).toEqual([]);
});

test('a folder that this user may not write, or make, is refused and its owner named', async () => {
  const closed = path('closed');
  fs.mkdirSync(closed, { mode: 0o555 });
  for (const dataDir of [closed, join(closed, 'below')]) {
    const refusal = await own({ dataDir }, { asOrdinaryUser: true }).refusal();
    expect(refusal).toContain(`${dataDir} can't be used by `);
    expect(refusal).toContain('set CAPSTAN_DATA_DIR to a folder of your own');
    if (isRoot && dataDir === closed) expect(refusal).toContain('since it belongs to root (user 0)');
  }
});

test("a user's folder is refused to another user, also to root, and stays as it was", async () => {
  const dataDir = usedDataDir();
  if (!isRoot) fs.chmodSync(dataDir, 0o000);
  expect(await own({ dataDir }, { asOrdinaryUser: true }).refusal()).toContain(`${dataDir} can't be used by `);
  if (!isRoot) fs.chmodSync(dataDir, 0o700);
  await expectUsable(dataDir);

  const theirs = giveToOrdinaryUser(join(scratch, 'theirs'));
  if (isRoot)
    await expect(start(theirs)).rejects.toThrow(`${theirs} belongs to nobody (user 65534) and Capstan runs as root`);
  await own({ dataDir: theirs }, { asOrdinaryUser: true }).url();
});

test('a cluster of another PostgreSQL version is refused with both versions', async () => {
  const dataDir = usedDataDir();
  const versionPath = join(dataDir, 'postgres/PG_VERSION');
  const version = fs.readFileSync(versionPath, 'utf8');
  fs.writeFileSync(versionPath, '17\n');
  await expect(start(dataDir)).rejects.toThrow('was made by PostgreSQL 17 and this Capstan brings PostgreSQL 18');
  fs.writeFileSync(versionPath, version);
  await expectUsable(dataDir);
});

test('a folder named postgres that is no cluster is left alone; other files beside it are none of our business', async () => {
  const dataDir = path('data');
  fs.mkdirSync(join(dataDir, 'postgres'), { recursive: true });
  fs.writeFileSync(join(dataDir, 'letter.txt'), 'dear');
  fs.writeFileSync(join(dataDir, 'postgres/notes.txt'), 'mine');
  await expect(start(dataDir)).rejects.toThrow(`${dataDir}/postgres is not a PostgreSQL cluster: move it away`);
  expect(fs.readdirSync(join(dataDir, 'postgres'))).toEqual(['notes.txt']);
  fs.rmSync(join(dataDir, 'postgres/notes.txt'));
  await expectUsable(dataDir);
  expect(fs.readFileSync(join(dataDir, 'letter.txt'), 'utf8')).toBe('dear');
});

test('a lost or wrong password is refused, and the right one opens the data again', async () => {
  const dataDir = usedDataDir();
  const passwordPath = join(dataDir, 'postgres-password');
  const password = fs.readFileSync(passwordPath, 'utf8');
  fs.rmSync(passwordPath);
  await expect(start(dataDir)).rejects.toThrow(`${passwordPath} is missing`);
  fs.writeFileSync(passwordPath, 'guess\n');
  await expect(start(dataDir)).rejects.toThrow('The password in the data folder does not open its PostgreSQL');
  fs.writeFileSync(passwordPath, password);
  await expectUsable(dataDir);
});

test('a disk without space is named as the cause', async () => {
  const dataDir = path('small');
  fs.mkdirSync(dataDir);
  const mounted = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c'];
  const script = 'mount -t tmpfs -o size=12m,mode=0700 none "$0" && exec "$@"';
  const refusal = await own({ dataDir }, { through: [...mounted, script, dataDir] }).refusal();
  expect(refusal).toBe(`There is no space left for ${dataDir}: free some, or set CAPSTAN_DATA_DIR to another disk`);
});

test('a platform without its package is refused with the way out', () => {
  expect(() => findBinaries(path('links'), 'plan9-mips')).toThrow(
    /^No embedded PostgreSQL is installed for plan9-mips: set DATABASE_URL to a PostgreSQL of your own/,
  );
});

test('packages without library links that this user may not write are no hindrance', async () => {
  const dataDir = giveToOrdinaryUser(path('data'));
  for (const round of [1, 2]) {
    const owner = own({ dataDir }, { asOrdinaryUser: true }, readOnlyInstallation);
    expect(await query(await owner.url(), `select ${round} as n`)).toEqual([{ n: round }]);
    owner.child.kill('SIGTERM');
    await owner.exited;
  }
  expect(fs.readdirSync(dataDir).sort()).toEqual(['postgres', 'postgres-libs', 'postgres-password']);
});

test('where root has no user namespace the server runs as an account that sees its own part only', async () => {
  const dataDir = path('data');
  const options = { dataDir, withoutNamespaces: true };
  for (const round of [1, 2]) {
    const owner = own(options, {}, readOnlyInstallation);
    expect(await query(await owner.url(), `select ${round} as n`)).toEqual([{ n: round }]);
    owner.child.kill('SIGTERM');
    await owner.exited;
  }
  const rights = (name: string) => {
    const { uid, mode } = fs.statSync(join(dataDir, name));
    return [uid === process.getuid?.() ? 'mine' : "the server's", (mode & 0o777).toString(8)];
  };
  expect(['', 'postgres-password', 'postgres'].map(rights)).toEqual([
    ['mine', isRoot ? '710' : '700'],
    ['mine', '600'],
    [isRoot ? "the server's" : 'mine', '700'],
  ]);
  await expectUsable(dataDir);
});

test('where root has no user namespace a folder out of reach is refused with the reason', async () => {
  const hidden = path('hidden');
  fs.mkdirSync(hidden, { mode: isRoot ? 0o700 : 0o500 });
  const refusal = await own({ dataDir: join(hidden, 'data'), withoutNamespaces: true }).refusal();
  expect(refusal).toMatch(isRoot ? /Permission denied\): every folder above it has to be open to/ : /can't be used by/);
});
