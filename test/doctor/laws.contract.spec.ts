/** Each law is broken by hand, past every constraint and trigger, and a look names it and what it is about. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { violations } from '../../src/doctor/invariants.js';
import { lookAtKeys } from '../../src/doctor/keys.sql.js';
import { LAW_NAMES, type LawName } from '../../src/doctor/laws.js';
import { lookAtRuns } from '../../src/doctor/runs.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { Runs, type Way } from './runs.fixture.js';

let runs: Runs;

beforeAll(async () => {
  runs = await Runs.open();
  await runs.unprotect();
});
afterAll(() => runs.ground.close());

const WAYS: Way[] = ['pending', 'claimed', 'running', 'flagged', 'succeeded', 'canceled', 'requeued', 'interrupted'];
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

/** The laws that a run breaks. */
async function brokenBy(id: string): Promise<LawName[]> {
  const { violations } = await lookAtRuns(runs.ground.pool, { ids: [id] });
  for (const { object, detail } of violations) {
    expect(object).toBe(encodeId('run', id));
    expect(detail, 'it says what there is instead').not.toBe('');
  }
  return violations.map(({ law }) => law);
}

/** A statement over one run, `$1`. */
const BREAKS: readonly (readonly [law: LawName, what: string, way: Way, sql: string, also?: readonly LawName[]])[] = [
  ['one_standing', 'the live row is gone', 'pending', 'delete from live_runs where run_id = $1'],
  [
    'one_standing',
    'an ended run has a live row',
    'succeeded',
    `insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, event_seq)
     select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, priority, 3
     from runs where id = $1`,
  ],
  ['one_standing', 'the record is gone', 'pending', 'delete from runs where id = $1', ['audit_run']],
  ['live_copies', 'another priority', 'pending', 'update live_runs set priority = 7 where run_id = $1'],
  ['live_copies', 'another queue', 'pending', `update live_runs set queue = 'other' where run_id = $1`],
  [
    'live_copies',
    'an instant that it was not submitted with',
    'pending',
    `update live_runs set not_before = now() where run_id = $1`,
  ],
  ['live_copies', 'another organization', 'pending', 'update live_runs set organization_id = $1 where run_id = $1'],
  ['live_holder', 'held without a holder', 'claimed', 'update live_runs set holder = null where run_id = $1'],
  ['live_holder', 'a holder that never was', 'running', `update live_runs set holder = '${UNKNOWN}' where run_id = $1`],
  ['live_holder', 'claimed, and started', 'running', `update live_runs set state = 'claimed' where run_id = $1`],
  ['live_holder', 'pending, and flagged', 'flagged', `update live_runs set state = 'pending' where run_id = $1`],
  [
    'outcome',
    'an unknown state',
    'succeeded',
    `update runs set state = 'done' where id = $1`,
    ['end_event', 'audit_end'],
  ],
  [
    'outcome',
    'interrupted before it started',
    'interrupted',
    'update runs set started_at = null where id = $1',
    ['audit_end', 'starts_once'],
  ],
  [
    'outcome',
    'an exit code without a tool',
    'interrupted',
    `update runs set exit_code = 0, end_code = 'internal' where id = $1`,
    ['end_event', 'audit_end'],
  ],
  ['listed', 'it is in no list', 'succeeded', 'delete from ended_runs where run_id = $1'],
  [
    'listed',
    'it is in the list of another state',
    'interrupted',
    `update ended_runs set state = 'failed' where run_id = $1`,
  ],
  ['outcome', 'a worker, and never claimed', 'succeeded', 'update runs set claimed_at = null where id = $1'],
  ['outcome', 'nobody who ended it', 'canceled', `update runs set end_by = '' where id = $1`, ['audit_end']],
  ['event_numbers', 'a gap', 'running', 'delete from run_events where run_id = $1 and seq = 1', ['event_ends']],
  ['event_numbers', 'a gap in the middle', 'succeeded', 'delete from run_events where run_id = $1 and seq = 2'],
  ['event_numbers', 'a lost number', 'running', 'update live_runs set event_seq = 9 where run_id = $1'],
  ['event_ends', 'something after the end', 'succeeded', ADDED('run.released', 4)],
  ['event_ends', 'an end of a run that lives', 'pending', `${ADDED('run.ended', 2)}`, ['event_numbers', 'end_event']],
  [
    'event_ends',
    'a second submit',
    'succeeded',
    `update run_events set type = 'run.submitted' where run_id = $1 and seq = 2`,
  ],
  [
    'end_event',
    'another code than the record',
    'succeeded',
    `update run_events set data = data || '{"code":"tool_failed"}' where run_id = $1 and type = 'run.ended'`,
  ],
  ['audit_submit', 'another digest', 'pending', `update runs set spec_digest = 'sha256:0' where id = $1`],
  [
    'audit_submit',
    'an entry that is gone',
    'pending',
    `delete from audit_entries where run_id = $1 and action = 'run.submitted'`,
  ],
  [
    'audit_end',
    'another time',
    'succeeded',
    `update runs set ended_at = ended_at + interval '1 s' where id = $1`,
    ['end_event'],
  ],
  ['audit_end', 'another exit code', 'succeeded', 'update runs set exit_code = 7 where id = $1', ['end_event']],
  ['end_event', 'another detail', 'succeeded', `update runs set end_detail = 'nothing to see' where id = $1`],
  ['audit_submit', 'another name', 'pending', `update runs set name = 'other' where id = $1`],
  [
    'audit_submit',
    'another principal',
    'pending',
    `update runs set principal = principal || '{"id":"tok_other"}' where id = $1`,
  ],
  [
    'audit_submit',
    'another name of the principal',
    'pending',
    `update runs set principal = principal || '{"name":"other"}' where id = $1`,
  ],
  [
    'audit_submit',
    'a principal without a name',
    'pending',
    `update runs set principal = principal - 'name' where id = $1`,
  ],
  ['audit_end', 'another worker', 'succeeded', `update runs set worker_id = '${UNKNOWN}' where id = $1`],
  ['audit_end', 'another who ended it', 'succeeded', `update runs set end_by = 'wrk_other' where id = $1`],
  [
    'audit_end',
    'two entries',
    'succeeded',
    `insert into audit_entries (chain_id, seq, claim, prev, link, at, action, run_id)
     select chain_id, 900000 + seq, claim, prev, link, at, action, run_id from audit_entries
     where run_id = $1 and action = 'run.ended'`,
  ],
  [
    'audit_end',
    'an end of a run that lives',
    'pending',
    `update audit_entries set action = 'run.ended' where run_id = $1`,
    ['audit_submit'],
  ],
  [
    'audit_changes',
    'a requeue without an entry',
    'requeued',
    `delete from audit_entries where run_id = $1 and action = 'run.requeued'`,
  ],
  [
    'audit_changes',
    'a cancel request without an event',
    'flagged',
    `update run_events set type = 'run.released' where run_id = $1 and type = 'run.cancel_requested'`,
  ],
  [
    'audit_changes',
    'a flag that nobody asked for',
    'running',
    `update live_runs set cancel_requested_at = now(), cancel_kind = 'requested' where run_id = $1`,
  ],
  [
    'audit_chain',
    'an entry in the chain of another',
    'pending',
    `update audit_entries set chain_id = 'org_other' where run_id = $1`,
  ],
  ['starts_once', 'output of an earlier fence', 'requeued', OUTPUT(1)],
  ['starts_once', 'output of a later fence', 'running', OUTPUT(2)],
  ['starts_once', 'output of a run that never started', 'canceled', OUTPUT(1)],
  ['starts_once', 'a cut of another fence', 'succeeded', CUT(2)],
  [
    'starts_once',
    'reports of a run that never started',
    'claimed',
    `update run_events set type = 'tool.said' where run_id = $1`,
    ['event_ends'],
  ],
  ['family', 'a root that is another', 'pending', `update runs set root_id = '${UNKNOWN}' where id = $1`],
  ['family', 'a parent that never was', 'pending', `update runs set parent_id = '${UNKNOWN}' where id = $1`],
];

function ADDED(type: string, seq: number): string {
  return `insert into run_events (run_day, run_id, seq, type, at, data)
          select run_day, run_id, ${seq}, '${type}', at, '{}' from run_events where run_id = $1 and seq = 1`;
}

function OUTPUT(fence: number): string {
  return `insert into run_output (run_day, run_id, fence, batch, stream, at, pos, stream_pos, data)
          select run_day, run_id, ${fence}, 1, 1, at, 0, 0, 'x' from run_events where run_id = $1 and seq = 1`;
}

function CUT(fence: number): string {
  return `insert into run_output_cuts select run_day, run_id, ${fence}, 1, 2, 0, 0, 1, 0
          from run_events where run_id = $1 and seq = 1`;
}

describe('the laws of runs', () => {
  it('hold for runs that went any way that there is', async () => {
    for (const way of WAYS) expect(await brokenBy(await runs.make(way)), way).toEqual([]);
    for (const [state, code, over] of [
      ['failed', 'tool_failed', { exitCode: 3 }],
      ['timed_out', 'timeout', { signal: 'SIGTERM' }],
      ['interrupted', 'replica_stopped', { signal: 'SIGKILL' }],
      ['failed', 'invalid_input', {}],
    ] as const) {
      expect(await brokenBy(await runs.make('succeeded', { state, code, ...over })), code).toEqual([]);
    }
  });

  it.each(BREAKS.map(([law, what, way, sql, also = []]) => ({ law, what, way, sql, also })))(
    '$law is broken by $what',
    async ({ law, way, sql, also }) => {
      const id = await runs.make(way);
      expect(await brokenBy(id)).toEqual([]);
      await runs.ground.sql.query(sql, [id]);
      expect((await brokenBy(id)).sort()).toEqual([law, ...also].sort());
    },
  );

  it('audit_run is broken by a run that was removed, also between and behind the runs of a window', async () => {
    const [first, middle, last] = [
      await runs.make('succeeded'),
      await runs.make('succeeded'),
      await runs.make('succeeded'),
    ];
    for (const id of [first, middle, last]) {
      await runs.ground.sql.query('delete from runs where id = $1', [id]);
    }
    const found = (await violations(runs.ground.pool)).filter(({ law }) => law === 'audit_run');
    const objects = found.map(({ object }) => object);
    expect(objects).toEqual(expect.arrayContaining([first, middle, last].map((id) => encodeId('run', id ?? ''))));
  });

  it('are looked at window by window, each run once', async () => {
    const { rows } = await runs.ground.sql.query('select id from runs order by id desc');
    const seen: number[] = [];
    let before: string | undefined;
    do {
      const look = await lookAtRuns(runs.ground.pool, { before, limit: 7 });
      seen.push(look.looked);
      before = look.next;
    } while (before !== undefined);
    expect(seen.reduce((sum, n) => sum + n, 0)).toBe(rows.length);
    expect(seen.slice(0, -1).every((n) => n === 7)).toBe(true);
  });
});

describe('what entries say', () => {
  it('is compared to its end: 12 is not 127', async () => {
    const id = await runs.make('succeeded', { state: 'failed', code: 'tool_failed', exitCode: 127 });
    expect(await brokenBy(id)).toEqual([]);
    await runs.ground.sql.query('update runs set exit_code = 12 where id = $1', [id]);
    await runs.ground.sql.query(
      `update run_events set data = data || '{"exitCode":12}' where run_id = $1 and type = 'run.ended'`,
      [id],
    );
    expect(await brokenBy(id)).toEqual(['audit_end']);
  });

  it('is compared as JSON writes it, and what is null is not there', async () => {
    const name = 'a "quoted"\n\u0001\\ näme — 名, "name":"other"';
    const principal = { type: 'token' as const, id: 'tok_1', name: 'x","principal":"tok_2' };
    const [run] = await runs.ground.submit({ name, principal });
    expect(await brokenBy(run?.id ?? '')).toEqual([]);
    await runs.ground.sql.query('update runs set name = null where id = $1', [run?.id]);
    expect(await brokenBy(run?.id ?? '')).toEqual(['audit_submit']);
  });
});

describe('the law of keys', () => {
  it('key_owner is broken by a key that names a run of another organization, and not by one whose run was removed', async () => {
    const { sql, pool, organizationId } = runs.ground;
    const id = await runs.make('pending');
    const other = newId();
    await sql.query(`insert into organizations (id, name) values ($1, 'other')`, [other]);
    await sql.query(
      `insert into idempotency_keys (organization_id, key, digest, run_id)
       values ($1, 'mine', '', $3), ($2, 'theirs', '', $3), ($1, 'late', '', $4)`,
      [organizationId, other, id, newId()],
    );
    const found: unknown[] = [];
    let after: Parameters<typeof lookAtKeys>[1];
    do {
      const look = await lookAtKeys(pool, after, 2);
      found.push(...look.violations);
      after = look.next;
    } while (after !== undefined);
    expect(found).toEqual([
      { law: 'key_owner', object: encodeId('run', id), detail: expect.stringContaining('"theirs"') },
    ]);
    await sql.query(`delete from organizations where id = $1`, [other]);
  });
});

describe('the file of laws', () => {
  it('has a test that breaks each of them', () => {
    const elsewhere = [
      'key_owner',
      'audit_run',
      'life_state',
      'ended_life',
      'lease_over',
      'due',
      'cancel_heeded',
      'claim_moves_on',
    ];
    expect([...new Set([...BREAKS.map(([law]) => law), ...elsewhere])].sort()).toEqual([...LAW_NAMES].sort());
  });
});
