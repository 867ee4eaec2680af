/** Very many ended runs of all kinds, put there past the API: for what has to stay fast however many there are. */

/** Of which `ROUND` runs share what they have in common: one in `ROUND` is the only one of its kind. */
const ROUND = 25_000;

/**
 * Puts `n` ended runs of one organization there, six seconds apart, the last of them now, and 20,000 that wait. Half of the
 * older half were in a queue and had words in their names that are nobody's any more.
 * @param {import('pg').Client} sql
 * @param {number} n
 * @param {string} organizationId
 */
export async function fillRuns(sql, n, organizationId) {
  await sql.query(
    `with made as (
       insert into runs (id, organization_id, kind, name, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at, state, end_code, end_by, ended_at, fence)
       select id, $1, kind, name, queue, 0, labels,
              '{"argv": ["pg_dump", "-Fc", "app"], "env": {"TZ": "UTC"}, "cwd": null, "stdin": null, "successCodes": [0]}',
              'sha256:' || repeat('0', 64), origin,
              jsonb_build_object('type', 'token', 'id', 'tok_' || principal, 'name', 't'), id, at, state,
              case state when 'succeeded' then 'ok' else 'internal' end, 'wrk_bench', at + interval '5 s', 1
       from (
         select overlay(gen_random_uuid()::text placing substr(ms, 1, 8) || '-' || substr(ms, 9) from 1)::uuid as id,
           date_trunc('milliseconds', now()) - ($2::integer - n) * interval '6 s' as at,
           case when n % 1000 = 0 then 'noop' when n % 10 = 1 then 'http' when n % 5 = 2 then 'script' else 'command' end as kind,
           case when n % 7 = 0 then null
                when n % ${ROUND} = 9 then 'rotate certificates/edge'
                when n < $2 / 2 and n % 2 = 0 then 'legacy import host-' || n % 100
                else (array['Nightly backup', 'deploy web', 'patch hosts', 'terraform apply'])[1 + n % 4] || ' db-' || n % 500
           end as name,
           case when n < $2 / 2 and n % 3 = 0 then 'retired' when n % ${ROUND} = 11 then 'rare'
                else (array['default', 'default', 'default', 'deploys', 'backups', 'db'])[1 + n % 6] end as queue,
           case when n % 4 = 3 then '{}'::jsonb
                else jsonb_build_object('env', (array['prod', 'stage', 'dev'])[1 + n % 3], 'team', 't' || n % 50, 'ticket', 'T-' || n)
           end as labels,
           case when n % 10 = 3 then 'schedule' when n % ${ROUND} = 7 then 'trigger' else 'api' end as origin,
           case when n % ${ROUND} = 5 then 99 else n % 20 end as principal,
           case when n % ${ROUND} = 13 then 'interrupted' when n % 27 = 0 then 'failed' when n % 200 = 1 then 'canceled'
                else 'succeeded' end as state
         from (
           -- Ids begin with their time, as the product's do.
           select n, lpad(to_hex((extract(epoch from now()) * 1000)::bigint - ($2::bigint - n) * 6000), 12, '0') as ms
           from generate_series(1, $2) as n
         ) each
       ) new
       returning organization_id, state, created_at, id
     )
     insert into ended_runs (organization_id, state, created_at, run_id) select * from made`,
    [organizationId, n],
  );
  await sql.query(
    `with made as (
       insert into runs (id, organization_id, kind, name, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at)
       select id, $1, 'noop', 'waits ' || n, 'waiting', 0, '{"env": "prod"}', '{}', 'sha256:' || repeat('0', 64), 'api',
              '{"type": "token", "id": "tok_1", "name": "t"}', id, date_trunc('milliseconds', now()) - n * interval '1 s'
       from (select gen_random_uuid() as id, n from generate_series(1, 20000) as n) new
       returning id, organization_id, created_at, queue, priority
     )
     insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority)
     select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, priority from made`,
    [organizationId],
  );
  await sql.query('vacuum analyze runs');
  await sql.query('vacuum analyze ended_runs');
  await sql.query('vacuum analyze live_runs');
}

/** What is asked of them: a title, and the query of the list. */
export const LISTS = Object.freeze([
  ['all', ''],
  ['succeeded', 'state=succeeded'],
  ['failed', 'state=failed'],
  ['interrupted, which few are', 'state=interrupted'],
  ['three states at once', 'state=failed,interrupted,canceled'],
  ['pending', 'state=pending'],
  ['pending or failed', 'state=pending,failed'],
  ['a kind', 'kind=http'],
  ['a kind that is one in a thousand', 'kind=noop'],
  ['a queue', 'queue=default'],
  ['a queue that few were in', 'queue=rare'],
  ['a queue of old', 'queue=retired'],
  ['a queue that never was', 'queue=nowhere'],
  ['a label', 'label=env:prod'],
  ['two labels', 'label=env:prod&label=team:t3'],
  ['a label of one run', 'label=ticket:T-12345'],
  ['a principal', 'principal=tok_3'],
  ['a principal that did little', 'principal=tok_99'],
  ['an origin', 'origin=schedule'],
  ['an origin that few have', 'origin=trigger'],
  ['words of many names', 'q=nightly+backup'],
  ['words of few names', 'q=edge+rotate'],
  ['words of old names', 'q=legacy+import'],
  ['words of no name', 'q=zebra'],
  ['a word and a number', 'q=deploy+db+17'],
  ['failed in a queue', 'state=failed&queue=deploys'],
  ['failed in a queue of old', 'state=failed&queue=retired'],
  ['interrupted, with a label', 'state=interrupted&label=env:dev'],
  ['failed, of a principal that did little', 'state=failed&principal=tok_99'],
  ['pending, with words that few have', 'state=pending&q=waits+17'],
  ['pending in a queue, with a word', 'state=pending&queue=waiting&q=waits'],
  ['two that never come together', 'kind=http&origin=schedule'],
  ['kind, label and principal', 'kind=command&label=env:dev&principal=tok_3'],
]);
