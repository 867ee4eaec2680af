-- Up Migration

-- Clocks. Due times are judged by db_now() (the start of the transaction), leases by db_clock() (this very moment,
-- read after a row was locked). Tests replace them; the planner inlines them.
create function db_now() returns timestamptz language sql stable as 'select now()';
create function db_clock() returns timestamptz language sql volatile as 'select clock_timestamp()';

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% on % is refused: %', tg_op, tg_table_name, tg_argv[0] using errcode = 'restrict_violation';
end $$;

-- Who ---------------------------------------------------------------------------------------------------------------

create table installation (
  id uuid primary key,
  only_one boolean not null default true unique check (only_one),
  created_at timestamptz not null default db_now()
);

create table organizations (
  id uuid primary key,
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  created_at timestamptz not null default db_now()
);

create table tokens (
  id uuid primary key,
  organization_id uuid not null references organizations,
  name text not null,
  hash bytea not null unique check (length(hash) = 32),    -- SHA-256 of the token
  bootstrap boolean not null default false,
  created_at timestamptz not null default db_now(),
  revoked_at timestamptz
);

create unique index tokens_one_bootstrap on tokens (bootstrap) where bootstrap;

-- The audit chain ---------------------------------------------------------------------------------------------------

create table audit_heads (
  chain_id text primary key check (chain_id ~ '^[A-Za-z0-9_.-]{1,64}$'),
  organization_id uuid unique references organizations,   -- null: the installation's own chain
  lock_key integer generated always as identity unique,   -- ascending order of locking when several are appended to
  seq bigint not null default 0 check (seq >= 0),
  link bytea not null default '' check (length(link) = case when seq = 0 then 0 else 32 end),
  at timestamptz not null default '-infinity'
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- `claim` is the canonical text that was hashed; the columns after `at` are for look-ups and prove nothing.
create table audit_entries (
  chain_id text not null references audit_heads,
  seq bigint not null check (seq >= 1),
  claim text not null,
  prev bytea not null check (length(prev) = case when seq = 1 then 0 else 32 end),
  link bytea not null check (length(link) = 32),
  at timestamptz not null,
  action text not null,
  run_id uuid,
  primary key (chain_id, seq)
);
create index audit_entries_run on audit_entries (run_id, seq) where run_id is not null;

create trigger audit_entries_append_only before update or delete or truncate on audit_entries
  for each statement execute function refuse_change('entries are only ever appended');
create trigger audit_heads_only_forward before update on audit_heads
  for each row when (new.seq <= old.seq or new.chain_id <> old.chain_id)
  execute function refuse_change('a head only moves forward');
create trigger audit_heads_stay before delete or truncate on audit_heads
  for each statement execute function refuse_change('a chain is never removed');

-- RFC 8785 text of a flat jsonb object whose keys are ASCII: strings, integers, booleans and null only.
create function canonical_flat(p_payload jsonb) returns text language sql immutable strict as $$
  select '{' || coalesce(string_agg(to_json(key)::text || ':' || value::text, ',' order by key collate "C"), '') || '}'
  from jsonb_each(p_payload)
$$;

-- An instant as the chain and the payloads write it: RFC 3339, UTC, milliseconds.
create function instant_text(p_at timestamptz) returns text language sql immutable strict as $$
  select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- Appends entries to their chains and returns a receipt each. It is called by the statement that makes the recorded
-- change, as its last part: change and entry commit together without the client in between, so nobody can sit on a
-- chain's lock. Each statement in here has a snapshot of its own (read committed): the head is read after the lock
-- was waited for.
create function audit_append(p_chain text[], p_payload jsonb[], p_run uuid[])
returns table (entry integer, receipt text) language plpgsql volatile set lock_timeout = '2s' as $$
declare
  v_chain record;
  v_head record;
  v_last record;
  v_i integer;
  v_done integer := 0;
  v_seq bigint;
  v_prev bytea;
  v_at timestamptz;
  v_claim text;
  v_entries integer[];
  v_seqs bigint[];
  v_claims text[];
  v_prevs bytea[];
  v_links bytea[];
begin
  for v_chain in
    select h.chain_id, h.lock_key from audit_heads h where h.chain_id = any (p_chain) order by h.lock_key
  loop
    perform pg_advisory_xact_lock(1129337940, v_chain.lock_key);
    select h.seq, h.link, h.at into strict v_head from audit_heads h where h.chain_id = v_chain.chain_id;
    v_at := greatest(v_head.at, date_trunc('milliseconds', db_clock()));
    v_seq := v_head.seq;
    v_prev := v_head.link;
    -- Entries behind the head: somebody moved it back. Appending goes on behind them, or he could stop everything.
    select e.seq, e.link into v_last from audit_entries e
      where e.chain_id = v_chain.chain_id and e.seq > v_head.seq order by e.seq desc limit 1;
    if found then
      v_seq := v_last.seq;
      v_prev := v_last.link;
    end if;
    v_entries := '{}'; v_seqs := '{}'; v_claims := '{}'; v_prevs := '{}'; v_links := '{}';
    for v_i in 1 .. cardinality(p_chain) loop
      continue when p_chain[v_i] <> v_chain.chain_id;
      v_seq := v_seq + 1;
      v_claim := '{"at":"' || instant_text(v_at) || '","payload":' || canonical_flat(p_payload[v_i])
        || ',"type":"capstan.audit/1"}';
      v_entries := v_entries || v_i;
      v_seqs := v_seqs || v_seq;
      v_claims := v_claims || v_claim;
      v_prevs := v_prevs || v_prev;
      v_prev := sha256(convert_to(
        '{"claim":"sha256:' || encode(sha256(convert_to(v_claim, 'UTF8')), 'hex')
        || '","domain":"loomseal-chain-v1","install_id":"' || v_chain.chain_id
        || '","prev":"' || encode(v_prev, 'hex') || '","seq":' || v_seq || '}', 'UTF8'));
      v_links := v_links || v_prev;
    end loop;
    insert into audit_entries (chain_id, seq, claim, prev, link, at, action, run_id)
      select v_chain.chain_id, e.seq, e.claim, e.prev, e.link, v_at, p_payload[e.i] ->> 'action', p_run[e.i]
      from unnest(v_entries, v_seqs, v_claims, v_prevs, v_links) as e (i, seq, claim, prev, link);
    update audit_heads h set seq = v_seq, link = v_prev, at = v_at where h.chain_id = v_chain.chain_id;
    return query
      select e.i, v_chain.chain_id || ':' || e.seq || ':' || encode(e.link, 'hex')
      from unnest(v_entries, v_seqs, v_links) as e (i, seq, link);
    v_done := v_done + cardinality(v_entries);
  end loop;
  if v_done <> cardinality(p_chain) then
    raise exception 'an audit entry has no chain to be appended to' using errcode = 'foreign_key_violation';
  end if;
end $$;

-- Workers -----------------------------------------------------------------------------------------------------------

-- One row per life of a process, kept after its end. Renewed in place: no index may ever stand on lease_until or state.
create table workers (
  id uuid primary key,
  name text not null,
  kind text not null check (kind in ('replica', 'worker')),
  slots integer not null check (slots between 0 and 1000),
  queues text[] not null check (cardinality(queues) > 0),
  version text not null,
  ttl_ms integer not null,                                 -- of its lease: lease_until - ttl_ms is when it was seen
  state text not null default 'live' check (state in ('live', 'draining', 'stopped', 'lost')),
  lease_until timestamptz not null,
  started_at timestamptz not null default date_trunc('milliseconds', db_now()),
  ended_at timestamptz,
  check ((state in ('stopped', 'lost')) = (ended_at is not null))
) with (fillfactor = 20, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0);

create index workers_not_over on workers (id) where ended_at is null;

create trigger workers_ended_never_change before update on workers
  for each row when (old.state in ('stopped', 'lost'))
  execute function refuse_change('a life that is over never changes');

-- Runs --------------------------------------------------------------------------------------------------------------

-- The record of a run: inserted at submit, updated once, at its end.
create table runs (
  id uuid primary key,
  organization_id uuid not null references organizations,
  kind text not null,
  name text,
  queue text not null check (queue ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  priority smallint not null check (priority between -100 and 100),
  labels jsonb not null check (jsonb_typeof(labels) = 'object'),
  spec jsonb not null check (jsonb_typeof(spec) = 'object'),
  spec_digest text not null,
  timeout_ms bigint check (timeout_ms > 0),
  not_before timestamptz,
  origin text not null check (origin in ('api', 'schedule', 'trigger', 'parent')),
  principal jsonb not null,
  parent_id uuid references runs,
  root_id uuid not null references runs,
  rerun_of uuid,
  traceparent text,
  created_at timestamptz not null,
  -- the outcome, all of it written in the one update that ends the run
  state text check (state in ('succeeded', 'failed', 'canceled', 'timed_out', 'interrupted', 'rejected')),
  end_code text,
  end_kind text,
  end_detail text,
  exit_code integer,
  signal text,
  end_by text,
  ended_at timestamptz,
  fence integer,
  worker_id uuid,
  claimed_at timestamptz,
  started_at timestamptz,
  cancel_requested_at timestamptz,
  output jsonb,
  check ((state is null) = (ended_at is null)),
  check ((state is null) = (end_code is null)),
  check ((state is null) = (end_by is null)),
  check ((state is null) = (fence is null)),
  check (exit_code is null or signal is null),
  check (state is not null or (exit_code is null and signal is null and output is null))
) with (fillfactor = 90);
create index runs_newest on runs (organization_id, created_at desc, id desc);
create index runs_children on runs (parent_id) where parent_id is not null;

create trigger runs_ended_never_change before update on runs
  for each row when (old.state is not null)
  execute function refuse_change('an ended run never changes');

-- The narrow moving part of a run that has not ended: one row from submit to end.
create table live_runs (
  run_id uuid primary key references runs,
  organization_id uuid not null,
  created_at timestamptz not null,
  run_day date not null,                                   -- of created_at, UTC: partition of its events and output
  state text not null check (state in ('held', 'pending', 'claimed', 'running', 'parked')),
  queue text not null,
  priority smallint not null,
  position bigint generated always as identity,            -- order of arrival; kept through a requeue
  not_before timestamptz,                                  -- null: due
  fence integer not null default 0,
  holder uuid references workers,
  claimed_at timestamptz,
  started_at timestamptz,
  cancel_requested_at timestamptz,
  cancel_kind text check (cancel_kind in ('requested', 'deadline', 'overrun', 'parent_ended', 'superseded')),
  cancel_detail text,
  event_seq bigint not null default 0,
  check ((state in ('claimed', 'running')) = (holder is not null)),
  check ((state in ('claimed', 'running')) = (claimed_at is not null)),
  check ((state = 'running') = (started_at is not null)),
  check ((cancel_requested_at is null) = (cancel_kind is null)),
  check (cancel_requested_at is null or state in ('claimed', 'running')),
  check (not_before is null or state in ('held', 'pending'))
) with (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);
create index live_runs_claim on live_runs (queue, priority desc, position) where state = 'pending' and not_before is null;
create index live_runs_due on live_runs (not_before) where state = 'pending' and not_before is not null;
create index live_runs_holder on live_runs (holder) where holder is not null;

-- Facts and output of a run, partitioned by the day (UTC) of the run's creation, which is the same for all its rows.
create table run_events (
  run_day date not null,
  run_id uuid not null,
  seq bigint not null check (seq >= 1),
  type text not null,
  at timestamptz not null,
  data jsonb not null,
  primary key (run_day, run_id, seq)
) partition by range (run_day);
create table run_events_default partition of run_events default;

create table run_output (
  run_day date not null,
  run_id uuid not null,
  fence integer not null check (fence >= 1),
  batch integer not null check (batch >= 1),
  stream smallint not null check (stream in (1, 2)),       -- 1 stdout, 2 stderr
  at timestamptz not null,
  data bytea not null check (length(data) > 0),
  primary key (run_day, run_id, fence, batch)
) partition by range (run_day);
create table run_output_default partition of run_output default;

-- Makes the partitions of today and the next days; attaching (instead of creating in place) lets inserts into the other
-- partitions go on. A day whose rows came before its partition keeps them in the default one, which serves as well, and
-- gets none of its own; the days after it get theirs.
create function ensure_run_partitions(p_days_ahead integer) returns integer language plpgsql set lock_timeout = '2s' as $$
declare
  v_day date;
  v_table text;
  v_partition text;
  v_made integer := 0;
begin
  perform pg_advisory_xact_lock(1129337941, 0);
  for v_day in select (db_now() at time zone 'UTC')::date + n from generate_series(0, p_days_ahead) as n loop
    foreach v_table in array array['run_events', 'run_output'] loop
      v_partition := v_table || '_' || to_char(v_day, 'YYYYMMDD');
      continue when to_regclass(v_partition) is not null;
      begin
        execute format('create table %I (like %I including defaults including constraints)', v_partition, v_table);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                       v_table, v_partition, v_day, v_day + 1);
        v_made := v_made + 1;
      exception when check_violation then
        raise warning '% can not be made: %', v_partition, sqlerrm;
      end;
    end loop;
  end loop;
  return v_made;
end $$;

-- Answers once given to an Idempotency-Key; `run_id` is no foreign key: the run may be removed before its key.
create table idempotency_keys (
  organization_id uuid not null references organizations,
  key text not null,
  digest text not null,
  run_id uuid not null,
  created_at timestamptz not null default db_now(),
  primary key (organization_id, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);

