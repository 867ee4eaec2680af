/**
 * Pages of runs, newest first, that cost the same however many runs there are. What few runs have in common is found in
 * an inverted index, all of it, and sorted. What many have in common is walked in order, by the states asked for or
 * through all runs, and a page of it is soon full. Where it isn't (many have it, and hardly any of those in sight) the
 * walk ends after so many runs: the page says how far it came, and holds fewer than asked for. None of these takes a lock.
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

/** So many runs are looked at one by one; by state each of them has to be fetched on its own. Some 30 ms. */
const WALK = 40_000;
const WALK_BY_STATE = 10_000;
/** What no more runs than this have in common is sorted: some 15 ms. */
const FEW = 2_500;
/** What more than this are thought to have in common isn't counted up to `FEW`: the index would be read for all of them. */
const PERHAPS_FEW = 25_000;
const IS_ASCII = /^[A-Za-z0-9]+$/;

/** A part of the organization's runs, without their payloads. */
export function listRuns(pool: Pool, search: Search): Promise<Part<RunRow>> {
  return find(pool, search, (places) =>
    pool.run<(RunRow & Seen)[]>(
      (sql) => sql`
      with place as materialized (${places(sql)})
      select p.created_at as at, p.is_match, p.is_end, ${runColumns(sql, 'summary')}
      from place p join ${runTables(sql)} on r.id = p.id
      order by p.created_at desc, p.id desc`,
    ),
  );
}

/** The places of a part of the organization's runs. */
export function matchingRuns(pool: Pool, search: Search): Promise<Part<PagePlace>> {
  return find(pool, search, (places) =>
    pool.run<Seen[]>((sql) => sql`select created_at as at, id, is_match, is_end from (${places(sql)}) place`),
  );
}

/** A run that a search came past. */
interface Seen extends PagePlace {
  readonly isMatch: boolean;
  /** The search ends here, whatever comes behind it. */
  readonly isEnd: boolean;
}

async function find<T extends Seen>(
  pool: Pool,
  search: Search,
  fetch: (places: (sql: Sql) => Fragment) => Promise<T[]>,
): Promise<Part<T>> {
  const { limit } = search;
  const isWalk = isNarrowed(search.filter) && !(await areFew(pool, search));
  const seen = await fetch((sql) => (isWalk ? walk(sql, search) : placesOf(sql, search)));
  const items = seen.filter(({ isMatch }) => isMatch);
  const last = items.length > limit ? items[limit - 1] : seen.find(({ isEnd }) => isEnd);
  return { items: items.slice(0, limit), next: last ? { at: last.at, id: last.id } : null };
}

/** Whether a filter asks for more than states and times, which the indexes of the walk know. */
function isNarrowed(filter: RunFilter): boolean {
  const { kind, queue, origin, principal, parentId, labels, words } = filter;
  return [kind, queue, origin, principal, parentId, labels, words].some((part) => part !== undefined);
}

/** One run more than the page has, all of which match. */
function placesOf(sql: Sql, search: Search): Fragment {
  const places = isNarrowed(search.filter) ? fewOf(sql, search) : stretch(sql, search, search.limit + 1);
  return sql`select created_at, id, true as is_match, false as is_end from (${places}) all_match`;
}

/** One run more than the page has, of those that the walk comes past, and the last that it looks at. */
function walk(sql: Sql, search: Search): Fragment {
  const { filter, limit } = search;
  if (!filter.states) {
    return sql`
      select r.created_at, r.id, ${narrowed(sql, filter)} as is_match, r.n = ${WALK} as is_end
      from (
        select created_at, id, kind, queue, origin, principal, parent_id, labels, name, ${numbered(sql)} as n
        from runs where ${within(sql, search, sql`id`)} ${newest(sql, WALK)}
      ) r
      where ${narrowed(sql, filter)} or r.n = ${WALK}
      ${newest(sql, limit + 1)}`;
  }
  // One look-up each, as long as the page isn't full: the planner would rather read the whole table.
  return sql`
    select w.created_at, w.id, ${narrowed(sql, filter)} as is_match, w.n = ${WALK_BY_STATE} as is_end
    from (select created_at, id, ${numbered(sql)} as n from (${stretch(sql, search, WALK_BY_STATE)}) s) w
    cross join lateral (select * from runs where id = w.id offset 0) r
    where ${narrowed(sql, filter)} or w.n = ${WALK_BY_STATE}
    order by w.created_at desc, w.id desc limit ${limit + 1}`;
}

function numbered(sql: Sql): Fragment {
  return sql`row_number() over (order by created_at desc, id desc)`;
}

/** The first `length` runs of the states asked for. Indexes: runs_newest, or ended_runs_pkey and those of live_runs. */
function stretch(sql: Sql, search: Search, length: number): Fragment {
  const { states } = search.filter;
  if (!states) return sql`select created_at, id from runs where ${within(sql, search, sql`id`)} ${newest(sql, length)}`;
  const branches = states.flatMap((state) =>
    (isEnded(state) ? [sql`ended_runs`] : liveIn(sql, state)).map(
      // Each is an ordered range of an index, and bounded by itself: together they aren't.
      (table) => sql`
      (select created_at, run_id as id from ${table}
       where state = ${state} and ${within(sql, search, sql`run_id`)}
       order by created_at desc, run_id desc limit ${length})`,
    ),
  );
  const all = branches.reduce((before, branch) => sql`${before} union all ${branch}`);
  return sql`select created_at, id from (${all}) s ${newest(sql, length)}`;
}

/**
 * The live runs among which those of a state are found without walking past many of another. No index names the state of
 * a live run, which changes all the time.
 */
function liveIn(sql: Sql, state: RunState): Fragment[] {
  const setAside = sql`(select * from live_runs where holder is null and not claimable) l`;
  if (state === 'pending') return [sql`(select * from live_runs where claimable) l`, setAside];
  if (state === 'held' || state === 'parked') return [setAside];
  return [sql`(select * from live_runs where holder is not null offset 0) l`];
}

function newest(sql: Sql, limit: number): Fragment {
  return sql`order by created_at desc, id desc limit ${limit}`;
}

function within(sql: Sql, { organizationId, filter, after }: Search, id: Fragment): Fragment {
  const { createdAfter, createdBefore } = filter;
  return sql`
    organization_id = ${organizationId}
    and ${createdAfter === undefined ? sql`true` : sql`created_at > ${createdAfter}`}
    and ${createdBefore === undefined ? sql`true` : sql`created_at < ${createdBefore}`}
    and ${after === undefined ? sql`true` : sql`(created_at, ${id}) < (${after.at}, ${after.id})`}`;
}

/** Whether few runs have in common what is asked for beside states and times. Not counted where the planner doubts it. */
async function areFew(pool: Pool, search: Search): Promise<boolean> {
  const [explained] = await pool.run<{ 'QUERY PLAN': readonly { Plan: { 'Plan Rows': number } }[] }[]>(
    (sql) => sql`explain (format json) select from runs r where ${inCommon(sql, search)}`,
  );
  if ((explained?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0) > PERHAPS_FEW) return false;
  const [counted] = await pool.run<{ n: number }[]>(
    (sql) => sql`
    select count(*)::integer as n from (select from runs r where ${inCommon(sql, search)} limit ${FEW + 1}) found`,
  );
  return (counted?.n ?? 0) <= FEW;
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
    ${newest(sql, search.limit + 1)}`;
}

/** What is asked for of what never changes of a run, row by row; the cheap parts first. */
function narrowed(sql: Sql, filter: RunFilter): Fragment {
  const { kind, queue, origin, principal, words } = filter;
  // A word is cheaper to look for than the words of a name are to be told apart.
  const spelled = words?.split(' ').filter((word) => IS_ASCII.test(word)) ?? [];
  return sql`
    (${kind === undefined ? sql`true` : sql`r.kind = ${kind}`}
    and ${queue === undefined ? sql`true` : sql`r.queue = ${queue}`}
    and ${origin === undefined ? sql`true` : sql`r.origin = ${origin}`}
    and ${principal === undefined ? sql`true` : sql`r.principal ->> 'id' = ${principal}`}
    and ${spelled.length === 0 ? sql`true` : sql`r.name ilike all (${spelled.map((word) => `%${word}%`)}::text[])`}
    and ${described(sql, filter)})`;
}

/** The same as the inverted index has it. Index: runs_facets, or runs_children. */
function inCommon(sql: Sql, { organizationId, filter }: Search): Fragment {
  const facets = (['kind', 'queue', 'origin', 'principal'] as const).flatMap((facet) =>
    filter[facet] === undefined ? [] : [`${facet}:${filter[facet]}`],
  );
  return sql`
    array[r.organization_id::text, 'kind:' || r.kind, 'queue:' || r.queue, 'origin:' || r.origin,
          'principal:' || (r.principal ->> 'id')] @> ${[organizationId, ...facets]}::text[]
    and ${described(sql, filter)}`;
}

function described(sql: Sql, { parentId, labels, words }: RunFilter): Fragment {
  return sql`
    ${parentId === undefined ? sql`true` : sql`r.parent_id = ${parentId}`}
    and ${labels === undefined ? sql`true` : sql`r.labels @> ${sql.json(labels)}::jsonb`}
    and ${words === undefined ? sql`true` : sql`name_words(r.name) @@ plainto_tsquery('simple', ${words})`}`;
}
