-- Up Migration

-- Where a chunk begins: the bytes that were written before it under the same fence, by both streams and by its own. So
-- a byte is found without adding up what is in front of it, and what was dropped leaves a gap that shows.
alter table run_output add column pos bigint, add column stream_pos bigint;
update run_output o set pos = p.pos, stream_pos = p.stream_pos
from (
  select run_day, run_id, fence, batch,
         sum(length(data)) over (partition by run_day, run_id, fence order by batch) - length(data) as pos,
         sum(length(data)) over (partition by run_day, run_id, fence, stream order by batch) - length(data) as stream_pos
  from run_output
) p
where (o.run_day, o.run_id, o.fence, o.batch) = (p.run_day, p.run_id, p.fence, p.batch);
alter table run_output
  alter column pos set not null,
  alter column stream_pos set not null,
  add check (pos >= 0 and stream_pos between 0 and pos);

-- What was dropped of an output that grew over its limit: the batches behind `after_batch`, up to `through_batch`.
create table run_output_cuts (
  run_day date not null,
  run_id uuid not null,
  fence integer not null check (fence >= 1),
  after_batch integer not null check (after_batch >= 0),
  through_batch integer not null check (through_batch > after_batch),
  pos bigint not null check (pos >= 0),                    -- where the gap begins, as in run_output
  stdout_pos bigint not null check (stdout_pos between 0 and pos),
  bytes bigint not null check (bytes > 0),                 -- how long it is
  stdout_bytes bigint not null check (stdout_bytes between 0 and bytes),
  primary key (run_day, run_id, fence)
);

-- The latest progress that a tool reported, and the last batch of its reports that was stored under the present fence:
-- one that is sent again (an answer was lost) is known by it.
alter table live_runs
  add column progress jsonb,
  add column report_batch integer not null default 0 check (report_batch >= 0);
alter table runs
  add column progress jsonb,
  add check (state is not null or progress is null);
