/** What the server says of itself and of its sessions. Nothing here needs the schema, or more rights than any role has. */
import type postgres from 'postgres';
import type { Pool, Sql } from '../platform/db/db.js';
import type { ConnectionUse, DeadRows, HiddenSnapshots, Holder, ServerFacts } from './server.js';

type Asks = Pick<Pool, 'run'>;

/** An expression: the session `s` is a role's that this one may not look into. Its snapshot and its name are shown. */
function isHidden(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    (s.usesysid is not null
     and not pg_has_role(s.usesysid, 'usage')
     and not pg_has_role('pg_read_all_stats', 'usage'))`;
}

/** To be asked by a session that has not made itself read-only. */
export async function serverFacts(pool: Asks): Promise<ServerFacts> {
  const [facts] = await pool.run<ServerFacts[]>(
    (sql) => sql`
    select current_user as role,
           current_setting('server_version') as version,
           current_setting('server_version_num')::integer as version_number,
           current_setting('server_encoding') as encoding,
           pg_is_in_recovery() as is_recovering,
           current_setting('transaction_read_only') = 'on' as is_read_only,
           (select count(*)::integer from pg_stat_activity s
            where datname = current_database() and ${isHidden(sql)}) as hidden_sessions,
           current_setting('autovacuum') = 'on' and current_setting('track_counts') = 'on' as is_autovacuum_on`,
  );
  if (!facts) throw new Error('the server gave no answer about itself');
  return facts;
}

/** This role may not look at all. One line: what to grant. */
export class NotGranted extends Error {
  override readonly name = 'NotGranted';
}

/**
 * The names of the migrations that were applied, in their order; `undefined` where there is no Capstan.
 * @throws NotGranted where there is one that this role may not read.
 */
export async function appliedMigrations(pool: Asks): Promise<string[] | undefined> {
  const [table] = await pool.run<{ isReadable: boolean; role: string; schema: string }[]>(
    (sql) => sql`
    select has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select') as is_readable,
           quote_ident(current_user) as role, quote_ident(n.nspname) as schema
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relname = 'schema_migrations' and c.relkind = 'r'
      and (pg_table_is_visible(c.oid)
           or (n.nspname = any(string_to_array(replace(current_setting('search_path'), ' ', ''), ','))
               and not has_schema_privilege(n.oid, 'usage')))
    order by pg_table_is_visible(c.oid) desc
    limit 1`,
  );
  if (!table) return undefined;
  const { isReadable, role, schema } = table;
  if (!isReadable) {
    throw new NotGranted(
      `the role ${role} may not read Capstan's tables: grant usage on schema ${schema} to ${role}; ` +
        `grant select on all tables in schema ${schema} to ${role}; or use the role that owns them`,
    );
  }
  const rows = await pool.run<{ name: string }[]>((sql) => sql`select name from schema_migrations order by id`);
  return rows.map(({ name }) => name);
}

export function connectionUse(pool: Asks): Promise<ConnectionUse[]> {
  return pool.run<ConnectionUse[]>(
    (sql) => sql`
    with session as materialized (
      select datname = current_database() as is_here, usename = current_user as is_ours,
             coalesce(nullif(application_name, ''), 'without a name') as name
      from pg_stat_activity s
      where backend_type = 'client backend' or ${isHidden(sql)}
    ),
    bound (bound, most) as (
      select 'server', current_setting('max_connections')::integer
                       - current_setting('superuser_reserved_connections')::integer
                       - coalesce(current_setting('reserved_connections', true)::integer, 0)
      union all
      select 'database', datconnlimit from pg_database where datname = current_database() and datconnlimit >= 0
      union all
      select 'role', rolconnlimit from pg_roles where rolname = current_user and rolconnlimit >= 0
    )
    select b.bound, b.most, coalesce(sum(s.n), 0)::integer as used,
           coalesce((array_agg(s.name || ' (' || s.n || ')' order by s.n desc))[1:5], '{}') as who
    from bound b
    left join lateral (
      select name, count(*) as n
      from session
      where b.bound = 'server' or (b.bound = 'database' and is_here) or (b.bound = 'role' and is_ours)
      group by name
    ) s on true
    group by b.bound, b.most`,
  );
}

/**
 * Sessions and prepared transactions that are older than `minutes`, and slots and standbys that ask for rows of more
 * than `transactions` ago, or that nobody is connected to. A vacuum holds no other back, however long it takes; what
 * builds an index concurrently does.
 */
export async function vacuumHolders(pool: Asks, minutes: number, transactions: number): Promise<Holder[]> {
  const rows = await pool.run<{ holder: Holder }[]>(
    (sql) => sql`
    select to_jsonb(s) as holder
    from (
      select 'session' as kind, pid, usename as user, application_name as application, state,
             floor(extract(epoch from clock_timestamp() - xact_start) / 60)::integer as minutes
      from pg_stat_activity s
      where datname = current_database()
        and backend_type <> 'autovacuum worker'
        and pid <> pg_backend_pid()
        and (backend_xmin is not null or backend_xid is not null)
        and not exists (select from pg_stat_progress_vacuum v where v.pid = coalesce(s.leader_pid, s.pid))
        and xact_start < clock_timestamp() - ${minutes} * interval '1 minute'
      order by xact_start
      limit 20
    ) s
    union all
    select to_jsonb(p)
    from (
      select 'prepared' as kind, gid as name, owner as user,
             floor(extract(epoch from clock_timestamp() - prepared) / 60)::integer as minutes
      from pg_prepared_xacts
      where database = current_database() and prepared < clock_timestamp() - ${minutes} * interval '1 minute'
      limit 20
    ) p
    union all
    select to_jsonb(r)
    from (
      select 'slot' as kind, slot_name as name, active as "isActive",
             greatest(age(xmin), age(catalog_xmin)) as transactions
      from pg_replication_slots
      where (xmin is not null or catalog_xmin is not null)
        and (not active or greatest(age(xmin), age(catalog_xmin)) > ${transactions})
      limit 20
    ) r
    union all
    select to_jsonb(f)
    from (
      select 'standby' as kind, coalesce(nullif(application_name, ''), client_addr::text, 'a standby') as name,
             age(backend_xmin) as transactions
      from pg_stat_replication
      where age(backend_xmin) > ${transactions}
      limit 20
    ) f`,
  );
  return rows.map(({ holder }) => holder);
}

export async function hiddenSnapshots(pool: Asks): Promise<HiddenSnapshots> {
  const [found] = await pool.run<HiddenSnapshots[]>(
    (sql) => sql`
    with hidden as materialized (
      select pid, greatest(age(backend_xmin), age(backend_xid)) as transactions
      from pg_stat_activity s
      where datname = current_database()
        and (backend_xmin is not null or backend_xid is not null)
        and ${isHidden(sql)}
        and not exists (select from pg_stat_progress_vacuum v where v.pid = s.pid)
    )
    select count(*)::integer as sessions,
           (array_agg(pid order by transactions desc))[1] as pid,
           coalesce(max(transactions), 0) as transactions
    from hidden`,
  );
  if (!found) throw new Error('a look at sessions returned no row');
  return found;
}

/** Of the tables whose rows change all the time. Which one another role vacuums may be hidden: then it may be any. */
export function deadRows(pool: Asks): Promise<DeadRows[]> {
  return pool.run<DeadRows[]>(
    (sql) => sql`
    select s.relname as table, s.n_live_tup as live, s.n_dead_tup as dead,
           floor(extract(epoch from clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum)) / 60)::integer
             as vacuumed_minutes,
           exists (select from pg_stat_progress_vacuum v
                   where v.datname = current_database() and coalesce(v.relid, s.relid) = s.relid) as is_being_vacuumed,
           exists (select from pg_options_to_table(c.reloptions)
                   where option_name = 'autovacuum_enabled' and not option_value::boolean) as is_left_alone
    from pg_stat_user_tables s join pg_class c on c.oid = s.relid
    where s.relid in (to_regclass('live_runs'), to_regclass('workers'), to_regclass('audit_heads'))
    order by s.relname`,
  );
}
