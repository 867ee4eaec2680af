/** What the database says of one history's world, in one statement: small, for it is asked after every step that wrote. */
import type { Lane } from './lane.js';

export interface RunLook {
  readonly id: string;
  readonly organization: string;
  readonly kind: string;
  /** Of the record: null until it has ended. */
  readonly ended: string | null;
  /** Of the live row: null when there is none. */
  readonly live: string | null;
  readonly holder: string | null;
  readonly fence: number;
  readonly code: string | null;
  readonly endWorker: string | null;
  readonly flagged: boolean;
  readonly waits: boolean;
  readonly queue: string;
  /** Types of its events, by number; and whether the numbers have no gap. */
  readonly events: string;
  readonly inOrder: boolean;
  /** Actions of its audit entries. */
  readonly entries: string;
  readonly output: number;
  readonly outputFences: string;
}

export interface WorkerLook {
  readonly id: string;
  readonly state: string;
  readonly leaseUntilMs: number;
  readonly drainedBy: string | null;
  readonly drains: number;
}

export interface Look {
  readonly runs: readonly RunLook[];
  readonly workers: readonly WorkerLook[];
}

const TEXT = `
  select
    (select coalesce(jsonb_agg(run order by (run ->> 'at'), (run ->> 'id')), '[]') from (
      select jsonb_build_object(
        'id', r.id, 'at', r.created_at, 'organization', r.organization_id, 'kind', r.kind, 'ended', r.state,
        'live', l.state, 'holder', l.holder, 'fence', coalesce(l.fence, r.fence), 'code', r.end_code,
        'endWorker', r.worker_id, 'flagged', l.cancel_requested_at is not null, 'waits', l.not_before is not null,
        'queue', r.queue, 'events', e.types, 'inOrder', e.first = 1 and e.last = e.n, 'entries',
        (select string_agg(action, ' ' order by chain_id, seq) from audit_entries a where a.run_id = r.id),
        'output', o.n, 'outputFences', o.fences) as run
      from runs r
      left join live_runs l on l.run_id = r.id
      cross join lateral (
        select string_agg(type, ' ' order by seq) as types, min(seq) as first, max(seq) as last, count(*) as n
        from run_events_default e where e.run_day = (r.created_at at time zone 'UTC')::date and e.run_id = r.id
      ) e
      cross join lateral (
        select count(*) as n, coalesce(string_agg(distinct o.fence::text, ' '), '') as fences
        from run_output_default o where o.run_day = (r.created_at at time zone 'UTC')::date and o.run_id = r.id
      ) o
      where r.organization_id = any ($1::uuid[])
    ) run) as runs,
    (select coalesce(jsonb_agg(jsonb_build_object(
       'id', id, 'state', state, 'leaseUntilMs', extract(epoch from lease_until) * 1000, 'drainedBy', drained_by,
       'drains', drains) order by id), '[]')
     from workers where id > $2::uuid) as workers`;

/** `since`: a worker id that is older than any of this history. */
export async function look(lane: Lane, organizations: readonly string[], since: string): Promise<Look> {
  const { rows } = await lane.control.query<Look>({ name: 'look', text: TEXT, values: [organizations, since] });
  const [found] = rows;
  if (!found) throw new Error('the look returned no row');
  return found;
}
