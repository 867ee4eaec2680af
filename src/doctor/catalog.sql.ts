/** What stands in the catalog of what migrations make. Any role may read it. */
import type { Pool } from '../platform/db/db.js';
import type { FoundPart, SchemaState } from './catalog.js';

type Asks = Pick<Pool, 'run'>;

/** Whatever stands in the schema of `schema_migrations`, but for partitions, which come and go, and what extensions made. */
export function schemaParts(pool: Asks): Promise<FoundPart[]> {
  return pool.run<FoundPart[]>(
    (sql) => sql`
    with ours as materialized (
      select c.oid, c.relname as name
      from pg_class c
      where c.relkind in ('r', 'p') and not c.relispartition
        and c.relnamespace = (select relnamespace from pg_class where oid = to_regclass('schema_migrations'))
    )
    select 'table' as kind, name, null as "on", null as body, true as is_working
    from ours
    union all
    select 'trigger', t.tgname, o.name, null, t.tgenabled in ('O', 'A')
    from pg_trigger t join ours o on o.oid = t.tgrelid
    where not t.tgisinternal
    union all
    select case when i.indisunique then 'unique index' else 'index' end, c.relname, o.name, null,
           i.indisvalid and i.indisready
    from pg_index i join ours o on o.oid = i.indrelid join pg_class c on c.oid = i.indexrelid
    union all
    select 'constraint', k.conname, o.name, null,
           k.convalidated
           and not exists (select from pg_trigger t where t.tgconstraint = k.oid and t.tgenabled not in ('O', 'A'))
    from pg_constraint k join ours o on o.oid = k.conrelid
    where k.contype in ('c', 'f') and k.conparentid = 0
    union all
    select 'function', p.proname || '(' || oidvectortypes(p.proargtypes) || ')', null, md5(p.prosrc), true
    from pg_proc p
    where p.pronamespace = (select relnamespace from pg_class where oid = to_regclass('schema_migrations'))
      and not exists (select from pg_depend d
                      where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
    order by 1, 3 nulls first, 2, 4`,
  );
}

/** Where triggers were switched off altogether, and whether the row is there that every installation has. */
export async function schemaState(pool: Asks): Promise<SchemaState> {
  const [state] = await pool.run<SchemaState[]>(
    (sql) => sql`
    select current_setting('session_replication_role') = 'replica' as is_replica,
           array(
             select case when s.setrole = 0 then format('alter database %I', d.datname)
                         when s.setdatabase = 0 then format('alter role %I', r.rolname)
                         else format('alter role %I in database %I', r.rolname, d.datname) end
             from pg_db_role_setting s
             join pg_database d on d.datname = current_database()
             left join pg_roles r on r.oid = s.setrole
             where s.setdatabase in (0, d.oid)
               and 'session_replication_role=replica' = any(s.setconfig)
               and (s.setrole = 0 or has_table_privilege(s.setrole, to_regclass('runs'), 'update'))
             order by 1
           ) as set_by,
           not exists (select from installation)
             and (exists (select from organizations) or exists (select from audit_heads)) as is_nameless`,
  );
  if (!state) throw new Error('a look at the schema returned no row');
  return state;
}
