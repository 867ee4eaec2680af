-- Up Migration

-- How long the organization's ended runs are kept: 1 to 365 days. Null: as long as the setting says.
alter table organizations
  add column retention_ms bigint check (retention_ms between 86400000 and 31536000000);

-- Rows go at the pace at which others came 30 days before. What they leave is taken up long before a fifth of a large table
-- is dead, or the table would be a fifth larger for good.
alter table runs set (autovacuum_vacuum_scale_factor = 0.03);
alter table ended_runs set (autovacuum_vacuum_scale_factor = 0.03);
alter table idempotency_keys set (autovacuum_vacuum_scale_factor = 0.03);

-- Whether there is a run of this day (UTC), of any organization.
create function is_run_day_in_use(p_day date) returns boolean language sql stable as $$
  select exists (
    select from organizations o
    cross join lateral (
      select from runs r
      where r.organization_id = o.id
        and r.created_at >= p_day::timestamp at time zone 'UTC'
        and r.created_at < (p_day + 1)::timestamp at time zone 'UTC'
      limit 1
    ) run
  )
$$;

-- Drops what was kept on one day: `p_table` is run_events or run_output. False when there is nothing of it, when one of the
-- day's runs is left, when the day isn't over for long (no run can come to be on it any more), and when another removes runs
-- at this moment. Dropping takes the table from everybody for a moment, and whoever waits for that has all others wait
-- behind him: so it hardly waits (55P03).
create function drop_run_partition(p_table text, p_day date) returns boolean language plpgsql set lock_timeout = '100ms' as $$
declare
  v_partition constant text := p_table || '_' || to_char(p_day, 'YYYYMMDD');
begin
  if p_day > (db_now() at time zone 'UTC')::date - 2 or is_run_day_in_use(p_day)
     or not pg_try_advisory_xact_lock(1129337942, 0) or to_regclass(v_partition) is null then
    return false;
  end if;
  execute format('drop table %I', v_partition);
  -- Behind the lock nobody writes to it any more.
  if is_run_day_in_use(p_day) then
    raise exception 'a run of % came to be while its events were dropped', p_day using errcode = 'object_in_use';
  end if;
  return true;
end $$;
