/** Organizations and tokens as they are stored. A token is kept only as its SHA-256. */
import type { Pool } from '../platform/db/db.js';

export interface FirstIds {
  readonly installation: string;
  readonly installationChain: string;
  readonly organization: string;
  readonly organizationChain: string;
}

/**
 * Makes the installation, the organization `default` and their chains, once: of several starters one writes.
 *
 * guard     there is no installation yet
 * locks     installation (unique) → organizations → heads → chains
 */
export async function makeInstallationIfNone(pool: Pool, ids: FirstIds): Promise<boolean> {
  const rows = await pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with first as (
      insert into installation (id) values (${ids.installation}) on conflict do nothing returning id
    ),
    organization as (
      insert into organizations (id, name) select ${ids.organization}, 'default' from first returning id
    ),
    head as (
      insert into audit_heads (chain_id, organization_id)
      select ${ids.installationChain}, null from first
      union all
      select ${ids.organizationChain}, id from organization
      returning chain_id
    )
    select a.receipt
    from (select count(*) as heads from head) h                  -- the heads exist before they are appended to
    cross join lateral audit_append(
      array[${ids.installationChain}::text, ${ids.organizationChain}::text],
      array[jsonb_build_object('action', 'organization.created', 'object', ${ids.organizationChain}::text,
                               'name', 'default', 'principal', 'system'),
            jsonb_build_object('action', 'organization.created', 'object', ${ids.organizationChain}::text,
                               'name', 'default', 'principal', 'system')],
      array[null::uuid, null::uuid]) a
    where h.heads = 2`,
  );
  return rows.length > 0;
}

/** The organization of this name. */
export async function findOrganization(pool: Pool, name: string): Promise<{ id: string } | undefined> {
  const rows = await pool.run<{ id: string }[]>((sql) => sql`select id from organizations where name = ${name}`);
  return rows[0];
}

export async function hasToken(pool: Pool): Promise<boolean> {
  const rows = await pool.run<{ found: boolean }[]>((sql) => sql`select exists (select from tokens) as found`);
  return rows[0]?.found ?? false;
}

export interface NewToken {
  readonly id: string;
  readonly organizationId: string;
  readonly chain: string;
  /** The token's TypeID. */
  readonly object: string;
  readonly name: string;
  readonly hash: Buffer;
  readonly bootstrap: boolean;
  /** It acts for the installation too. */
  readonly installation: boolean;
}

/**
 * Makes a token with its audit entry, unless its hash is known, or it is a bootstrap token and there has been one.
 * Returns whether it was made.
 */
export async function makeTokenIfNew(pool: Pool, token: NewToken): Promise<boolean> {
  const rows = await pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with made as (
      insert into tokens (id, organization_id, name, hash, bootstrap, installation)
      values (${token.id}, ${token.organizationId}, ${token.name}, ${token.hash}, ${token.bootstrap},
              ${token.installation})
      on conflict do nothing
      returning id
    )
    select a.receipt
    from made
    cross join lateral audit_append(
      array[${token.chain}::text],
      array[jsonb_build_object('action', 'token.created', 'object', ${token.object}::text, 'name', ${token.name}::text,
                               'principal', 'system')],
      array[null::uuid]) a`,
  );
  return rows.length > 0;
}

export interface KnownToken {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly hash: Buffer;
  readonly installation: boolean;
  readonly isRevoked: boolean;
}

/** The token of this hash, also one that was revoked. */
export async function findToken(pool: Pool, hash: Buffer): Promise<KnownToken | undefined> {
  const rows = await pool.run<KnownToken[]>(
    (sql) => sql`
    select id, organization_id, name, hash, installation, revoked_at is not null as is_revoked
    from tokens where hash = ${hash}`,
  );
  return rows[0];
}
