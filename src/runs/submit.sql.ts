/** Row 1: a run comes to be, with its key, its first event and its audit entry. */
import { encodeId } from '../kernel/ids.js';
import { type Pool, records } from '../platform/db/db.js';
import type { Kind, Origin, Principal } from './run.js';

/** A checked submit. Ids are chosen before the first try and sent again unchanged. */
export interface NewRun {
  readonly id: string;
  /** The id is the caller's, who may have made a run of it that was removed since. */
  readonly hasOwnId?: boolean;
  readonly organizationId: string;
  readonly chain: string;
  /** The run's TypeID. */
  readonly object: string;
  readonly kind: Kind;
  readonly name: string | null;
  readonly queue: string;
  readonly priority: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly specDigest: string;
  readonly timeoutMs: number | null;
  readonly notBefore: string | null;
  readonly origin: Origin;
  readonly principal: Principal;
  /** The id of the ended run that this one does again. */
  readonly rerunOf: string | null;
  readonly traceparent: string | null;
  readonly key: string | null;
  /** Digest of the whole request; what a later request with the same key is compared with. */
  readonly requestDigest: string;
}

export interface Submitted {
  readonly id: string;
  readonly createdAt: Date;
  readonly receipt: string;
}

/** The `Idempotency-Key` of a request that makes several runs. */
export interface WholeKey {
  readonly organizationId: string;
  readonly key: string;
  readonly digest: string;
  /** What it makes, in its order; never none. */
  readonly runIds: readonly string[];
}

/**
 * Inserts runs that are new.
 *
 * guard     the key of the whole, if it has one, and with it everything; run id unseen anywhere, in the record too where
 *           a caller chose it; key unseen in its organization
 * outcomes  one row per run that was made; what is missing was a replay or a clash: see `findKeys`, `findRuns`, `findSpent`
 * locks     the key of the whole → idempotency keys (by organization, key) → runs → live rows → events → chains
 * size      no part joins one CTE with another: the planner takes them for a few rows, and loops over 200 × 200 × 200
 * errors    23505 when the same run id is being made by somebody else at this moment: send again
 */
export function submitIfNew(pool: Pool, runs: readonly NewRun[], whole?: WholeKey): Promise<Submitted[]> {
  const wholes = whole === undefined ? [] : [whole];
  return pool.run<Submitted[]>(
    (sql) => sql`
    with whole as (
      insert into idempotency_keys (organization_id, key, digest, run_id, run_ids)
      select "organizationId", key, digest, "runIds"[1], "runIds"
      from jsonb_to_recordset(${records(sql, wholes)}::jsonb)
             as w ("organizationId" uuid, key text, digest text, "runIds" uuid[])
      on conflict do nothing                                             -- waits for the same request in flight
      returning key
    ),
    unseen as materialized (
      select i.*
      from rows from (
        jsonb_to_recordset(${records(sql, runs.map(rowOf))}::jsonb) as (
          id uuid, "hasOwnId" boolean, "organizationId" uuid, chain text, kind text, name text, queue text, priority smallint,
          labels jsonb, spec jsonb, "specDigest" text, "timeoutMs" bigint, "notBefore" timestamptz, origin text,
          principal jsonb, "rerunOf" uuid, traceparent text, key text, "requestDigest" text, submitted jsonb, payload text)
      ) with ordinality as i
      where (select count(*) from whole) = ${wholes.length}              -- known before anything else is locked
        and (select true from runs r where r.id = i.id) is null          -- the id is new; one look-up each, whatever a
                                                                         -- plan made for a small table thinks of it
        and ("hasOwnId" is not true                                      -- and no run's that was removed since
             or (select true from audit_entries e where e.run_id = i.id limit 1) is null)
    ),
    keyed as (
      insert into idempotency_keys (organization_id, key, digest, run_id)
      select "organizationId", key, "requestDigest", id from unseen
      where key is not null
      order by "organizationId", key                                     -- one order of locking for everybody
      on conflict do nothing                                             -- waits for one that is in flight
      returning run_id
    ),
    fresh as materialized (
      select u.*, date_trunc('milliseconds', db_now()) as created_at
      from unseen u
      where u.key is null or u.id in (select run_id from keyed)          -- the key is new
    ),
    record as (
      insert into runs (id, organization_id, kind, name, queue, priority, labels, spec, spec_digest, timeout_ms,
                        not_before, origin, principal, root_id, rerun_of, traceparent, created_at)
      select id, "organizationId", kind, name, queue, priority, labels, spec, "specDigest", "timeoutMs",
             "notBefore", origin, principal, id, "rerunOf", traceparent, created_at
      from fresh
      order by id                                                        -- one order here too: callers may choose ids
      returning id
    ),
    live as (
      insert into live_runs (run_id, organization_id, created_at, run_day, kind, state, queue, priority, not_before, event_seq)
      select id, "organizationId", created_at, (created_at at time zone 'UTC')::date, kind, 'pending', queue, priority,
             case when "notBefore" > db_now() then "notBefore" end, 1
      from fresh
      order by ordinality                                                -- positions follow the order of arrival
      returning run_id
    ),
    event as (
      insert into run_events (run_day, run_id, seq, type, at, data)
      select (created_at at time zone 'UTC')::date, id, 1, 'run.submitted', created_at, submitted
      from fresh
      returning run_id
    ),
    entry as (
      select array_agg(f.chain order by f.ordinality) as chains,
             array_agg('run.submitted'::text) as actions,
             array_agg(f.payload order by f.ordinality) as payloads,
             array_agg(f.id order by f.ordinality) as run_ids,
             min(f.created_at) as created_at
      from fresh f
      where (select count(*) from record) + (select count(*) from live) + (select count(*) from event) >= 0
                                                                         -- all is written before the chain's lock
    )
    select e.run_ids[a.entry] as id, e.created_at, a.receipt
    from entry e                                                         -- joined to nothing: it runs once
    cross join lateral audit_append(e.chains, e.actions, e.payloads, e.run_ids) a`,
  );
}

/** A run as the statement takes it: without what is null, with the data of its first event and the text of its entry. */
function rowOf(run: NewRun): object {
  const { origin, principal } = run;
  const name = run.name ?? undefined;
  const key = run.key ?? undefined;
  const rerunOf = run.rerunOf === null ? undefined : encodeId('run', run.rerunOf);
  return {
    id: run.id,
    hasOwnId: run.hasOwnId === true ? true : undefined,
    organizationId: run.organizationId,
    chain: run.chain,
    kind: run.kind,
    name,
    queue: run.queue,
    priority: run.priority,
    labels: run.labels,
    spec: run.spec,
    specDigest: run.specDigest,
    timeoutMs: run.timeoutMs ?? undefined,
    notBefore: run.notBefore ?? undefined,
    origin,
    principal,
    rerunOf: run.rerunOf ?? undefined,
    traceparent: run.traceparent ?? undefined,
    key,
    requestDigest: key === undefined ? undefined : run.requestDigest,
    submitted: { origin, principal, rerunOf },
    // In the order of the names, as RFC 8785 has it; a plain member is written as it says.
    payload: JSON.stringify({
      action: 'run.submitted',
      key,
      kind: run.kind,
      name,
      object: run.object,
      origin,
      principal: principal.id,
      principalName: principal.name,
      queue: run.queue,
      rerunOf,
      specDigest: run.specDigest,
    }),
  };
}

export interface EarlierKey {
  readonly organizationId: string;
  readonly key: string;
  readonly digest: string;
  readonly runId: string;
  /** Of a request that made several, all of them in its order; `runId` is the first. */
  readonly runIds: readonly string[] | null;
}

/** The rows that kept keys from being new, read in a statement of its own, after the insert. */
export function findKeys(
  pool: Pool,
  keys: readonly { readonly organizationId: string; readonly key: string }[],
): Promise<EarlierKey[]> {
  return pool.run<EarlierKey[]>(
    (sql) => sql`
    select k.organization_id, k.key, k.digest, k.run_id, k.run_ids
    from idempotency_keys k
    join jsonb_to_recordset(${records(sql, keys)}::jsonb) as i ("organizationId" uuid, key text)
      on k.organization_id = i."organizationId" and k.key = i.key`,
  );
}

/** Keeps the keys of runs that were there already, under their ids. One that somebody else kept meanwhile stays theirs. */
export async function keepKeys(pool: Pool, runs: readonly NewRun[]): Promise<void> {
  await pool.run<never[]>(
    (sql) => sql`
    insert into idempotency_keys (organization_id, key, digest, run_id)
    select i."organizationId", i.key, i."requestDigest", i.id
    from jsonb_to_recordset(${records(sql, runs)}::jsonb)
           as i (id uuid, "organizationId" uuid, key text, "requestDigest" text)
    order by i."organizationId", i.key
    on conflict do nothing`,
  );
}

/** Frees the key of a request of which nothing came, so that it may come again corrected. */
export async function freeKey(pool: Pool, { organizationId, key, digest, runIds }: WholeKey): Promise<void> {
  await pool.run<never[]>(
    (sql) => sql`
    delete from idempotency_keys
    where organization_id = ${organizationId} and key = ${key} and digest = ${digest}
      and run_ids = ${runIds as string[]}::uuid[]                        -- an equal one may have made runs meanwhile`,
  );
}

export interface EarlierRun {
  readonly id: string;
  readonly organizationId: string;
  readonly specDigest: string;
}

/** Runs that already bear one of these ids, whoever made them. */
export function findRuns(pool: Pool, ids: readonly string[]): Promise<EarlierRun[]> {
  return pool.run<EarlierRun[]>(
    (sql) => sql`select id, organization_id, spec_digest from runs where id = any (${ids as string[]}::uuid[])`,
  );
}

/** Of these the ids that some run once had, and whether that was made of the same spec here. Index: audit_entries_run. */
export async function findSpent(pool: Pool, runs: readonly NewRun[]): Promise<ReadonlyMap<string, boolean>> {
  const asked = runs.map(({ id, chain, specDigest }) => ({ id, chain, specDigest }));
  const rows = await pool.run<{ id: string; isSame: boolean }[]>(
    (sql) => sql`
    select e.run_id as id,
           bool_or(e.chain_id = i.chain and e.action = 'run.submitted'
                   and strpos(e.claim, '"specDigest":' || to_json(i."specDigest")) > 0) as is_same
    from jsonb_to_recordset(${records(sql, asked)}::jsonb) as i (id uuid, chain text, "specDigest" text)
    join audit_entries e on e.run_id = i.id
    group by e.run_id`,
  );
  return new Map(rows.map(({ id, isSame }) => [id, isSame]));
}

/** Of these the ids of runs that were made once, whether they are there or not: so the record says. Index: audit_entries_run. */
export async function findMade(pool: Pool, runs: readonly NewRun[]): Promise<ReadonlySet<string>> {
  const asked = runs.map(({ id, chain, specDigest }) => ({ id, chain, specDigest }));
  const rows = await pool.run<{ id: string }[]>(
    (sql) => sql`
    select e.run_id as id
    from jsonb_to_recordset(${records(sql, asked)}::jsonb) as i (id uuid, chain text, "specDigest" text)
    join audit_entries e on e.run_id = i.id and e.chain_id = i.chain
    where e.action = 'run.submitted'
      and e.claim::jsonb #>> '{payload,specDigest}' = i."specDigest"     -- not of whoever had the id before`,
  );
  return new Set(rows.map(({ id }) => id));
}

/**
 * Forgets keys all of whose runs ended longer than `ttlMs` ago, a bounded number at a time. When a run ended that was
 * removed since, the chain says. Returns how many went. Index: idempotency_keys_age, audit_entries_run.
 */
export async function expireKeys(pool: Pool, ttlMs: number, limit: number): Promise<number> {
  const rows = await pool.run<{ gone: number }[]>(
    (sql) => sql`
    with old as (
      select k.organization_id, k.key
      from idempotency_keys k
      where k.created_at < db_now() - ${ttlMs} * interval '1 millisecond'
        and not exists (
          select from runs r
          where r.id = any (coalesce(k.run_ids, array[k.run_id]))        -- of a request that made several, each
            and (r.ended_at is null or r.ended_at >= db_now() - ${ttlMs} * interval '1 millisecond'))
        and not exists (
          select from unnest(coalesce(k.run_ids, array[k.run_id])) as made (id)
          join audit_entries a on a.run_id = made.id and a.action = 'run.ended'
          where not exists (select from runs r where r.id = made.id)     -- removed since
            and substring(a.claim from '"endedAt":"([^"]*)"') collate "C"
                >= instant_text(db_now() - ${ttlMs} * interval '1 millisecond'))
      order by k.organization_id, k.key
      limit ${limit}
      for update of k skip locked
    )
    delete from idempotency_keys k using old
    where k.organization_id = old.organization_id and k.key = old.key
    returning 1 as gone`,
  );
  return rows.length;
}
