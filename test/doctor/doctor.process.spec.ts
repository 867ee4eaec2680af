/** The real program against installations that are well, ill, old, new, away, and embedded. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Check } from '../../src/kernel/diagnosis.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { capstan as cli, mainFile, startProcess } from '../cli/cli.fixture.js';
import { createDatabase } from '../database.js';
import { Ground } from '../runs/ground.fixture.js';
import { capstan, dataFolder, isAlive, QUICK, startServer, until } from '../server.js';
import { Runs } from './runs.fixture.js';

const doctor = (env: Record<string, string>, ...args: string[]) => cli(['doctor', ...args], { env });
const at = (url: string) => ({ DATABASE_URL: url });
const linesOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
const faultsIn = (stdout: string) => linesOf(stdout).filter(([mark]) => mark === 'fault');

describe('doctor of a database', () => {
  it('finds nothing wrong with runs that went any way, workers that are lost, and runs that wait for nobody', async () => {
    const runs = await Runs.open();
    for (const way of ['pending', 'running', 'succeeded', 'canceled', 'requeued', 'interrupted'] as const) {
      await runs.make(way);
    }
    await runs.ground.sql.query(`update workers set state = 'stopped', ended_at = now() where state = 'live'
                                   and id not in (select holder from live_runs where holder is not null)`);
    const { code, stdout, stderr } = await doctor(at(runs.ground.db.url));
    expect({ code, stderr, faults: faultsIn(stdout) }).toEqual({ code: 0, stderr: '', faults: [] });
    const told = linesOf(stdout).filter(([mark]) => mark === 'ok');
    expect(told.map(([, name]) => name)).toEqual([
      'database',
      'schema',
      'connections',
      'vacuum',
      'replicas',
      'partitions',
      'laws',
      'audit',
    ]);
    expect(stdout).toContain('laws hold; runs checked: 6');
    const json = await doctor(at(runs.ground.db.url), '--json');
    expect(json).toMatchObject({ code: 0, stderr: '' });
    const document = JSON.parse(json.stdout) as { ok: boolean; checks: Check[] };
    expect(document.ok).toBe(true);
    expect(document.checks).toHaveLength(8);
    await runs.ground.close();
  });

  it('finds nothing wrong where nobody ever was, and as a role that may only read', async () => {
    const ground = await Ground.open(1);
    const role = `reader_${newId().slice(-12)}`;
    await ground.sql.query(
      `create role ${role} login password 'only reads'; grant select on all tables in schema public to ${role}`,
    );
    expect(await doctor(at(ground.db.url))).toMatchObject({ code: 0 });
    const url = new URL(ground.db.url);
    [url.username, url.password] = [role, 'only reads'];
    const { code, stdout } = await doctor(at(url.href));
    expect({ code, faults: faultsIn(stdout) }).toEqual({ code: 0, faults: [] });
    expect(stdout).toContain('note\tconnections\t');
    const [blind, reporter] = [await ground.db.session(), await ground.db.session()];
    await reporter.query('begin isolation level repeatable read');
    const { rows } = await reporter.query('select pg_backend_pid() as pid from runs right join (values (1)) v on true');
    await blind.query(`revoke select on schema_migrations from ${role}`);
    const ungranted = await doctor(at(url.href));
    expect(ungranted).toMatchObject({ code: 3, stdout: '' });
    expect(ungranted.stderr).toMatch(
      new RegExp(
        `^capstan: database: the role ${role} may not read .*grant select on all tables in schema public to ${role}.*\n$`,
      ),
    );
    await blind.query(`grant select on schema_migrations to ${role}`);
    const held = await doctor(at(url.href));
    expect(held.code).toBe(0);
    expect(held.stdout).toMatch(
      new RegExp(`note\tvacuum\t.* session ${rows[0].pid} keeps .*grant pg_read_all_stats .* to ${role}`),
    );
    expect(held.stdout).not.toContain('nothing holds it back');
    const [, taken] = /ok\tconnections\t(\d+) of/.exec(held.stdout) ?? [];
    expect(Number(taken), 'others are counted too').toBeGreaterThanOrEqual(4);
    await ground.sql.query(`drop owned by ${role}; drop role ${role}`);
    await ground.close();
  });

  it('says one line for each fault, what is wrong and what to do, and ends with 1', async () => {
    const runs = await Runs.open();
    const { sql, db, chain } = runs.ground;
    const [id, other] = [await runs.make('pending'), await runs.make('succeeded')];
    await runs.unprotect();
    await sql.query('update live_runs set priority = 7 where run_id = $1', [id]);
    await sql.query(
      `update audit_entries set claim = replace(claim, 'command', 'kommand') where run_id = $1 and action = 'run.submitted'`,
      [other],
    );
    const { code, stdout, stderr } = await doctor(at(db.url));
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const unprotected = faultsIn(stdout).filter(([, name]) => name === 'schema');
    expect(unprotected).toContainEqual([
      'fault',
      'schema',
      expect.stringContaining('runs_ended_never_change of runs is disabled'),
    ]);
    expect(
      faultsIn(stdout)
        .filter(([, name]) => name !== 'schema')
        .sort(),
    ).toEqual([
      [
        'fault',
        'audit',
        expect.stringMatching(new RegExp(`chain ${chain} is broken at entry \\d+ .*; somebody changed it`)),
      ],
      [
        'fault',
        'laws',
        expect.stringMatching(new RegExp(`${encodeId('run', id)} breaks the law live_copies .*priority 7; no version`)),
      ],
      [
        'fault',
        'laws',
        expect.stringMatching(new RegExp(`${encodeId('run', other)} breaks the law audit_submit .*verify`)),
      ],
    ]);
    const all = await doctor(at(db.url), '--all', '--json');
    const { checks } = JSON.parse(all.stdout) as { checks: Check[] };
    const laws = checks.find(({ name }) => name === 'laws')?.faults;
    expect(laws).toContainEqual(expect.objectContaining({ object: encodeId('run', id), law: 'live_copies' }));
    await runs.ground.close();
  });

  it('tells replicas apart: names, versions, keys, clocks', async () => {
    const ground = await Ground.open(1);
    const life = `insert into workers (id, name, kind, slots, queues, version, ttl_ms, lease_until, started_at, signs, clock_ahead_ms)
                  values ($1, $2, 'replica', 4, '{default}', $3, 30000, clock_timestamp() + interval '30 s',
                          now() - interval '2 h', null, $4)`;
    await ground.sql.query(life, [newId(), 'a', '1.0.0', 5]);
    await ground.sql.query(life, [newId(), 'b', '1.1.0', 60_000]);
    await ground.sql.query(life, [newId(), 'a', '1.0.0', -5]);
    await ground.sql.query('select ensure_run_partitions(2)');
    const { code, stdout } = await doctor(at(ground.db.url));
    expect(code).toBe(1);
    expect(faultsIn(stdout).map(([, name, text]) => [name, text?.split(';')[0]])).toEqual([
      ['replicas', '2 connected processes are called a'],
      ['replicas', 'different versions have been running side by side for 120 minutes: 1.0.0 (a, a), 1.1.0 (b)'],
      ['replicas', "the clock of b is 60 s ahead of the database's"],
    ]);
    await ground.close();
  });

  it.each([
    [
      'older',
      `delete from schema_migrations where name = (select max(name) from schema_migrations)`,
      /older.*run `capstan migrate`/,
    ],
    [
      'newer',
      `insert into schema_migrations (name, run_on) values ('9999_later', now())`,
      /newer.*9999_later.*newer program/,
    ],
    ['missing', `drop table schema_migrations`, /there is no Capstan/],
  ])('of an %s schema says so, and changes nothing', async (_, sql, text) => {
    const db = await createDatabase();
    const session = await db.session();
    await session.query(sql);
    const shape = `select count(*) as n, (select to_regclass('schema_migrations')) as t from pg_class`;
    const before = (await session.query(shape)).rows;
    const { code, stdout } = await doctor(at(db.url));
    expect(code).toBe(1);
    expect(faultsIn(stdout)).toEqual([['fault', 'schema', expect.stringMatching(text)]]);
    expect(stdout).toContain('note\tlaws\tnot checked');
    expect((await session.query(shape)).rows).toEqual(before);
    await db.drop();
  });

  it('that takes no writes, or of which something is missing, says so', async () => {
    const db = await createDatabase();
    const session = await db.session();
    const { rows } = await session.query('select current_database() as name');
    await session.query(`alter database ${rows[0].name} set default_transaction_read_only = on`);
    await session.query('drop table idempotency_keys');
    const { code, stdout } = await doctor(at(db.url));
    expect(code).toBe(1);
    expect(faultsIn(stdout)).toEqual([
      ['fault', 'database', expect.stringContaining('default_transaction_read_only is on')],
      ['fault', 'schema', expect.stringContaining('the table idempotency_keys is missing')],
      ['fault', 'laws', expect.stringContaining('idempotency_keys')],
    ]);
    await db.drop();
  });

  it('finds nothing wrong with a snapshot that is held for less than five minutes', async () => {
    const db = await createDatabase();
    const holder = new pg.Client({ connectionString: db.url, application_name: 'report' });
    await holder.connect();
    await holder.query('begin isolation level repeatable read');
    await holder.query('select 1');
    const { code, stdout } = await doctor(at(db.url));
    expect({ code, faults: faultsIn(stdout) }).toEqual({ code: 0, faults: [] });
    await holder.end();
    await db.drop();
  });

  it('looks through a session that can write nothing, whatever a function there would do', async () => {
    const db = await createDatabase();
    const session = await db.session();
    await session.query(`
      insert into workers (id, name, kind, slots, queues, version, ttl_ms, lease_until)
      values ('${newId()}', 'one', 'worker', 1, '{default}', '1', 30000, now() + interval '30 s');
      create table written ();
      create or replace function db_clock() returns timestamptz language plpgsql volatile as $$
      begin insert into written default values; return clock_timestamp(); end $$`);
    const { code, stderr } = await doctor(at(db.url));
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('read-only transaction') });
    expect((await session.query('select count(*)::integer as n from written')).rows).toEqual([{ n: 0 }]);
    await db.drop();
  });

  it('that isn’t there ends with 3 and one line, without its password', async () => {
    const gone = new URL(inject('postgresUrl'));
    gone.pathname = 'never_made';
    for (const url of ['postgres://u:a-secret@127.0.0.1:1/x', gone.href]) {
      const { code, stdout, stderr } = await doctor(at(url));
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(stderr).toMatch(/^capstan: database: .*(ECONNREFUSED|never_made)/);
      expect(stderr).not.toContain('the doctor needs');
      expect(stderr).not.toContain('a-secret');
      expect(stderr).not.toContain(gone.password);
    }
  });

  it('with settings that can’t be read ends with 2', async () => {
    const { code, stdout, stderr } = await doctor({ DATABASE_URL: 'mysql://x', CAPSTAN_SLOTS: 'many' });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('CAPSTAN_SLOTS');
    expect(await doctor({}, 'now')).toMatchObject({ code: 2 });
  });
});

describe('doctor of an embedded installation', () => {
  let data: Awaited<ReturnType<typeof dataFolder>>;
  beforeAll(async () => {
    data = await dataFolder();
  });
  afterAll(() => data.remove());

  it('says where there is none, and makes none', async () => {
    const { code, stderr } = await doctor({ CAPSTAN_DATA_DIR: data.path });
    expect(code).toBe(3);
    expect(stderr).toContain(`There is no installation in ${data.path}: set DATABASE_URL`);
    expect(existsSync(data.path)).toBe(false);
  });

  it.runIf(process.getuid?.() === 0)('says who can’t read it, where it is somebody else’s', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'capstan-doctor-'));
    await mkdir(join(folder, 'postgres'));
    const { code, stderr } = await startProcess(
      'setpriv',
      ['--reuid=65534', '--regid=65534', '--clear-groups', '--', process.execPath, await mainFile(), 'doctor'],
      { env: { CAPSTAN_DATA_DIR: folder } },
    ).finished();
    expect(code).toBe(3);
    expect(stderr).toMatch(
      new RegExp(`${folder} can't be used by .*65534.*, since it belongs to .*: run Capstan as its owner`),
    );
    await rm(folder, { recursive: true });
  });

  it('looks beside the replica that runs it, which goes on; and starts it for the time when nobody does', async () => {
    const server = await startServer({ ...QUICK, CAPSTAN_DATA_DIR: data.path });
    await capstan(server, data.path, ['run', '--wait', '--', 'true']);
    const beside = await doctor({ CAPSTAN_DATA_DIR: data.path });
    expect({ ...beside, faults: faultsIn(beside.stdout) }).toMatchObject({ code: 0, stderr: '', faults: [] });
    expect(beside.stdout).toContain('laws hold; runs checked: 1');
    expect(beside.stdout).toContain('ok\treplicas\t1 connected');
    expect((await capstan(server, data.path, ['runs'])).code, 'the replica goes on').toBe(0);
    server.child.kill('SIGTERM');
    await server.finished;
    const alone = await doctor({ CAPSTAN_DATA_DIR: data.path });
    expect({ ...alone, faults: faultsIn(alone.stdout) }).toMatchObject({ code: 0, stderr: '', faults: [] });
    expect(alone.stdout).toContain('laws hold; runs checked: 1');
    const pid = Number(
      (await readFile(join(data.path, 'postgres/postmaster.pid'), 'utf8').catch(() => '0')).split('\n')[0],
    );
    await until('its server is gone again', () => pid === 0 || !isAlive(pid));
  }, 120_000);
});
