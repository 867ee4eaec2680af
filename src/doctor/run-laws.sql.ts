/**
 * The laws of a run, each a predicate over the facts of one run. A predicate holds when it is true: what is null holds
 * nothing. None trusts a constraint or a trigger, which whoever tampers takes away first.
 */
import type postgres from 'postgres';
import type { Sql } from '../platform/db/db.js';

/** CTE `holders`: what entries call the workers of the CTE `picked`, who are few: TypeIDs, 5 bits a character. */
export function holdersCte(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    holders as materialized (
      select w.id, 'wrk_' || (
        select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(bits, 5 * i + 1, 5)::bit(5)::integer, 1),
                          '' order by i)
        from generate_series(0, 25) i) as object
      from (
        select id, B'00' || ('x' || replace(id::text, '-', ''))::bit(128) as bits
        from (select distinct worker_id as id from picked where worker_id is not null) each
      ) w
    )`;
}

/**
 * CTE `facts`: for each run of the CTE `picked` its record (`r_…` is what `runs` says), its live row (`l_…`), and what
 * there is of events (`e_…`), entries (`a_…`) and output. Indexes: live_runs_pkey, audit_entries_run, and of the
 * partition of the run's day the primary keys.
 */
export function factsCte(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    facts as materialized (
      select r.*, r.state is not null as is_ended, l.run_id is not null as is_live,
             l.organization_id as l_organization_id, l.created_at as l_created_at, l.run_day as l_run_day,
             l.state as l_state, l.queue as l_queue, l.priority as l_priority, l.not_before as l_not_before,
             l.fence as l_fence, l.holder as l_holder, l.claimed_at as l_claimed_at, l.started_at as l_started_at,
             l.cancel_requested_at as l_cancel_requested_at, l.event_seq as l_event_seq,
             exists (select from workers w where w.id = l.holder) as is_holder_known,
             (select h.chain_id from audit_heads h where h.organization_id = r.organization_id) as chain_id,
             exists (select from ended_runs n
                     where n.organization_id = r.organization_id and n.state = r.state and n.created_at = r.created_at
                       and n.run_id = r.id) as is_listed,
             p.id is not null as is_parent_known, p.organization_id as p_organization_id, p.root_id as p_root_id,
             e.*, a.*, o.*
      from picked r
      left join holders worker on worker.id = r.worker_id
      -- The limits keep the planner, who takes the window for a few rows or for many, with one probe for each run.
      left join lateral (select * from live_runs l where l.run_id = r.id limit 1) l on true
      left join lateral (select * from runs p where p.id = r.parent_id limit 1) p on true
      cross join lateral (
        select count(*) as e_count, min(e.seq) as e_first, max(e.seq) as e_last,
               min(e.seq) filter (where e.type = 'run.submitted') as e_submit_seq,
               count(*) filter (where e.type = 'run.submitted') as e_submits,
               max(e.seq) filter (where e.type = 'run.ended') as e_end_seq,
               count(*) filter (where e.type = 'run.ended') as e_ends,
               count(*) filter (
                 where e.type = 'run.ended'
                   and e.data ->> 'state' = r.state
                   and e.data ->> 'code' = r.end_code
                   and e.data ->> 'kind' is not distinct from r.end_kind
                   and e.data ->> 'detail' is not distinct from r.end_detail
                   and e.data ->> 'exitCode' is not distinct from r.exit_code::text
                   and e.data ->> 'signal' is not distinct from r.signal
                   and e.data ->> 'fence' = r.fence::text
                   and e.at = r.ended_at) as e_true_ends,
               count(*) filter (where e.type = 'run.requeued') as e_requeues,
               count(*) filter (where e.type = 'run.cancel_requested') as e_cancels,
               count(*) filter (where e.type not like 'run.%') as e_reports
        from run_events e
        where e.run_day = r.run_day and e.run_id = r.id
      ) e
      cross join lateral (
        select count(*) filter (where a.action = 'run.submitted') as a_submits,
               count(*) filter (where a.action = 'run.submitted' and ${saysOfSubmit(sql)}) as a_true_submits,
               count(*) filter (where a.action = 'run.ended') as a_ends,
               count(*) filter (where a.action = 'run.ended' and ${saysOfEnd(sql)}) as a_true_ends,
               count(*) filter (where a.action = 'run.requeued') as a_requeues,
               count(*) filter (where a.action = 'run.cancel_requested') as a_cancels,
               min(a.chain_id) as a_first_chain, max(a.chain_id) as a_last_chain
        from audit_entries a
        where a.run_id = r.id
      ) a
      cross join lateral (
        select ${hasOutput(sql, sql`run_output`)} or ${hasOutput(sql, sql`run_output_cuts`)} as has_stray_output
        from (
          select case when r.state is null then l.started_at else r.started_at end is not null as is_started,
                 coalesce(r.fence, l.fence) as fence
        ) start
      ) o
    )`;
}

/**
 * An expression: output under another fence than the one that the run was started under, or of a run that never was.
 * Two probes of the primary key, however much output there is.
 */
function hasOutput(sql: Sql, table: postgres.PendingQuery<postgres.Row[]>): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    exists (select from ${table} t
            where t.run_day = r.run_day and t.run_id = r.id
              and t.fence < case when start.is_started then start.fence else 2147483647 end)
    or exists (select from ${table} t
               where t.run_day = r.run_day and t.run_id = r.id
                 and t.fence > case when start.is_started then start.fence else 2147483646 end)`;
}

/** The texts of entries are flat and canonical, so a member's name in its quotes meets nothing that a value quotes. */
function saysOfSubmit(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    strpos(a.claim, '"action":"run.submitted"') > 0
    and strpos(a.claim, '"kind":' || to_json(r.kind)) > 0
    and strpos(a.claim, '"queue":' || to_json(r.queue)) > 0
    and strpos(a.claim, '"origin":' || to_json(r.origin)) > 0
    and strpos(a.claim, '"specDigest":' || to_json(r.spec_digest)) > 0
    and ${saysMember(sql, 'name', sql`to_json(r.name)::text`)}
    and ${saysMember(sql, 'principal', sql`to_json(r.principal ->> 'id')::text`)}
    and ${saysMember(sql, 'principalName', sql`to_json(r.principal ->> 'name')::text`)}`;
}

function saysOfEnd(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    strpos(a.claim, '"action":"run.ended"') > 0
    and strpos(a.claim, '"state":' || to_json(r.state)) > 0
    and strpos(a.claim, '"code":' || to_json(r.end_code)) > 0
    and strpos(a.claim, '"fence":' || r.fence || ',') > 0
    and strpos(a.claim, '"principal":' || to_json(r.end_by)) > 0
    and strpos(a.claim, '"endedAt":' || to_json(instant_text(r.ended_at))) > 0
    and strpos(a.claim, '"specDigest":' || to_json(r.spec_digest)) > 0
    and ${saysMember(sql, 'cancelKind', sql`to_json(r.end_kind)::text`)}
    and ${saysMember(sql, 'exitCode', sql`r.exit_code || ','`)}   -- the fence follows it
    and ${saysMember(sql, 'signal', sql`to_json(r.signal)::text`)}
    and ${saysMember(sql, 'startedAt', sql`to_json(instant_text(r.started_at))::text`)}
    and ${saysMember(sql, 'worker', sql`to_json(worker.object)::text`)}`;
}

/** An expression: the member has this value, and isn't there when it is null. */
function saysMember(sql: Sql, name: string, value: postgres.PendingQuery<postgres.Row[]>) {
  const member = `"${name}":`;
  return sql`case when ${value} is null then strpos(a.claim, ${member}::text) = 0
                  else strpos(a.claim, ${member}::text || ${value}) > 0 end`;
}

/** Rows of (law, holds) over one row `f` of `facts`. */
export function runLaws(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    values
      ('one_standing', f.is_ended <> f.is_live),

      ('live_copies', not f.is_live
         or f.l_organization_id = f.organization_id
            and f.l_created_at = f.created_at
            and f.l_run_day = f.run_day
            and f.l_queue = f.queue
            and f.l_priority = f.priority
            and (f.l_not_before is null or f.l_not_before = f.not_before)),

      ('live_holder', not f.is_live
         or case when f.l_state in ('claimed', 'running')
                 then f.is_holder_known
                      and f.l_fence >= 1
                      and f.l_claimed_at is not null
                      and (f.l_started_at is not null) = (f.l_state = 'running')
                 else f.l_state in ('held', 'pending', 'parked')
                      and f.l_holder is null
                      and f.l_fence >= 0
                      and f.l_claimed_at is null
                      and f.l_started_at is null
                      and f.l_cancel_requested_at is null
            end),

      ('outcome', ${outcomeAgrees(sql)}),

      ('listed', not f.is_ended or f.is_listed),

      ('event_numbers', f.e_count > 0 and f.e_first = 1 and f.e_last = f.e_count
         and (not f.is_live or f.e_last = f.l_event_seq)),

      ('event_ends', f.e_submits = 1 and f.e_submit_seq = 1
         and case when f.is_ended then f.e_ends = 1 and f.e_end_seq = f.e_last else f.e_ends = 0 end),

      ('end_event', f.e_true_ends = f.e_ends),

      ('audit_submit', f.a_submits = 1 and f.a_true_submits = 1),

      ('audit_end', f.a_ends = f.is_ended::integer and f.a_true_ends = f.a_ends),

      ('audit_changes', f.a_requeues = f.e_requeues
         and f.a_cancels = f.e_cancels
         and f.e_cancels = (coalesce(f.cancel_requested_at, f.l_cancel_requested_at) is not null)::integer),

      ('audit_chain', f.a_first_chain is null or f.a_first_chain = f.chain_id and f.a_last_chain = f.chain_id),

      ('starts_once', not f.has_stray_output
         and (f.e_reports = 0 or coalesce(f.started_at, f.l_started_at) is not null)),

      ('family', case when f.parent_id is null then f.root_id = f.id
                      else f.is_parent_known
                           and f.root_id = f.p_root_id
                           and f.organization_id = f.p_organization_id
                 end)`;
}

/** An expression: what there is instead, of a row `f` that doesn't obey `law`. */
export function runDetail(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    case law
      when 'one_standing' then
        case when f.is_ended then 'it has ended as ' || f.state || ', and has a live row as well'
             else 'it has not ended, and has no live row' end
      when 'live_copies' then
        'its live row says: ' || concat_ws(', ', 'created ' || f.l_created_at, 'day ' || f.l_run_day,
          'queue ' || f.l_queue, 'priority ' || f.l_priority, 'not before ' || f.l_not_before)
      when 'live_holder' then
        'it is ' || concat_ws(', ', f.l_state, 'fence ' || f.l_fence, 'holder ' || f.l_holder,
          case when f.l_holder is not null and not f.is_holder_known then 'whose life is unknown' end,
          'claimed ' || f.l_claimed_at, 'started ' || f.l_started_at)
      when 'outcome' then
        'it ended as ' || concat_ws(', ', f.state, 'code ' || f.end_code, 'kind ' || f.end_kind, 'fence ' || f.fence,
          'exit code ' || f.exit_code, 'signal ' || f.signal, 'worker ' || f.worker_id, 'claimed ' || f.claimed_at,
          'started ' || f.started_at, 'by ' || f.end_by)
      when 'listed' then 'no list of what is ' || f.state || ' has it'
      when 'event_numbers' then
        f.e_count || ' events' || coalesce(', numbered ' || f.e_first || ' to ' || f.e_last, '')
          || coalesce('; its live row counts ' || f.l_event_seq, '')
      when 'event_ends' then
        f.e_submits || ' events of its submit, ' || f.e_ends || ' of its end'
          || coalesce(' (number ' || f.e_end_seq || ' of ' || f.e_last || ')', '')
      when 'end_event' then 'the record says ' || concat_ws(', ', f.state, f.end_code, 'fence ' || f.fence)
      when 'audit_submit' then f.a_submits || ' entries of its submit, ' || f.a_true_submits || ' of which agree'
      when 'audit_end' then
        f.a_ends || ' entries of its end, ' || f.a_true_ends || ' of which agree; it has '
          || case when f.is_ended then 'ended as ' || f.state else 'not ended' end
      when 'audit_changes' then
        f.e_requeues || ' events and ' || f.a_requeues || ' entries of requeues; ' || f.e_cancels || ' events and '
          || f.a_cancels || ' entries of cancel requests'
      when 'audit_chain' then
        'entries stand in ' || concat_ws(' and ', f.a_first_chain, nullif(f.a_last_chain, f.a_first_chain))
      when 'starts_once' then
        case when f.has_stray_output then 'there is output of another start than that of its record'
             else f.e_reports || ' reports, and it was never started' end
      when 'family' then concat_ws(', ', 'root ' || f.root_id, 'parent ' || f.parent_id)
    end`;
}

/** What the codes of each state are, and what there must and can't have been before. */
function outcomeAgrees(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    not f.is_ended and f.ended_at is null and f.end_code is null and f.end_by is null and f.fence is null
      and f.exit_code is null and f.signal is null
    or f.is_ended and f.ended_at is not null and f.fence >= 0 and f.end_by <> ''
      and case f.state
            when 'succeeded' then f.end_code = 'ok' and f.started_at is not null
            when 'failed' then f.end_code not in ('ok', 'timeout', 'canceled', 'worker_lost', 'replica_stopped')
                               and f.claimed_at is not null
            when 'timed_out' then f.end_code = 'timeout' and f.started_at is not null
            when 'interrupted' then f.end_code in ('worker_lost', 'supervisor_lost', 'replica_stopped', 'internal',
                                                   'effects_unknown', 'recovery_limit')
                                    and f.started_at is not null
            when 'canceled' then f.end_code = 'canceled' and f.end_kind is not null
                                 and (f.worker_id is not null) = (f.cancel_requested_at is not null)
            when 'rejected' then f.end_code in ('denied', 'expired') and f.started_at is null
          end
      and (f.end_kind is null) = (f.state <> 'canceled')
      and (f.worker_id is null) = (f.claimed_at is null)     -- a worker exactly when it was held at its end
      and (f.started_at is null or f.claimed_at is not null)
      and (f.claimed_at is null or f.fence >= 1)
      and (f.exit_code is null or f.signal is null)
      and (f.exit_code is null and f.signal is null          -- a tool's own end, of a tool that ran
           or f.started_at is not null
              and f.end_code in ('ok', 'tool_failed', 'timeout', 'canceled', 'worker_lost', 'supervisor_lost',
                                 'replica_stopped'))`;
}
