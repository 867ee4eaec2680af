-- Up Migration

-- All at once, in the order in which submits and ends take them: who holds one of these never waits for another that is
-- taken here. Reads of runs go on meanwhile.
lock table idempotency_keys in access exclusive mode;
lock table live_runs, runs in share row exclusive mode;
lock table audit_heads in access exclusive mode;

-- Lists of runs by their state, newest first. Those that ended have a row here, from the statement that ends them: an index
-- on `runs` by a column that changes at the end would make that one update write into every index of the table. A trigger
-- sees to it, so that replicas of the version before, which go on while others are updated, do so too.
create table ended_runs (
  organization_id uuid not null,
  state text not null,
  created_at timestamptz not null,
  run_id uuid not null,
  primary key (organization_id, state, created_at, run_id)
);
create function list_ended() returns trigger language plpgsql as $$
begin
  insert into ended_runs (organization_id, state, created_at, run_id)
  select organization_id, state, created_at, id from changed where state is not null
  on conflict do nothing;                                  -- whoever changes an ended run by hand
  return null;
end $$;
create trigger runs_ended_are_listed after update on runs referencing new table as changed
  for each statement execute function list_ended();
insert into ended_runs (organization_id, state, created_at, run_id)
select organization_id, state, created_at, id from runs where state is not null
order by organization_id, state, created_at, id;
create index live_runs_newest on live_runs (organization_id, state, created_at, run_id);

-- The words of a name: what stands between spaces and punctuation, in any case.
create function name_words(p_name text) returns tsvector language sql immutable as $$
  select to_tsvector('simple', translate(p_name, '-_./\:;,@#+*=|&!?%^~$<>()[]{}"''`', '                                '))
$$;

-- What a list of runs is narrowed by, as far as it never changes: one inverted index instead of an ordered one each.
-- It answers for what few runs have in common; what many have is found by walking them, newest first.
create index runs_facets on runs using gin (
  (array[organization_id::text, 'kind:' || kind, 'queue:' || queue, 'origin:' || origin, 'principal:' || (principal ->> 'id')]),
  labels jsonb_path_ops,
  name_words(name)
) with (gin_pending_list_limit = 1024);

-- What a request that made several runs made, in its order; `run_id` is the first of them.
alter table idempotency_keys add column run_ids uuid[];

-- The lock of a chain is found by its name: nothing counts in 32 bits. Two chains of one number share a lock, and no more.
alter table audit_heads drop column lock_key;
alter table audit_heads add column lock_key integer not null generated always as (hashtext(chain_id)) stored;
alter table schema_migrations alter column id type bigint;
alter sequence schema_migrations_id_seq as bigint;
