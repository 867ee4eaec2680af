/**
 * The signing key of the installation is what the newest entry about one says in the installation's chain: there is no
 * other place that could say something else. The text of an entry is canonical, so a pattern meets a member of its
 * payload and nothing that a value quotes.
 */
import type postgres from 'postgres';
import type { Pool, Sql } from '../platform/db/db.js';
import type { PublicHalf, RecordedKey } from './key.js';

/** The column finds the entry, its text says whether it is one: an export names a key as well. */
function isAboutKey(sql: Sql, chain: string): postgres.PendingQuery<postgres.Row[]> {
  return sql`chain_id = ${chain} and action in ('audit.key_recorded', 'audit.key_rotated')
             and strpos(claim, '"action":"' || action || '"') > 0`;
}

/** All keys that were ever recorded, newest first: the first is the current one. Index audit_entries_keys. */
export function recordedKeys(pool: Pool, chain: string): Promise<RecordedKey[]> {
  return pool.run<RecordedKey[]>(
    (sql) => sql`
    select coalesce(substring(claim from '"fingerprint":"([^"]*)"'), '') as fingerprint,
           coalesce(substring(claim from '"publicKey":"([^"]*)"'), '') as public_key,
           coalesce(substring(claim from '^\{"at":"([^"]*)"'), '') as recorded_at,
           chain_id || ':' || seq || ':' || encode(link, 'hex') as receipt
    from audit_entries
    where ${isAboutKey(sql, chain)}
    order by ${newestFirst(sql)}`,
  );
}

/** A rotation counts, though the first key was recorded behind it: a replica may have come with that at the same time. */
function newestFirst(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`(action = 'audit.key_rotated') desc, seq desc`;
}

/** The fingerprint of the current key; `undefined` while none was recorded. Index audit_entries_keys. */
export async function currentFingerprint(pool: Pool, chain: string): Promise<string | undefined> {
  const rows = await pool.run<{ fingerprint: string }[]>(
    (sql) => sql`
    select coalesce(substring(claim from '"fingerprint":"([^"]*)"'), '') as fingerprint
    from audit_entries
    where ${isAboutKey(sql, chain)}
    order by ${newestFirst(sql)}
    limit 1`,
  );
  return rows[0]?.fingerprint;
}

/** Whether a key was ever recorded: also where no index finds it, as the column beside its text was changed. */
export async function isKeyRecorded(pool: Pool, chain: string): Promise<boolean> {
  const rows = await pool.run<{ isRecorded: boolean }[]>(
    (sql) => sql`select ${hasKeyEntry(sql, chain)} as is_recorded`,
  );
  return rows[0]?.isRecorded === true;
}

/** An expression: looks by the index first, and then at the text of every entry. */
function hasKeyEntry(sql: Sql, chain: string): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    case
      when exists (
        select from audit_entries
        where chain_id = ${chain} and action in ('audit.key_recorded', 'audit.key_rotated')
      ) then true
      else exists (
        select from audit_entries
        where chain_id = ${chain}
          and (position('"action":"audit.key_recorded"' in claim) > 0
               or position('"action":"audit.key_rotated"' in claim) > 0)
      )
    end`;
}

/**
 * Records the first key of the installation.
 *
 * guard     no key was recorded yet, by the text of any entry
 * outcomes  whether it was recorded; of several at once one is, and the others fail with 23505 (unique index
 *           audit_entries_first_key)
 * locks     the installation's chain
 */
export async function recordKeyIfFirst(pool: Pool, chain: string, key: PublicHalf): Promise<boolean> {
  const rows = await pool.run<{ receipt: string }[]>(
    (sql) => sql`
    select a.receipt
    from (select 1 where not ${hasKeyEntry(sql, chain)}) first
    cross join lateral audit_append(
      array[${chain}::text],
      array[jsonb_build_object('action', 'audit.key_recorded', 'object', ${key.fingerprint}::text,
                               'fingerprint', ${key.fingerprint}::text, 'publicKey', ${key.publicKey}::text,
                               'principal', 'system')],
      array[null::uuid]) a`,
  );
  return rows.length > 0;
}

export interface KeyRotation extends PublicHalf {
  /** The installation's chain. */
  readonly chain: string;
  /** TypeID and name of who asks for it. */
  readonly by: string;
  readonly byName: string;
}

/**
 * Makes another key the current one.
 *
 * guard     it isn't the current one already: said again it writes nothing
 * outcomes  the receipt; nothing when it was so already. Two at once are both recorded; the newer entry counts
 * locks     the installation's chain
 */
export async function rotateKeyIfOther(pool: Pool, rotation: KeyRotation): Promise<string | undefined> {
  const { chain, fingerprint, publicKey, by, byName } = rotation;
  const rows = await pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with current as (
      select substring(claim from '"fingerprint":"([^"]*)"') as fingerprint
      from audit_entries
      where ${isAboutKey(sql, chain)}
      order by ${newestFirst(sql)}
      limit 1
    )
    select a.receipt
    from (select (select fingerprint from current) as previous) p
    cross join lateral audit_append(
      array[${chain}::text],
      array[jsonb_strip_nulls(jsonb_build_object(
        'action', 'audit.key_rotated', 'object', ${fingerprint}::text, 'fingerprint', ${fingerprint}::text,
        'publicKey', ${publicKey}::text, 'previous', p.previous,
        'principal', ${by}::text, 'principalName', ${byName}::text))],
      array[null::uuid]) a
    where p.previous is distinct from ${fingerprint}           -- the current key said again changes nothing`,
  );
  return rows[0]?.receipt;
}
