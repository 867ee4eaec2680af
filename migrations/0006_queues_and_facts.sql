-- Up Migration

-- Queues out of which nothing is claimed; a queue that isn't here isn't paused. Queues are the installation's.
create table paused_queues (
  name text primary key check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  at timestamptz not null,
  by text not null,
  by_name text not null,
  reason text not null
);

-- The order of claims as one ascending range: a claimer goes on behind the last run that it took.
create index live_runs_order on live_runs (queue, (-priority), position) where state = 'pending' and not_before is null;
drop index live_runs_claim;

-- What a process says of itself, for who looks after all of them: the fingerprint of the key it signs with, and how far
-- its machine's clock is ahead of the database's.
alter table workers add column signs text;
alter table workers add column clock_ahead_ms bigint;
