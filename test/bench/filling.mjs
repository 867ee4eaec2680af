/** Runs and entries put there past the API, by the thousand. */

/** Runs that wait in a queue. */
export async function fillQueue({ sql }, queue, n, notBefore = null) {
  await sql.query(
    `with made as (
       insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at, not_before)
       select id, (select id from organizations limit 1), 'noop', $1, 0, '{}', '{}', 'sha256:none', 'api',
              '{"type":"system","id":"bench","name":"bench"}', id, now(), $3
       from (select gen_random_uuid() as id from generate_series(1, $2)) as new
       returning id, organization_id, created_at, queue, priority, not_before
     )
     insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, not_before)
     select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, priority, not_before
     from made`,
    [queue, n, notBefore],
  );
}

/** A chain with nothing in it but what is appended here: by the same function as everything, a thousand at a time. */
export async function fillChain({ sql }, chain, n) {
  for (let done = 0; done < n; done += 1_000) {
    await sql.query(
      `select count(*) from audit_append(array_fill($1::text, array[1000]),
         (select array_agg(jsonb_build_object(
            'action', 'bench.made', 'object', 'run_01h455vb4pex5vsknk084sn02q', 'principal', 'tok_01h455vb4pex5vsknk084sn02q',
            'principalName', 'bench', 'kind', 'noop', 'queue', 'default', 'origin', 'api',
            'specDigest', 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 'n', $2 + i))
          from generate_series(1, 1000) as i),
         array_fill('01890a5d-ac96-774b-bcce-b302099a8057'::uuid, array[1000]))`,
      [chain, done],
    );
  }
}
