/**
 * What the contract tests of runs stand on: a prepared database, workers and runs put into any state by hand, and one
 * look at everything that is stored about a run.
 */
import type pg from 'pg';
import { AccessService } from '../../src/access/access.service.js';
import { findOrganization } from '../../src/access/access.sql.js';
import { installationChain } from '../../src/audit/audit.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { digestOf } from '../../src/kernel/json.js';
import type { Pool } from '../../src/platform/db/db.js';
import { systemTiming } from '../../src/platform/time.js';
import type { Cancel } from '../../src/runs/cancel.sql.js';
import type { Release } from '../../src/runs/claim.sql.js';
import type { Finish } from '../../src/runs/finish.sql.js';
import type { Hold, Outcome } from '../../src/runs/run.js';
import { isEnded, type RunStanding } from '../../src/runs/run.machine.js';
import type { Settle } from '../../src/runs/settle.sql.js';
import { type NewRun, submitIfNew } from '../../src/runs/submit.sql.js';
import type { WorkerState } from '../../src/runs/worker.js';
import { createDatabase, type TestDatabase } from '../database.js';

export interface RunSetting {
  readonly holder?: string;
  readonly fence?: number;
  readonly flagged?: boolean;
  readonly queue?: string;
  readonly priority?: number;
  readonly notBefore?: Date;
}

/** Everything that is stored about a run; equal before and after means that nothing was written. */
export interface Look {
  readonly standing: RunStanding;
  readonly run: Record<string, unknown> | null;
  readonly live: Record<string, unknown> | null;
  readonly events: readonly { readonly seq: number; readonly type: string; readonly data: Record<string, unknown> }[];
  /** The actions of its audit entries, oldest first. */
  readonly entries: readonly string[];
}

export class Ground {
  private constructor(
    readonly db: TestDatabase,
    readonly pool: Pool,
    readonly sql: pg.Client,
    readonly organizationId: string,
    readonly installation: string,
  ) {}

  static async open(size = 8): Promise<Ground> {
    const db = await createDatabase();
    const pool = db.pool(size);
    await new AccessService(pool, systemTiming).prepare();
    const organization = await findOrganization(pool, 'default');
    const installation = await installationChain(pool);
    if (!organization || !installation) throw new Error('the database was not prepared');
    return new Ground(db, pool, await db.session(), organization.id, installation);
  }

  get chain(): string {
    return encodeId('org', this.organizationId);
  }

  close(): Promise<void> {
    return this.db.drop();
  }

  newRun(over: Partial<NewRun> = {}): NewRun {
    const id = over.id ?? newId();
    return {
      id,
      organizationId: this.organizationId,
      chain: this.chain,
      object: encodeId('run', id),
      kind: 'command',
      name: null,
      queue: 'default',
      priority: 0,
      labels: {},
      spec: {},
      specDigest: digestOf({}),
      timeoutMs: null,
      notBefore: null,
      origin: 'api',
      principal: { type: 'token', id: 'tok_test', name: 'test' },
      rerunOf: null,
      traceparent: null,
      key: null,
      requestDigest: 'sha256:request',
      ...over,
    };
  }

  async submit(...overs: Partial<NewRun>[]): Promise<NewRun[]> {
    const runs = overs.map((over) => this.newRun(over));
    const made = await submitIfNew(this.pool, runs);
    if (made.length !== runs.length) throw new Error('not every run was new');
    return runs;
  }

  async worker(over: { state?: WorkerState; leaseMs?: number; queues?: readonly string[] } = {}): Promise<string> {
    const { state = 'live', leaseMs = 60_000, queues = ['default'] } = over;
    const id = newId();
    await this.sql.query(
      `insert into workers (id, name, kind, slots, queues, version, ttl_ms, state, lease_until, ended_at)
       values ($1, $2, 'replica', 4, $3, '0', 30000, $4, clock_timestamp() + $5::integer * interval '1 millisecond', $6)`,
      [id, `w-${id.slice(-4)}`, queues, state, leaseMs, state === 'lost' || state === 'stopped' ? new Date() : null],
    );
    return id;
  }

  /** A run put into this state by hand, with no statement of the product; `absent` is only an id. */
  async runIn(standing: RunStanding, setting: RunSetting = {}): Promise<string> {
    const id = newId();
    if (standing === 'absent') return id;
    const { holder = null, fence = 3, flagged = false, queue = 'default', priority = 0, notBefore = null } = setting;
    const ended = isEnded(standing);
    const held = standing === 'claimed' || standing === 'running';
    await this.sql.query(
      `insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal,
                         root_id, created_at, state, end_code, end_by, ended_at, fence, worker_id)
       values ($1, $2, 'noop', $3, $4, '{}', '{}', $5, 'api', '{"id":"tok_test","name":"test"}', $1, now(),
               $6, $7, $8, $9, $10, $11)`,
      [
        id,
        this.organizationId,
        queue,
        priority,
        digestOf({}),
        ...(ended ? [standing, 'ok', 'wrk_test', new Date(), fence, holder] : [null, null, null, null, null, null]),
      ],
    );
    if (ended) return id;
    await this.sql.query(
      `insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, not_before, fence,
                              holder, claimed_at, started_at, cancel_requested_at, cancel_kind, event_seq)
       select id, organization_id, created_at, (created_at at time zone 'UTC')::date, $2, queue, priority, $3, $4, $5,
              case when $6 then now() end, case when $2 = 'running' then now() end,
              case when $7 then now() end, case when $7 then 'requested' end, 1
       from runs where id = $1`,
      [id, standing, notBefore, fence, held ? holder : null, held, flagged && held],
    );
    return id;
  }

  /** Makes `n` runs of this state at once, for races. */
  async runsIn(n: number, standing: RunStanding, setting: RunSetting = {}): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < n; i += 1) ids.push(await this.runIn(standing, setting));
    return ids;
  }

  async look(id: string): Promise<Look> {
    const { rows } = await this.sql.query(
      `select coalesce((select state from live_runs where run_id = $1), (select state from runs where id = $1), 'absent') as standing,
              (select to_jsonb(r) from runs r where id = $1) as run,
              (select to_jsonb(l) from live_runs l where run_id = $1) as live,
              (select coalesce(jsonb_agg(jsonb_build_object('seq', seq, 'type', type, 'data', data) order by seq), '[]')
               from run_events where run_id = $1) as events,
              array(select action from audit_entries where run_id = $1 order by seq) as entries`,
      [id],
    );
    return rows[0] as Look;
  }

  hold(runId: string, fence = 3): Hold {
    return { runId, fence };
  }

  finish(runId: string, over: Partial<Outcome> = {}, fence = 3): Finish {
    return {
      runId,
      fence,
      chain: this.chain,
      object: encodeId('run', runId),
      outcome: { state: 'succeeded', code: 'ok', kind: null, detail: '', exitCode: null, signal: null, ...over },
      output: null,
      outputDigest: null,
    };
  }

  release(runId: string, holder: string, fence = 3): Release {
    return { runId, fence, chain: this.chain, object: encodeId('run', runId), worker: encodeId('wrk', holder) };
  }

  cancel(runId: string, over: Partial<Cancel> = {}): Cancel {
    return {
      runId,
      organizationId: this.organizationId,
      chain: this.chain,
      object: encodeId('run', runId),
      kind: 'requested',
      detail: 'canceled by test',
      by: 'tok_test',
      byName: 'test',
      ...over,
    };
  }

  settle(runId: string, holder: string): Settle {
    return {
      runId,
      holder,
      chain: this.chain,
      object: encodeId('run', runId),
      worker: encodeId('wrk', holder),
      by: 'wrk_janitor',
      byName: 'janitor',
    };
  }

  /** Resolves when exactly `n` sessions of this database wait for a lock. */
  async waiting(n: number): Promise<void> {
    await until(`${n} statements wait for a lock`, async () => {
      const { rows } = await this.sql.query(
        `select count(*)::integer as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows[0].n === n;
    });
  }

  /**
   * Holds what these statements lock while `start` sends others, until `waiters` of them wait; then ends the holding
   * transaction with `end` and answers with what the others said.
   */
  async behind<T>(
    locks: readonly (readonly [text: string, values: readonly unknown[]])[],
    waiters: number,
    start: () => Promise<T>,
    end: 'commit' | 'rollback',
  ): Promise<T> {
    const session = await this.db.session();
    await session.query('begin');
    for (const [text, values] of locks) await session.query(text, [...values]);
    const answer = start();
    answer.catch(() => undefined);
    await this.waiting(waiters);
    await session.query(end);
    return answer;
  }
}

/** Waits for a condition; a test that never meets it fails with its name. */
export async function until(what: string, condition: () => Promise<boolean>, withinMs = 10_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`it never came about that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
