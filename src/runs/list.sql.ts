/**
 * Pages of runs, newest first, that cost the same however many runs there are. What a filter asks for is walked in order,
 * by the states it names or through all runs: a page of what many have in common is found at once. A walk that has seen
 * `WALK` runs without filling the page asks the inverted index: what few have in common is found there, all of it, and
 * sorted. Of what is neither (many have it, and none of those in sight) the page says how far the search came, and may
 * hold fewer than asked for. None of these takes a lock.
 */
import type postgres from 'postgres';
import type { Pool, Sql } from '../platform/db/db.js';
import type { PagePlace } from '../platform/http/page.js';
import { type RunRow, runColumns, runTables } from './read.sql.js';
import type { Kind, Origin, RunState } from './run.js';
import { isEnded } from './run.machine.js';

export interface RunFilter {
  /** Any of these; never none. */
  readonly states?: readonly RunState[];
  readonly kind?: Kind;
  readonly queue?: string;
  readonly origin?: Origin;
  /** TypeID of who made it. */
  readonly principal?: string;
  /** UUID. */
  readonly parentId?: string;
  /** All of these labels. */
  readonly labels?: Readonly<Record<string, string>>;
  /** All of these, with spaces between, are words of the name, in any case. */
  readonly words?: string;
  /** Excluded, as the next one. */
  readonly createdAfter?: Date;
  readonly createdBefore?: Date;
}

/** A part of a list: `next` is where the search goes on, null when it came to the end. */
export interface Part<T> {
  readonly items: readonly T[];
  readonly next: PagePlace | null;
}

type Fragment = postgres.PendingQuery<postgres.Row[]>;

interface Search {
  readonly organizationId: string;
  readonly filter: RunFilter;
  readonly after: PagePlace | undefined;
  readonly limit: number;
}

/** So many runs are looked at one by one: some 30 ms. */
const WALK = 10_000;
/** What no more runs than this have in common is sorted: some 20 ms. */
const FEW = 5_000;

/** A part of the organization's runs, without their payloads. */
export function listRuns(pool: Pool, search: Search): Promise<Part<RunRow>> {
  return find(
    pool,
    search,
    ({ createdAt, id }) => ({ at: createdAt, id }),
    (places) =>
      pool.run<RunRow[]>(
        (sql) => sql`
      with place as materialized (${places(sql)})
      select ${runColumns(sql, 'summary')}
      from place p join ${runTables(sql)} on r.id = p.id
      order by p.created_at desc, p.id desc`,
      ),
  );
}

/** The places of a part of the organization's runs. */
export function matchingRuns(pool: Pool, search: Search): Promise<Part<PagePlace>> {
  return find(
    pool,
    search,
    (place) => place,
    (places) => pool.run<PagePlace[]>((sql) => sql`select created_at as at, id from (${places(sql)}) place`),
  );
}

async function find<T>(
  pool: Pool,
  search: Search,
  placeOf: (item: T) => PagePlace,
  fetch: (places: (sql: Sql) => Fragment) => Promise<T[]>,
): Promise<Part<T>> {
  const { filter, limit } = search;
  const partOf = (items: T[]): Part<T> => {
    const last = items[limit - 1];
    return { items: items.slice(0, limit), next: items.length > limit && last ? placeOf(last) : null };
  };
  const walked = await fetch((sql) => walk(sql, search));
  if (walked.length > limit || !isNarrowed(filter)) return partOf(walked);
  const end = await endOfWalk(pool, search);
  if (!end) return partOf(walked);
  if (await areFew(pool, search)) return partOf(await fetch((sql) => fewOf(sql, search)));
  return { items: walked, next: end };
}

/** Whether a filter asks for more than states and times, which the indexes of the walk know. */
function isNarrowed(filter: RunFilter): boolean {
  const { kind, queue, origin, principal, parentId, labels, words } = filter;
  return [kind, queue, origin, principal, parentId, labels, words].some((part) => part !== undefined);
}

/** One run more than the page has, of the first that the walk comes past. */
function walk(sql: Sql, search: Search): Fragment {
  const { filter, limit } = search;
  if (!isNarrowed(filter)) return stretch(sql, search, limit + 1);
  return sql`
    select w.created_at, w.id
    from (${stretch(sql, search, WALK)}) w join runs r on r.id = w.id
    where ${narrowed(sql, filter)}
    order by w.created_at desc, w.id desc
    limit ${limit + 1}`;
}

/** The last place that a walk looks at; none when there are fewer. */
async function endOfWalk(pool: Pool, search: Search): Promise<PagePlace | undefined> {
  const rows = await pool.run<PagePlace[]>(
    (sql) => sql`select created_at as at, id from (${stretch(sql, search, WALK)}) w offset ${WALK - 1}`,
  );
  return rows[0];
}

/** The first `length` runs of the states asked for. Indexes: runs_newest, or ended_runs_pkey and live_runs_newest. */
function stretch(sql: Sql, search: Search, length: number): Fragment {
  const { filter } = search;
  const branches =
    filter.states === undefined
      ? [sql`select created_at, id from runs where ${within(sql, search, sql`id`)}`]
      : filter.states.map((state) => {
          const table = isEnded(state) ? sql`ended_runs` : sql`live_runs`;
          return sql`select created_at, run_id as id from ${table}
                     where state = ${state} and ${within(sql, search, sql`run_id`)}`;
        });
  const all = branches.reduce((before, branch) => sql`${before} union all ${branch}`);
  return sql`select created_at, id from (${all}) s order by created_at desc, id desc limit ${length}`;
}

function within(sql: Sql, { organizationId, filter, after }: Search, id: Fragment): Fragment {
  const { createdAfter, createdBefore } = filter;
  return sql`
    organization_id = ${organizationId}
    and ${createdAfter === undefined ? sql`true` : sql`created_at > ${createdAfter}`}
    and ${createdBefore === undefined ? sql`true` : sql`created_at < ${createdBefore}`}
    and ${after === undefined ? sql`true` : sql`(created_at, ${id}) < (${after.at}, ${after.id})`}`;
}

/** Whether few runs have in common what is asked for beside states and times. */
async function areFew(pool: Pool, search: Search): Promise<boolean> {
  const rows = await pool.run<{ n: number }[]>(
    (sql) => sql`
    select count(*)::integer as n
    from (select from runs r where ${inCommon(sql, search)} limit ${FEW + 1}) found`,
  );
  return (rows[0]?.n ?? 0) <= FEW;
}

function fewOf(sql: Sql, search: Search): Fragment {
  const { states } = search.filter;
  const ofState =
    states === undefined
      ? sql`true`
      : sql`coalesce(f.state, (select l.state from live_runs l where l.run_id = f.id)) = any (${states as RunState[]}::text[])`;
  return sql`
    select f.created_at, f.id
    from (select organization_id, created_at, id, state from runs r where ${inCommon(sql, search)} offset 0) f
    where ${within(sql, search, sql`id`)} and ${ofState}
    order by f.created_at desc, f.id desc
    limit ${search.limit + 1}`;
}

/** What is asked for of what never changes of a run, row by row. */
function narrowed(sql: Sql, { kind, queue, origin, principal, parentId, labels, words }: RunFilter): Fragment {
  return sql`
    ${kind === undefined ? sql`true` : sql`r.kind = ${kind}`}
    and ${queue === undefined ? sql`true` : sql`r.queue = ${queue}`}
    and ${origin === undefined ? sql`true` : sql`r.origin = ${origin}`}
    and ${principal === undefined ? sql`true` : sql`r.principal ->> 'id' = ${principal}`}
    and ${parentId === undefined ? sql`true` : sql`r.parent_id = ${parentId}`}
    and ${labels === undefined ? sql`true` : sql`r.labels @> ${sql.json(labels)}::jsonb`}
    and ${words === undefined ? sql`true` : sql`name_words(r.name) @@ plainto_tsquery('simple', ${words})`}`;
}

/** The same as the inverted index has it. Index: runs_facets, or runs_children. */
function inCommon(sql: Sql, { organizationId, filter }: Search): Fragment {
  const facets = (['kind', 'queue', 'origin', 'principal'] as const).flatMap((facet) =>
    filter[facet] === undefined ? [] : [`${facet}:${filter[facet]}`],
  );
  return sql`
    array[r.organization_id::text, 'kind:' || r.kind, 'queue:' || r.queue, 'origin:' || r.origin,
          'principal:' || (r.principal ->> 'id')] @> ${[organizationId, ...facets]}::text[]
    and ${narrowed(sql, filter)}`;
}
