/** One key and one set of runs, whatever the database does between: for every POST that makes something. */
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { expireKeys } from '../../src/runs/submit.sql.js';
import { type Answer, type LocalSurface, openLocalSurface } from '../send.js';
import { CREATING, type Creating, type Creation, under } from './creating.fixture.js';
import { until } from './ground.fixture.js';

const DAY_MS = 86_400_000;

let surface: LocalSurface;
let sql: pg.Client;
beforeAll(async () => {
  surface = await openLocalSurface();
  sql = await surface.session();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await sql.query('drop trigger if exists fault on runs');
});
afterAll(() => surface.close());

async function countRuns(queue: string): Promise<number> {
  const { rows } = await sql.query('select count(*)::integer as n from runs where queue = $1', [queue]);
  return rows[0].n;
}

async function prepared(creating: Creating): Promise<Creation & { queue: string; key: string; before: number }> {
  const queue = `q-${newId()}`;
  const creation = await creating.prepare(surface.send, queue);
  return { ...creation, queue, key: newId(), before: await countRuns(queue) };
}

/** Sends while the chain can't be appended to; `meanwhile` runs once the statement waits there, all its rows written. */
async function atTheChain(send: () => Promise<Answer>, meanwhile: () => Promise<void>): Promise<Answer> {
  const holder = await surface.session();
  await holder.query('begin');
  await holder.query('select pg_advisory_xact_lock(1129337940, lock_key) from audit_heads where chain_id = $1', [
    encodeId('org', surface.organizationId),
  ]);
  const answer = send();
  await waitersAtLocks(1);
  await meanwhile();
  await holder.query('commit');
  return answer;
}

async function waitersAtLocks(n: number): Promise<number[]> {
  let pids: number[] = [];
  await until(`${n} statements wait`, async () => {
    const { rows } = await sql.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    pids = rows.map(({ pid }) => pid);
    return pids.length === n;
  });
  return pids;
}

describe.each(CREATING.map((creating) => [creating.operationId, creating] as const))('%s', (_, creating) => {
  const [made, replayed] = creating.status;

  it('F093 F095 a connection that is cut during the statement makes it once: it is sent again', async () => {
    const { request, key, queue, makes, before } = await prepared(creating);
    const answer = await atTheChain(
      () => surface.send(under(key, request)),
      async () => {
        const [pid] = await waitersAtLocks(1);
        await sql.query('select pg_terminate_backend($1)', [pid]);
      },
    );
    expect(answer.status, answer.text).toBe(made);
    expect(await countRuns(queue)).toBe(before + makes);
    const again = await surface.send(under(key, request));
    expect([again.status, creating.idsOf(again)]).toEqual([replayed, creating.idsOf(answer)]);
  });

  it.each(['40001', '40P01'])('F093 an error %s of the database makes it once: it is sent again', async (code) => {
    const { request, key, queue, makes, before } = await prepared(creating);
    await sql.query(`
      create sequence if not exists faults;
      select setval('faults', 1, false);
      create or replace function fault() returns trigger language plpgsql as $$
      begin
        if nextval('faults') <= 3 then raise exception 'injected' using errcode = '${code}'; end if;
        return new;
      end $$;
      create trigger fault before insert on runs for each row execute function fault()`);
    const answer = await surface.send(under(key, request));
    expect(answer.status, answer.text).toBe(made);
    expect(await countRuns(queue)).toBe(before + makes);
    const again = await surface.send(under(key, request));
    expect(creating.idsOf(again)).toEqual(creating.idsOf(answer));
    expect(again.headers['idempotency-replayed']).toBe('true');
  });

  it('F095 an answer of the database that is lost makes it once, and it is no replay', async () => {
    const { request, key, queue, makes, before } = await prepared(creating);
    const { submit } = surface.platform.pools;
    const run: Pool['run'] = submit.run.bind(submit);
    let lost = 0;
    vi.spyOn(submit, 'run').mockImplementation(async (statement) => {
      const rows = await run(statement);
      const isWrite = Array.isArray(rows) && rows.some((row) => row && 'receipt' in row);
      if (!isWrite || lost > 0) return rows as never;
      lost += 1;
      throw Object.assign(new Error('lost'), { code: 'CONNECTION_CLOSED' });
    });
    const answer = await surface.send(under(key, request));
    expect(lost).toBe(1);
    expect(answer.status, answer.text).toBe(made);
    expect(answer.headers['idempotency-replayed']).toBeUndefined();
    expect(answer.headers['audit-receipt']).toMatch(/^org_/);
    expect(await countRuns(queue)).toBe(before + makes);
    const again = await surface.send(under(key, request));
    expect(creating.idsOf(again)).toEqual(creating.idsOf(answer));
    expect(again.headers['idempotency-replayed']).toBe('true');
  });

  it('F095 what the database refuses for good leaves no key, and the same request is taken later', async () => {
    const { request, key, queue, makes, before } = await prepared(creating);
    await sql.query(`
      create or replace function fault() returns trigger language plpgsql as $$
      begin raise exception 'injected' using errcode = '23514'; end $$;
      create trigger fault before insert on runs for each row execute function fault()`);
    expect((await surface.send(under(key, request))).status).toBe(500);
    const { rows } = await sql.query('select 1 from idempotency_keys where key = $1', [key]);
    expect(rows).toEqual([]);
    await sql.query('drop trigger fault on runs');
    expect((await surface.send(under(key, request))).status).toBe(made);
    expect(await countRuns(queue)).toBe(before + makes);
  });

  it('F093 the same key in flight is waited for, and gives what that makes', async () => {
    const { request, other, key, queue, makes, before } = await prepared(creating);
    let waiting: Promise<Answer>[] = [];
    const first = await atTheChain(
      () => surface.send(under(key, request)),
      async () => {
        waiting = [request, other].map((next) => surface.send(under(key, next)));
      },
    );
    const [same, reused] = await Promise.all(waiting);
    expect([same?.status, reused?.status], same?.text).toEqual([replayed, 422]);
    expect(same && creating.idsOf(same)).toEqual(creating.idsOf(first));
    expect(reused?.json.code).toBe('idempotency_key_reused');
    expect(await countRuns(queue)).toBe(before + makes);
  });

  it('F095 a key is forgotten 7 days after all it made has ended, and then makes anew', async () => {
    const { request, key, queue, makes, before } = await prepared(creating);
    const first = creating.idsOf(await surface.send(under(key, request)));
    await sql.query(`update idempotency_keys set created_at = now() - interval '30 days' where key = $1`, [key]);
    const cancel = (id = '') => surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
    for (const id of first.slice(1)) await cancel(id);
    expect(await expireKeys(surface.pool, 7 * DAY_MS, 100), 'its first run lives').toBe(0);
    await cancel(first[0]);
    expect(await expireKeys(surface.pool, 7 * DAY_MS, 100), 'its last run ended lately').toBe(0);
    await sql.query('alter table runs disable trigger user');
    await sql.query(`update runs set ended_at = now() - interval '8 days' where queue = $1`, [queue]);
    await sql.query('alter table runs enable trigger user');
    expect(await expireKeys(surface.pool, 7 * DAY_MS, 100)).toBe(1);
    const again = await surface.send(under(key, request));
    expect([again.status, again.headers['idempotency-replayed']]).toEqual([made, undefined]);
    expect(creating.idsOf(again).filter((id) => first.includes(id))).toEqual([]);
    expect(await countRuns(queue)).toBe(before + 2 * makes);
  });
});

it('S4-110 a batch sent again tells an item that was refused from one whose run was removed, though both are gone', async () => {
  const [key, used, own, id, taken] = [newId(), newId(), newId(), newId(), newId()];
  const submit = (json: object, headers = {}) => surface.send({ method: 'POST', path: '/v1/runs', json, headers });
  await submit({ kind: 'noop' }, { 'idempotency-key': used });
  await submit({ kind: 'noop', id: taken });
  const runs = [
    { kind: 'noop' },
    { kind: 'noop', name: 'other', idempotencyKey: used },
    { kind: 'command', id: taken, spec: { argv: ['x'] } },
    { kind: 'noop', idempotencyKey: own },
    { kind: 'noop', id },
  ];
  const send = async () => {
    const answer = await surface.send(under(key, { method: 'POST', path: '/v1/runs/batch', json: { runs } }));
    return answer.json.items.map(({ run, problem }: { run?: { id: string }; problem?: { code: string } }) =>
      problem ? problem.code : run?.id,
    );
  };
  const refused = ['idempotency_key_reused', 'id_conflict'];
  const first = await send();
  expect(first.slice(1, 3)).toEqual(refused);
  const gone = [taken, id, decodeId('run', first[3])];
  await sql.query('delete from idempotency_keys where key = any ($1)', [[used, own]]);
  await sql.query('delete from live_runs where run_id = any ($1)', [gone]);
  await sql.query('delete from runs where id = any ($1)', [gone]);
  expect(await send()).toEqual([first[0], ...refused, 'run_removed', 'run_removed']);
});
