/**
 * Every transition that the tables mark as audited is driven through its statement, and makes exactly one entry; one that
 * nobody drives here fails by its name. And so does every other change that the installation's chain is to show.
 */
import { readdir, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccessService, generateToken } from '../../src/access/access.service.js';
import { AuditService } from '../../src/audit/audit.service.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { knownMigrations } from '../../src/platform/db/migrate.js';
import { systemTiming } from '../../src/platform/time.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { releaseIfHeld } from '../../src/runs/claim.sql.js';
import { putIfUnchanged } from '../../src/runs/drain.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import type { Outcome } from '../../src/runs/run.js';
import { RUN_TRANSITIONS, type RunStanding, type RunTransition } from '../../src/runs/run.machine.js';
import { settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { submitIfNew } from '../../src/runs/submit.sql.js';
import { leaveIfAlive, reapIfExpired, registerIfNew } from '../../src/runs/worker.sql.js';
import { Ground, type RunSetting } from '../runs/ground.fixture.js';
import { until } from '../server.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

interface Written {
  readonly chain: string;
  readonly action: string;
  readonly runId: string | null;
  readonly payload: Record<string, unknown>;
}

async function writtenBy(act: () => Promise<unknown>): Promise<Written[]> {
  const heads = await ground.pool.run<{ chainId: string; seq: number }[]>(
    (sql) => sql`select chain_id, seq from audit_heads`,
  );
  await act();
  const seen = new Map(heads.map(({ chainId, seq }) => [chainId, seq]));
  const all = await ground.pool.run<(Written & { seq: number })[]>(
    (sql) => sql`
    select chain_id as chain, seq, action, run_id, claim::jsonb -> 'payload' as payload
    from audit_entries order by chain_id, seq`,
  );
  return all.filter(({ chain, seq }) => seq > (seen.get(chain) ?? 0));
}

/** How a row of the table comes about: the run as it is before, and the statement. */
interface Driver {
  readonly setting?: RunSetting;
  readonly life?: 'lost';
  readonly act: (runId: string, worker: string) => Promise<unknown>;
}

const finish = (over: Partial<Outcome>, setting: RunSetting = {}): Driver => ({
  setting,
  act: (id, worker) => finishIfHeld(ground.pool, worker, [ground.finish(id, over)]),
});
const settle = (setting: RunSetting = {}): Driver => ({
  setting,
  life: 'lost',
  act: (id, worker) => settleIfOrphaned(ground.pool, [ground.settle(id, worker)]),
});
const cancel: Driver = { act: (id) => cancelIfLive(ground.pool, [ground.cancel(id)]) };
const flagged = { flagged: true };
const canceled = finish({ state: 'canceled', code: 'canceled', kind: 'requested' }, flagged);

const DRIVERS: Readonly<Record<string, Driver>> = {
  '1 submit absent → pending': { act: (id) => submitIfNew(ground.pool, [ground.newRun({ id })]) },
  '8 settle claimed → pending': settle(),
  '8 settle claimed → canceled': settle(flagged),
  '9 release claimed → canceled': {
    setting: flagged,
    act: (id, worker) => releaseIfHeld(ground.pool, worker, [ground.release(id, worker)]),
  },
  '10 tool_ended running → succeeded': finish({ exitCode: 0 }),
  '10 tool_ended running → failed': finish({ state: 'failed', code: 'tool_failed', exitCode: 1 }),
  '10 tool_ended running → timed_out': finish({ state: 'timed_out', code: 'timeout', signal: 'SIGTERM' }),
  '10a refuse claimed → failed': finish({ state: 'failed', code: 'invalid_input' }),
  '11 settle running → interrupted': settle(),
  '11a tool_stopped running → interrupted': finish({ state: 'interrupted', code: 'supervisor_lost' }),
  '11b unknown_to_holder running → interrupted': finish({ state: 'interrupted', code: 'internal' }),
  '12 drain_over running → interrupted': finish({ state: 'interrupted', code: 'replica_stopped' }),
  '13 cancel held → canceled': cancel,
  '13 cancel pending → canceled': cancel,
  '13 cancel parked → canceled': cancel,
  '14 cancel claimed → unchanged': cancel,
  '14 cancel running → unchanged': cancel,
  '15 cancel_done claimed → canceled': canceled,
  '15 cancel_done running → canceled': canceled,
};

interface Step {
  readonly name: string;
  readonly from: RunStanding;
  readonly to: RunStanding;
  readonly event: string | null;
}

/** Each way through a row: from every state to every state that it allows. */
function stepsOf({ row, command, from, to, event }: RunTransition): Step[] {
  return from.flatMap((before) =>
    (to === 'unchanged' ? [before] : to).map((after) => ({
      name: `${row} ${command} ${before} → ${to === 'unchanged' ? to : after}`,
      from: before,
      to: after,
      event,
    })),
  );
}

const AUDITED = RUN_TRANSITIONS.filter(({ audited }) => audited).flatMap(stepsOf);

describe('F139 S4-08 every audited transition of a run', () => {
  it('is driven here, and nothing else is', () => {
    expect(AUDITED.length).toBeGreaterThan(15);
    expect(Object.keys(DRIVERS).sort()).toEqual(AUDITED.map(({ name }) => name).sort());
  });

  it.each(AUDITED)('$name makes exactly one entry, with what happened, to what and by whom', async (step) => {
    const driver = DRIVERS[step.name];
    if (!driver) throw new Error(`nobody drives ${step.name}: whether it makes an entry is not known`);
    const worker = await ground.worker(driver.life === 'lost' ? { state: 'lost', leaseMs: -1 } : {});
    const id = await ground.runIn(step.from, { holder: worker, ...driver.setting });
    const written = await writtenBy(() => driver.act(id, worker));
    expect((await ground.look(id)).standing).toBe(step.to);
    expect(written).toEqual([
      {
        chain: ground.chain,
        seq: expect.any(Number),
        action: step.event,
        runId: id,
        payload: expect.objectContaining({
          action: step.event,
          object: encodeId('run', id),
          principal: expect.stringMatching(/^(tok|wrk)_/),
          ...(step.event === 'run.ended' ? { state: step.to } : {}),
        }),
      },
    ]);
  });
});

/** What happens to workers and to access: by whom it is recorded in which chain. */
interface Change {
  readonly name: string;
  readonly act: () => Promise<unknown>;
  readonly action: string;
  readonly chain: () => string;
  readonly principal: RegExp;
}

const inInstallation = () => ground.installation;
const entryOf = (id: string) => ({ chain: ground.installation, object: encodeId('wrk', id) });
const changeOf = (worker: string, seen: number) => ({
  worker,
  seen,
  ...entryOf(worker),
  by: 'tok_test',
  byName: 'test',
});
const life = () => ({ id: newId(), name: 'w', kind: 'worker' as const, slots: 1, queues: ['default'], version: '0' });

const CHANGES: readonly Change[] = [
  {
    name: 'a worker joins',
    act: () => {
      const worker = life();
      return registerIfNew(ground.pool, worker, 30_000, entryOf(worker.id));
    },
    action: 'worker.joined',
    chain: inInstallation,
    principal: /^wrk_/,
  },
  ...(['draining', 'stopped'] as const).map((state) => ({
    name: `a worker says that it is ${state}`,
    act: async () => {
      const id = await ground.worker();
      return leaveIfAlive(ground.pool, id, state, entryOf(id));
    },
    action: `worker.${state}`,
    chain: inInstallation,
    principal: /^wrk_/,
  })),
  {
    name: 'a worker is lost',
    act: async () => {
      const id = await ground.worker({ leaseMs: -1_000 });
      return reapIfExpired(ground.pool, ground.installation, [
        { id, object: encodeId('wrk', id), by: 'wrk_janitor', byName: 'janitor' },
      ]);
    },
    action: 'worker.lost',
    chain: inInstallation,
    principal: /^wrk_janitor$/,
  },
  {
    name: 'a person drains a worker',
    act: async () => putIfUnchanged(ground.pool, 'draining', changeOf(await ground.worker(), 0)),
    action: 'worker.draining',
    chain: inInstallation,
    principal: /^tok_test$/,
  },
  {
    name: 'a person puts a worker back',
    act: async () => {
      const id = await ground.worker({ state: 'draining' });
      await ground.sql.query(`update workers set drained_by = 'tok_test' where id = $1`, [id]);
      return putIfUnchanged(ground.pool, 'live', changeOf(id, 0));
    },
    action: 'worker.undrained',
    chain: inInstallation,
    principal: /^tok_test$/,
  },
  {
    name: 'a token is made',
    act: () => new AccessService(ground.pool, systemTiming).admit(generateToken(), 'test'),
    action: 'token.created',
    chain: () => ground.chain,
    principal: /^system$/,
  },
];

/** Written when an installation is made or a replica starts on it. */
const AT_THE_START = ['organization.created', 'schema.migrated'];

/** Written by statements that a caller's request leads to; their specs say what they hold. */
const PROVEN_ELSEWHERE = [
  'access.refused',
  'audit.exported',
  'audit.key_recorded',
  'audit.key_rotated',
  'retention.changed',
  'runs.removed',
];

/** Every action that a statement of the program writes, by its name in the text. */
async function actionsInSource(): Promise<Set<string>> {
  const source = new URL('../../src/', import.meta.url);
  const files = (await readdir(source, { recursive: true })).filter((name) => name.endsWith('.sql.ts'));
  const texts = await Promise.all(files.map((name) => readFile(new URL(name, source), 'utf8')));
  return new Set(
    texts.flatMap((text) => [...text.matchAll(/'action', '([a-z_.]+)'/g)].map(([, action = '']) => action)),
  );
}

describe('F139 every other change', () => {
  it('that a statement records is made here, or by a test that is named', async () => {
    const made = [...AUDITED.map(({ event }) => event), ...CHANGES.map(({ action }) => action), ...AT_THE_START];
    const unproven = [...(await actionsInSource())].filter(
      (action) => ![...made, ...PROVEN_ELSEWHERE].includes(action),
    );
    expect(unproven).toEqual([]);
  });

  it.each(CHANGES)('$name: one entry that says by whom', async ({ act, action, chain, principal }) => {
    const written = await writtenBy(act);
    expect(written.map((entry) => ({ chain: entry.chain, action: entry.action }))).toEqual([
      { chain: chain(), action },
    ]);
    expect(written[0]).toMatchObject({
      runId: null,
      payload: {
        action,
        object: expect.stringMatching(/^(wrk|tok)_/),
        principal: expect.stringMatching(principal),
        ...(action === 'token.created' ? {} : { principalName: expect.any(String) }),
      },
    });
  });

  it('the first organization stands in its own chain and in that of the installation', async () => {
    const made = await ground.pool.run<{ chain: string; principal: string }[]>(
      (sql) => sql`
      select chain_id as chain, claim::jsonb -> 'payload' ->> 'principal' as principal
      from audit_entries where action = 'organization.created'`,
    );
    expect(made.map(({ chain }) => chain).sort()).toEqual([ground.installation, ground.chain].sort());
    expect(made.map(({ principal }) => principal)).toEqual(['system', 'system']);
  });

  it('each migration stands in the chain of the installation once, in order, however many replicas start at once', async () => {
    const services = Array.from({ length: 8 }, () => new AccessService(ground.pool, systemTiming));
    await Promise.all(services.map((service) => service.prepare()));
    const told = () =>
      ground.pool.run<{ chain: string; object: string; principal: string }[]>(
        (sql) => sql`
        select chain_id as chain, claim::jsonb -> 'payload' ->> 'object' as object,
               claim::jsonb -> 'payload' ->> 'principal' as principal
        from audit_entries where action = 'schema.migrated' order by seq`,
      );
    const expected = (await knownMigrations()).map((object) => ({
      chain: ground.installation,
      object,
      principal: 'system',
    }));
    expect(await told()).toEqual(expected);
    await ground.sql.query(`insert into schema_migrations (name, run_on) values ('9999_next', now())`);
    // All of them look before any of them writes.
    const lock = `select pg_advisory_lock(1129337940, lock_key) from audit_heads where chain_id = $1`;
    await ground.sql.query(lock, [ground.installation]);
    const prepared = Promise.all(services.map((service) => service.prepare()));
    await until('they wait for the chain', async () => {
      const { rows } = await ground.sql.query(
        `select count(*)::integer as n from pg_locks where locktype = 'advisory' and not granted
           and database = (select oid from pg_database where datname = current_database())`,
      );
      return rows[0].n >= 2;
    });
    await ground.sql.query('select pg_advisory_unlock_all()');
    await prepared;
    expect(await told()).toEqual([
      ...expected,
      { chain: ground.installation, object: '9999_next', principal: 'system' },
    ]);
  });
});

it('F139 the columns of all that was written here say what its text says', async () => {
  const audit = new AuditService(ground.pool);
  for (const chain of [ground.chain, ground.installation]) {
    expect(await audit.verify(chain)).toMatchObject({ ok: true });
  }
  const rows = await ground.pool.run<{ chain: string; seq: number; object: string; runId: string | null }[]>(
    (sql) => sql`
    select chain_id as chain, seq, claim::jsonb -> 'payload' ->> 'object' as object, run_id from audit_entries`,
  );
  expect(rows.length).toBeGreaterThan(20);
  for (const { chain, seq, object, runId } of rows) {
    const about = object.startsWith('run_') ? object : null;
    expect(runId && encodeId('run', runId), `${chain} ${seq}`).toBe(about);
  }
});
