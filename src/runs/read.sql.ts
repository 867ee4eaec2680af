/** A run as it is read, and one of them whole. None of these takes a lock. */
import type { Pool, Sql } from '../platform/db/db.js';
import { type CancelKind, type EndCode, type Kind, type Origin, type Principal, type RunState } from './run.js';

/** A run as it stands, its live row folded in. Instants are the database's. */
export interface RunRow {
  readonly id: string;
  readonly organizationId: string;
  readonly kind: Kind;
  readonly name: string | null;
  readonly queue: string;
  readonly priority: number;
  readonly labels: Record<string, string>;
  readonly spec: Record<string, unknown> | null;
  readonly timeoutMs: number | null;
  readonly notBefore: Date | null;
  readonly state: RunState;
  readonly origin: Origin;
  readonly principal: Principal;
  readonly parentId: string | null;
  readonly rootId: string;
  readonly rerunOf: string | null;
  readonly createdAt: Date;
  readonly claimedAt: Date | null;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly fence: number;
  readonly workerId: string | null;
  readonly workerName: string | null;
  readonly leaseUntil: Date | null;
  readonly cancelRequestedAt: Date | null;
  readonly output: unknown;
  /** The latest that its tool reported. */
  readonly progress: Record<string, unknown> | null;
  readonly endCode: EndCode | null;
  readonly endKind: CancelKind | null;
  readonly endDetail: string | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly endBy: string | null;
  readonly submittedReceipt: string | null;
  readonly cancelReceipt: string | null;
  readonly endedReceipt: string | null;
}

/** What a page of runs leaves out: the payloads, which may be large. */
export type Detail = 'whole' | 'summary';

export function runColumns(sql: Sql, detail: Detail) {
  return sql`
    r.id, r.organization_id, r.kind, r.name, r.queue, r.priority, r.labels, r.timeout_ms, r.not_before, r.origin,
    r.principal, r.parent_id, r.root_id, r.rerun_of, r.created_at,
    ${detail === 'whole' ? sql`r.spec, r.output` : sql`null::jsonb as spec, null::jsonb as output`},
    coalesce(r.state, l.state) as state,
    coalesce(r.claimed_at, l.claimed_at) as claimed_at,
    coalesce(r.started_at, l.started_at) as started_at,
    r.ended_at, coalesce(r.fence, l.fence) as fence,
    w.id as worker_id, w.name as worker_name,
    case when l.holder is not null then w.lease_until end as lease_until,
    coalesce(r.cancel_requested_at, l.cancel_requested_at) as cancel_requested_at,
    coalesce(r.progress, l.progress) as progress,
    r.end_code, r.end_kind, r.end_detail, r.exit_code, r.signal, r.end_by,
    a.submitted_receipt, a.cancel_receipt, a.ended_receipt`;
}

export function runTables(sql: Sql) {
  return sql`
    runs r
    left join live_runs l on l.run_id = r.id
    left join workers w on w.id = coalesce(r.worker_id, l.holder)
    left join lateral (
      select
        max(e.receipt) filter (where e.action = 'run.submitted') as submitted_receipt,
        max(e.receipt) filter (where e.action = 'run.cancel_requested') as cancel_receipt,
        max(e.receipt) filter (where e.action = 'run.ended') as ended_receipt
      from (select action, chain_id || ':' || seq || ':' || encode(link, 'hex') as receipt
            from audit_entries where run_id = r.id) e
    ) a on true`;
}

/** The organization's run of this id, if there is one. */
export async function findRun(pool: Pool, organizationId: string, id: string): Promise<RunRow | undefined> {
  const rows = await pool.run<RunRow[]>(
    (sql) => sql`
    select ${runColumns(sql, 'whole')}
    from ${runTables(sql)}
    where r.id = ${id} and r.organization_id = ${organizationId}
      and coalesce(r.state, l.state) is not null`,
  );
  return rows[0];
}
