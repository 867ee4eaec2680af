import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/platform/postgres/embedded.js';
import {
  giveToOrdinaryUser,
  guardsOf,
  install,
  isAlive,
  KILL_PROOF,
  makeFolder,
  type Owner,
  query,
  serverPid,
  startOwner,
  until,
} from './owner-process.js';

const folder = makeFolder();
const installation = join(folder, 'installation');
const template = join(folder, 'template');
const owners: Owner[] = [];
const servers: EmbeddedPostgres[] = [];
const dataDirs: string[] = [];
let count = 0;

beforeAll(async () => {
  install(installation);
  const server = await startEmbeddedPostgres({
    ...KILL_PROOF,
    dataDir: template,
    databaseName: 'capstan',
    log: String,
  });
  await server.stop();
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  for (const { child } of owners) child.kill('SIGTERM');
  await Promise.all(owners.splice(0).map(({ exited }) => exited));
  // At once, before the system writes it all to disk: at the end of the file it takes many times as long.
  for (const path of dataDirs.splice(0)) fs.rmSync(path, { recursive: true, force: true });
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

function newDataDir(): string {
  count += 1;
  const path = join(folder, `data-${count}`);
  dataDirs.push(path);
  return path;
}

/** One that was used before: half a second less than to make a new one. */
function usedDataDir(): string {
  const path = newDataDir();
  fs.cpSync(template, path, { recursive: true });
  return path;
}

async function start(dataDir: string, log: string[] = []): Promise<EmbeddedPostgres> {
  const write = (line: string) => log.push(line);
  const server = await startEmbeddedPostgres({ ...KILL_PROOF, dataDir, databaseName: 'capstan', log: write });
  servers.push(server);
  return server;
}

function own(dataDir: string): Owner {
  const owner = startOwner(installation, { dataDir });
  owners.push(owner);
  return owner;
}

const put = (url: string) => query(url, 'create table kept as select generate_series(1, 1000) as n');
const kept = async (url: string) => (await query(url, 'select count(*)::int as n from kept'))[0]?.n;
const openedBy = (path: string) => (fs.statSync(path).mode & 0o777).toString(8);

test('a first start makes a folder for its user alone, and a later start finds what was committed', async () => {
  const dataDir = join(newDataDir(), 'not', 'there yet');
  const first = await startEmbeddedPostgres({ dataDir, databaseName: 'capstan', log: String });
  servers.push(first);
  await put(first.url);
  const [settings] = await query(
    first.adminUrl,
    `select current_setting('fsync') as fsync, current_setting('listen_addresses') as addresses,
            current_setting('unix_socket_directories') as sockets, current_setting('server_encoding') as encoding`,
  );
  expect(settings).toEqual({
    ...{ fsync: 'on', addresses: '127.0.0.1', sockets: '', encoding: 'UTF8' },
  });
  expect(
    await query(
      first.url,
      `select current_user as who, current_database() as database, current_setting('is_superuser') as super`,
    ),
  ).toEqual([{ who: 'capstan', database: 'capstan', super: 'off' }]);
  expect([dataDir, join(dataDir, 'postgres'), join(dataDir, 'postgres-password')].map(openedBy)).toEqual([
    '700',
    '700',
    '600',
  ]);
  expect(fs.readdirSync(dataDir).sort()).toEqual(['postgres', 'postgres-password']);
  await first.stop();
  expect(fs.existsSync(join(dataDir, 'postgres/postmaster.pid')), 'the server was not shut down cleanly').toBe(false);

  const second = await start(dataDir);
  expect(await kept(second.url)).toBe(1000);
});

test('nobody comes in without a password', async () => {
  const server = await start(usedDataDir());
  for (const url of [server.url, server.adminUrl]) {
    const wrong = url.replace(/:[^:@]*@/, ':guess@');
    await expect(query(wrong, 'select 1')).rejects.toThrow('password authentication failed');
  }
});

test('a killed owner leaves no server, and the next start, made at once, has the rows', async () => {
  const dataDir = usedDataDir();
  const owner = own(dataDir);
  await put(await owner.url());
  const pid = serverPid(dataDir);
  owner.child.kill('SIGKILL');
  const next = await start(dataDir);
  expect(await kept(next.url)).toBe(1000);
  expect(isAlive(pid), 'two servers on one cluster').toBe(false);
});

test('a killed owner leaves no server when nothing is started after it', async () => {
  const dataDir = usedDataDir();
  const owner = own(dataDir);
  await owner.url();
  const pid = serverPid(dataDir);
  const guards = guardsOf(pid);
  expect(guards.length).toBeGreaterThan(0);
  owner.child.kill('SIGKILL');
  await until('server and guard end with their owner', () => ![pid, ...guards].some(isAlive));
  expect(fs.existsSync(join(dataDir, 'postgres/postmaster.pid')), 'the server was not shut down cleanly').toBe(false);
});

test('a server that dies is started again at the same address with the rows', async () => {
  const dataDir = usedDataDir();
  const log: string[] = [];
  const server = await start(dataDir, log);
  await put(server.url);
  for (const round of [1, 2]) {
    const pid = serverPid(dataDir);
    process.kill(pid, 'SIGKILL');
    await until('the server runs again', () => server.restarts === round);
    expect(await kept(server.url)).toBe(1000);
    expect(serverPid(dataDir)).not.toBe(pid);
  }
  expect(log.filter((line) => line.startsWith('the embedded PostgreSQL ended by itself (signal 9)'))).toHaveLength(2);
  expect(log.filter((line) => line === 'the embedded PostgreSQL runs again')).toHaveLength(2);
});

test('a server whose guard is killed is ended and started again under a new guard', async () => {
  const dataDir = usedDataDir();
  const server = await start(dataDir);
  await put(server.url);
  const pid = serverPid(dataDir);
  for (const guard of guardsOf(pid)) process.kill(guard, 'SIGKILL');
  await until('the server runs again', () => server.restarts === 1);
  expect(isAlive(pid), 'two servers on one cluster').toBe(false);
  expect(await kept(server.url)).toBe(1000);
  expect(guardsOf(serverPid(dataDir)).length).toBeGreaterThan(0);
});

test('a second start is refused while the first runs, and the first is unharmed', async () => {
  const dataDir = usedDataDir();
  const server = await start(dataDir);
  await put(server.url);
  const pid = serverPid(dataDir);
  let answer: unknown;
  start(dataDir).catch((error: unknown) => {
    answer = error;
  });
  await until('a person, who waits, is answered', () => answer !== undefined);
  expect(String(answer)).toContain(
    `The data folder ${dataDir} is in use by a running Capstan (PostgreSQL process ${pid}): ` +
      'stop that first, or set CAPSTAN_DATA_DIR to another folder',
  );
  expect(await kept(server.url)).toBe(1000);
  expect([serverPid(dataDir), server.restarts]).toEqual([pid, 0]);
});

test('an orphan, whose owner and guard were both killed, is ended cleanly by the next start', async () => {
  const dataDir = usedDataDir();
  const owner = own(dataDir);
  await put(await owner.url());
  const pid = serverPid(dataDir);
  makeOrphan(owner, pid);
  await owner.exited;
  expect(isAlive(pid), 'the test made no orphan').toBe(true);

  const log: string[] = [];
  const next = await start(dataDir, log);
  expect(isAlive(pid), 'two servers on one cluster').toBe(false);
  expect(await kept(next.url)).toBe(1000);
  expect(log).toEqual([
    `ending the PostgreSQL that a killed Capstan left behind in ${join(dataDir, 'postgres')} (process ${pid})`,
  ]);
});

test('an orphan that somebody works in is left alone, and the refusal names who', async () => {
  const dataDir = usedDataDir();
  const owner = own(dataDir);
  const outcome = await owner.outcome;
  const pid = serverPid(dataDir);
  const work = query(outcome.isUp ? outcome.adminUrl : '', 'select pg_sleep(60)', 'backup of mine');
  work.catch(() => undefined);
  makeOrphan(owner, pid);
  await owner.exited;
  await expect(start(dataDir)).rejects.toThrow(`is in use by sessions of backup of mine (PostgreSQL process ${pid})`);
  expect(isAlive(pid)).toBe(true);
  process.kill(pid, 'SIGINT');
  await expect(work).rejects.toThrow();
  await until('the orphan ends', () => !isAlive(pid));
});

test('of several first starts at once exactly one wins, and the others are told so', async () => {
  const dataDir = newDataDir();
  const rivals = [own(dataDir), own(dataDir), own(dataDir)];
  const outcomes = await Promise.all(rivals.map(({ outcome }) => outcome));
  const [winner, ...more] = outcomes.filter(({ isUp }) => isUp);
  expect(more, 'two servers on one cluster').toEqual([]);
  for (const loser of outcomes) if (!loser.isUp) expect(loser.message).toContain('is in use by a running Capstan');
  if (!winner?.isUp) throw new Error(`nobody won: ${JSON.stringify(outcomes)}`);
  await put(winner.url);
  expect(await kept(winner.url)).toBe(1000);
  await Promise.all(rivals.filter((_, i) => outcomes[i] !== winner).map(({ exited }) => exited));
  expect(fs.readdirSync(dataDir).sort()).toEqual(['postgres', 'postgres-password']);
});

test('a start that is killed in the middle of making the cluster leaves nothing that troubles the next one', async () => {
  const dataDir = newDataDir();
  const owner = own(dataDir);
  await until('the cluster is half made', () =>
    fs.readdirSync(dataDir).some((name) => fs.existsSync(join(dataDir, name, 'cluster/global'))),
  );
  owner.child.kill('SIGKILL');
  await owner.exited;
  expect(fs.existsSync(join(dataDir, 'postgres')), 'the kill came too late to prove anything').toBe(false);
  const next = await start(dataDir);
  await put(next.url);
  expect(fs.readdirSync(dataDir).sort()).toEqual(['postgres', 'postgres-password']);
});

test('a stale lock file is not believed when its process is some other program by now', async () => {
  const dataDir = usedDataDir();
  const server = await start(dataDir);
  await put(server.url);
  const lockPath = join(dataDir, 'postgres/postmaster.pid');
  const lock = fs.readFileSync(lockPath, 'utf8');
  await server.stop();
  const bystander = spawn('sleep', ['60'], { cwd: join(dataDir, 'postgres') });
  try {
    for (const left of [lock.replace(/^\d+/, String(bystander.pid)), '']) {
      fs.writeFileSync(lockPath, left);
      const next = await start(dataDir);
      expect(await kept(next.url)).toBe(1000);
      expect(bystander.exitCode ?? bystander.signalCode, 'the bystander was harmed').toBe(null);
      await next.stop();
    }
  } finally {
    bystander.kill();
  }
});

test('an interrupt from the terminal does not reach the server', async () => {
  const dataDir = usedDataDir();
  const owner = own(dataDir);
  const url = await owner.url();
  const pid = serverPid(dataDir);
  process.kill(-(owner.child.pid ?? 0), 'SIGINT');
  await put(url);
  // Two round trips after the signal the server would be refusing sessions, if it had got it.
  expect(await kept(url)).toBe(1000);
  expect(serverPid(dataDir)).toBe(pid);
});

test('stop is bounded even when the server does not react, and costs no committed row', async () => {
  const dataDir = usedDataDir();
  const server = await start(dataDir);
  await put(server.url);
  const pid = serverPid(dataDir);
  process.kill(pid, 'SIGSTOP');
  await Promise.all([server.stop(100), server.stop(100)]);
  await until('the server is gone', () => !isAlive(pid));
  expect(await kept((await start(dataDir)).url)).toBe(1000);
});

test('stop holds while a dead server is being started again', async () => {
  const dataDir = usedDataDir();
  const server = await start(dataDir);
  process.kill(serverPid(dataDir), 'SIGKILL');
  await server.stop();
  // Nobody started it behind our back: the folder is free for the next one.
  const next = await start(dataDir);
  expect(server.restarts).toBe(0);
  expect(await query(next.url, 'select 1 as n')).toEqual([{ n: 1 }]);
});

test('an ordinary user needs nothing but the folder', async () => {
  const dataDir = giveToOrdinaryUser(newDataDir());
  const owner = startOwner(installation, { dataDir }, { asOrdinaryUser: true });
  owners.push(owner);
  await put(await owner.url());
  expect(await kept(await owner.url())).toBe(1000);
  expect(fs.statSync(join(dataDir, 'postgres')).uid).toBe(fs.statSync(dataDir).uid);
});

/** Stops the owner first, so that it can't mend what is broken before it is killed. */
function makeOrphan(owner: Owner, pid: number): void {
  owner.child.kill('SIGSTOP');
  for (const guard of guardsOf(pid)) process.kill(guard, 'SIGKILL');
  owner.child.kill('SIGKILL');
}
