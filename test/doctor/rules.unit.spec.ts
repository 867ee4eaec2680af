import { describe, expect, it } from 'vitest';
import type { ConnectedLife } from '../../src/doctor/replicas.js';
import { partitionsCheck, replicasCheck } from '../../src/doctor/replicas.rules.js';
import type { DeadRows, HiddenSnapshots, ServerFacts } from '../../src/doctor/server.js';
import { connectionsCheck, databaseCheck, schemaCheck, vacuumCheck } from '../../src/doctor/server.rules.js';
import type { Check } from '../../src/kernel/diagnosis.js';

const SERVER: ServerFacts = {
  role: 'app',
  version: '17.2',
  versionNumber: 170_002,
  encoding: 'UTF8',
  isRecovering: false,
  isReadOnly: false,
  hiddenSessions: 0,
  isAutovacuumOn: true,
};
const TABLE: DeadRows = {
  table: 'live_runs',
  live: 50_000,
  dead: 900_000,
  vacuumedMinutes: 60,
  isBeingVacuumed: false,
  isLeftAlone: false,
};
const NONE: HiddenSnapshots = { sessions: 0, pid: null, transactions: 0 };
const KEY = 'sha256:current';
const LIFE: ConnectedLife = {
  id: '01890000-0000-7000-8000-000000000001',
  name: 'one',
  kind: 'replica',
  version: '1.0.0',
  signs: KEY,
  clockAheadMs: 3,
  ageMinutes: 300,
  startedAtMs: 1_000_000,
  seenAtMs: 19_000_000,
  ttlMs: 30_000,
};
const other = (over: Partial<ConnectedLife>): ConnectedLife => ({ ...LIFE, name: 'two', ...over });
const faults = (check: Check) => check.faults.map(({ what, remedy }) => `${what}; ${remedy}`);

describe('a server', () => {
  it('that is fit has no fault', () => {
    expect(databaseCheck(SERVER).faults).toEqual([]);
    expect(databaseCheck(SERVER).summary).toContain('PostgreSQL 17.2');
  });

  it.each([
    [{ versionNumber: 140_011, version: '14.11' }, /14\.11 is too old; upgrade/],
    [{ encoding: 'SQL_ASCII' }, /encoding is SQL_ASCII/],
    [{ isRecovering: true, isReadOnly: true }, /standby.*point DATABASE_URL at the primary/],
    [{ isReadOnly: true }, /takes no writes: default_transaction_read_only is on/],
  ])('%o has one fault', (over, text) => {
    expect(faults(databaseCheck({ ...SERVER, ...over }))).toEqual([expect.stringMatching(text)]);
  });
});

describe('a schema', () => {
  const KNOWN = ['0001_a', '0002_b'];

  it('is this program’s, or what to do about it is said', () => {
    expect(faults(schemaCheck(KNOWN, KNOWN))).toEqual([]);
    expect(faults(schemaCheck(['0001_a'], KNOWN))).toEqual([
      expect.stringMatching(/lacks 1 .*0002_b; run `capstan migrate`/),
    ]);
    expect(faults(schemaCheck([...KNOWN, '0003_c'], KNOWN))).toEqual([
      expect.stringMatching(/newer than this program: it has 0003_c.*use the doctor of the newer program/),
    ]);
    expect(faults(schemaCheck(undefined, KNOWN))).toEqual([expect.stringMatching(/no Capstan.*DATABASE_URL/)]);
  });
});

describe('connections', () => {
  const use = { bound: 'server', most: 100, who: ['capstan read (60)', 'bi (29)'] } as const;

  it('are a fault from nine tenths on, and who has them is said', () => {
    expect(faults(connectionsCheck([{ ...use, used: 89, who: [...use.who] }], SERVER))).toEqual([]);
    expect(faults(connectionsCheck([{ ...use, used: 90, who: [...use.who] }], SERVER))).toEqual([
      expect.stringMatching(
        /^90 of the 100 .* server .*capstan read \(60\), bi \(29\); allow more \(max_connections\)/,
      ),
    ]);
  });

  it('of other roles that can’t be looked into are a note, and no fault', () => {
    const { notes, faults } = connectionsCheck([], { ...SERVER, hiddenSessions: 2 });
    expect(notes).toEqual([expect.stringContaining('pg_read_all_stats')]);
    expect(faults).toEqual([]);
  });
});

describe('vacuum', () => {
  it('may be held back by sessions that can’t be looked into: then nothing is claimed', () => {
    const { faults: none, notes, summary } = vacuumCheck([], [], SERVER, { sessions: 2, pid: 7, transactions: 40 });
    expect({ none, summary }).toEqual({ none: [], summary: 'nothing that can be looked into holds it back' });
    expect(notes).toEqual([
      expect.stringMatching(/2 of them.* session 7 .* 40 transactions.*grant pg_read_all_stats .* to app/),
    ]);
    expect(faults(vacuumCheck([], [], SERVER, { sessions: 1, pid: 7, transactions: 1_000_001 }))).toEqual([
      expect.stringMatching(/^session 7 of another role keeps the dead rows of 1000001 .*pg_terminate_backend\(7\)/),
    ]);
  });

  it('is held back by sessions, prepared transactions, slots and standbys, each with what to do', () => {
    const session = {
      kind: 'session',
      pid: 42,
      user: 'bi',
      application: 'report',
      state: 'idle in transaction',
      minutes: 12,
    };
    const holders = [
      session,
      { kind: 'prepared', name: 'gid', user: 'bi', minutes: 60 },
      { kind: 'slot', name: 'old', isActive: false, transactions: 5 },
      { kind: 'standby', name: 'west', transactions: 2_000_000 },
    ] as const;
    expect(faults(vacuumCheck(holders as never, [], SERVER, NONE))).toEqual([
      expect.stringMatching(
        /session 42 \(report, role bi, idle in transaction\).* 12 minutes.*pg_terminate_backend\(42\)/,
      ),
      expect.stringMatching(/prepared transaction gid of bi is 60 minutes old; .*rollback prepared/),
      expect.stringMatching(/slot old .*nobody is connected.*pg_drop_replication_slot/),
      expect.stringMatching(/standby west .*hot_standby_feedback/),
    ]);
  });

  it('is missed where it is off, and where rows died that nobody removed', () => {
    const row = { ...TABLE, dead: 100_000 };
    const holder = { kind: 'slot', name: 'old', isActive: false, transactions: 5 } as const;
    const dead = (...told: string[]) => told.filter((text) => text.includes('dead rows beside'));
    expect(dead(...faults(vacuumCheck([holder], [row], SERVER, NONE)))).toEqual([]);
    expect(dead(...faults(vacuumCheck([holder], [{ ...row, dead: 100_001 }], SERVER, NONE)))).toEqual([
      expect.stringMatching(/^live_runs has 100001 dead rows beside 50000 others, and was vacuumed 60 minutes ago; /),
    ]);
    expect(faults(vacuumCheck([], [{ ...row, isLeftAlone: true }], SERVER, NONE))).toHaveLength(1);
    expect(faults(vacuumCheck([], [], { ...SERVER, isAutovacuumOn: false }, NONE))).toHaveLength(1);
  });
});

describe('dead rows that nothing keeps', () => {
  it('are gone with the next round of autovacuum, whatever a burst left behind', () => {
    expect(faults(vacuumCheck([], [TABLE], SERVER, NONE))).toEqual([]);
  });

  it.each([
    [{ vacuumedMinutes: 5 }, 1],
    [{ vacuumedMinutes: null }, 1],
    [{ vacuumedMinutes: 4 }, 0],
    [{ isBeingVacuumed: true }, 0],
    [{ live: 2_000_000 }, 0],
  ])('in their millions, %o: %i faults', (over, n) => {
    expect(faults(vacuumCheck([], [{ ...TABLE, dead: 1_000_001, ...over }], SERVER, NONE))).toHaveLength(n);
  });
});

describe('replicas', () => {
  it('that agree have no fault, nor has an installation without any', () => {
    expect(faults(replicasCheck([LIFE, other({})], KEY))).toEqual([]);
    expect(faults(replicasCheck([], undefined))).toEqual([]);
  });

  it('may differ in version while they are upgraded, not for more than an hour', () => {
    expect(faults(replicasCheck([LIFE, other({ version: '1.1.0', ageMinutes: 60 })], KEY))).toEqual([]);
    expect(faults(replicasCheck([LIFE, other({ version: '1.1.0', ageMinutes: 61 })], KEY))).toEqual([
      expect.stringMatching(/different versions .* 61 minutes: 1\.0\.0 \(one\), 1\.1\.0 \(two\); finish the upgrade/),
    ]);
  });

  it('have the key of the installation, if it has one; workers and programs of before don’t say', () => {
    expect(faults(replicasCheck([other({ signs: null })], undefined))).toEqual([]);
    expect(faults(replicasCheck([other({ signs: null, kind: 'worker' })], KEY))).toEqual([]);
    expect(faults(replicasCheck([other({ signs: null, clockAheadMs: null })], KEY))).toEqual([]);
    expect(faults(replicasCheck([other({ signs: null })], KEY))).toEqual([
      expect.stringMatching(/two signs no bundles.*not given it; start it with the key sha256:current/),
    ]);
    expect(faults(replicasCheck([other({ signs: 'sha256:old' })], KEY))).toEqual([
      expect.stringMatching(/two signs no bundles: its key sha256:old is not/),
    ]);
  });

  it.each([
    [10_001, 'ahead of'],
    [-10_001, 'behind'],
  ])('whose clock is %i ms off are told', (clockAheadMs, where) => {
    expect(faults(replicasCheck([other({ clockAheadMs: Math.sign(clockAheadMs) * 10_000 })], KEY))).toEqual([]);
    expect(faults(replicasCheck([other({ clockAheadMs })], KEY))).toEqual([
      expect.stringContaining(`the clock of two is 10 s ${where} the database's`),
    ]);
  });

  it('have a name each', () => {
    expect(faults(replicasCheck([LIFE, other({ name: 'one' })], KEY))).toEqual([
      '2 connected processes are called one; give each its own CAPSTAN_NAME',
    ]);
  });

  it('have one life after the other under a name, though the lease of one that was killed is not over', () => {
    const killed = other({ name: 'one', version: '0.9.0', signs: 'sha256:old', clockAheadMs: 60_000 });
    const next = { ...LIFE, startedAtMs: killed.seenAtMs + 1_000, seenAtMs: killed.seenAtMs + 5_000, ageMinutes: 0 };
    const check = replicasCheck([killed, next], KEY);
    expect(faults(check)).toEqual([]);
    expect(check.summary).toBe('1 connected, version 1.0.0');
    const lastAt = (ms: number) => [{ ...killed, seenAtMs: next.startedAtMs + ms }, next];
    expect(faults(replicasCheck(lastAt(10_000), KEY)), 'a renewal on its way').toEqual([]);
    expect(faults(replicasCheck(lastAt(10_001), KEY))[0]).toMatch(/^2 connected processes are called one; /);
  });

  it('make partitions ahead; where none has run for a while nobody does', () => {
    const missing = ['run_events_20260302'];
    expect(faults(partitionsCheck(missing, [LIFE]))).toEqual([expect.stringContaining('run_events_20260302')]);
    expect(faults(partitionsCheck([], [LIFE]))).toEqual([]);
    expect(faults(partitionsCheck(missing, []))).toEqual([]);
    expect(faults(partitionsCheck(missing, [other({ ageMinutes: 20 })]))).toEqual([]);
  });
});
