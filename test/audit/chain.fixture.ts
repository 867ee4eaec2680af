/** Chains on a database of their own, the hands of somebody with all rights over it, and the format's worked example. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { timeStampRequest } from '../../src/audit/tsa.js';
import type { Pool } from '../../src/platform/db/db.js';
import { readTimeStamp } from '../../src/verifier/rfc3161.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { Authority } from './tsa.fixture.js';

export class Chains {
  /** Made when it is first asked. */
  private authority: Promise<Authority> | undefined;

  private constructor(
    readonly db: TestDatabase,
    readonly pool: Pool,
    readonly sql: pg.Client,
  ) {}

  static async open(connections = 8): Promise<Chains> {
    const db = await createDatabase();
    return new Chains(db, db.pool(connections), await db.session());
  }

  async close(): Promise<void> {
    await (await this.authority)?.remove();
    await this.db.drop();
  }

  /** Of an organization of its own, or the installation's. */
  async newChain(name = `in_${randomUUID()}`, of: 'organization' | 'installation' = 'organization'): Promise<string> {
    const organization = of === 'organization' ? randomUUID() : null;
    if (organization) {
      await this.sql.query(`insert into organizations (id, name) values ($1, $2)`, [organization, `o-${organization}`]);
    }
    await this.sql.query('insert into audit_heads (chain_id, organization_id) values ($1, $2)', [name, organization]);
    return name;
  }

  /** Appends payloads, each to its chain, in one statement; answers with the receipts in their order. */
  async append(
    ...entries: (readonly [chain: string, payload: Record<string, unknown>, run?: string])[]
  ): Promise<string[]> {
    const rows = await this.pool.run<{ receipt: string }[]>(
      (tx) => tx`
      select a.receipt from audit_append(
        ${entries.map(([chain]) => chain)}::text[],
        (select array_agg(value order by n)
         from jsonb_array_elements(${tx.json(entries.map(([, payload]) => payload) as never)}::jsonb)
           with ordinality as e (value, n)),
        (select array_agg(value::uuid order by n)
         from jsonb_array_elements_text(${tx.json(entries.map(([, , run]) => run ?? null) as never)}::jsonb)
           with ordinality as e (value, n))) a
      order by a.entry`,
    );
    return rows.map((row) => row.receipt);
  }

  /** Appends plain entries, a thousand a statement. */
  async appendMany(chain: string, n: number): Promise<void> {
    for (let done = 0; done < n; done += 1_000) {
      await this.sql.query(
        `select count(*) from audit_append(array_fill($1::text, array[$2::integer]),
           (select array_agg(jsonb_build_object('action', 'test.many', 'n', $3 + i)) from generate_series(1, $2) as i),
           array_fill(null::uuid, array[$2::integer]))`,
        [chain, Math.min(1_000, n - done), done],
      );
    }
  }

  /** A chain of `n` entries, made one after the other. */
  async chainOf(n: number): Promise<string> {
    const chain = await this.newChain();
    for (let i = 0; i < n; i += 1) await this.append([chain, { action: 'test.made', n: i }]);
    return chain;
  }

  /** A timestamp of an entry, as it was stored when that was the entry. */
  async anchor(chain: string, seq: number): Promise<void> {
    const { rows } = await this.sql.query<{ link: string }>(
      `select encode(link, 'hex') as link from audit_entries where chain_id = $1 and seq = $2`,
      [chain, seq],
    );
    const [entry] = rows;
    if (!entry) throw new Error(`there is no entry ${seq}`);
    this.authority ??= Authority.create();
    const token = await (await this.authority).token(timeStampRequest(entry.link, Buffer.alloc(8, 0x42)));
    await this.sql.query(
      `insert into audit_anchors (chain_id, seq, link, at, ref, token)
       values ($1, $2, decode($3, 'hex'), $4, 'https://tsa.example', $5)`,
      [chain, seq, entry.link, readTimeStamp(token, entry.link).genTime, token],
    );
  }

  /** What somebody with all rights over the database can do: the triggers are switched off first. */
  async tamper(text: string, ...values: unknown[]): Promise<void> {
    await this.sql.query(`set session_replication_role = 'replica'`);
    const { rowCount } = await this.sql.query(text, values);
    await this.sql.query(`set session_replication_role = 'origin'`);
    if (!rowCount) throw new Error(`nothing was tampered with: ${text}`);
  }

  /** Cuts a chain off behind an entry: entries and head, as if the rest had never been. */
  async cutBehind(chain: string, seq: number): Promise<void> {
    await this.tamper('delete from audit_entries where chain_id = $1 and seq > $2', chain, seq);
    await this.tamper(
      `update audit_heads h set seq = e.seq, link = e.link from audit_entries e
       where h.chain_id = $1 and e.chain_id = h.chain_id and e.seq = $2`,
      chain,
      seq,
    );
  }
}

export const FIRST =
  '{"at":"2026-03-02T09:00:00Z","payload":{"action":"project.create","actor":"usr_1","ok":true,"target":"prj_9"},"type":"acme.audit/1"}';

export const SECOND = Buffer.from(
  '7b226174223a22323032362d30332d30325430393a30303a30312e3235305a222c227061796c6f6164223a7b22616374696f6e223a22613c62266322' +
    '2c226163746f72223a227573725fc3a9222c226e223a2d352c226e6f6e65223a6e756c6c2c226e6f7465223a227461625c7468657265205c22715c22' +
    '205c5c20e280a8205c7530303031227d2c2274797065223a2261636d652e61756469742f31227d',
  'hex',
).toString('utf8');

/** Of the two, in the chain `in_demo`. */
export const LINKS = [
  '0a7cafb8610c333b0f44796dcbb8dbc623fb9e2ddc72765c0da1b6845f63e45f',
  '11c8c3571ab2d6df55bd5990402f334a31f38a082d42a4be1094c01deeadcf33',
] as const;
