/**
 * What somebody with all rights over the database can do to a chain: he switches the triggers off, drops the constraints,
 * and writes what he likes. Whatever breaks the chain is found, with the first number that fails and why; what doesn't
 * break it is found by who holds something from outside: an anchor, a receipt, or the memory of a longer chain.
 */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { EntriesService } from '../../src/audit/entries.service.js';
import { timeStampRequest } from '../../src/audit/tsa.js';
import { encodeId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { readTimeStamp } from '../../src/verifier/rfc3161.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { ATTACKS, choice, FORGERY, relinked, sceneOf, texts } from './attack.fixture.js';
import { readChain, recompute, type StoredChain } from './recompute.fixture.js';
import { Authority } from './tsa.fixture.js';

let db: TestDatabase;
let pool: Pool;
let sql: pg.Client;
let authority: Authority;
beforeAll(async () => {
  authority = await Authority.create();
  db = await createDatabase();
  pool = db.pool(2);
  sql = await db.session();
  // What the tables themselves refuse would hide what verification finds.
  const { rows } = await sql.query<{ owner: string; name: string }>(
    `select conrelid::regclass::text as owner, conname as name from pg_constraint
     where conrelid = 'audit_entries'::regclass and contype in ('c', 'p')
        or conrelid = 'audit_heads'::regclass and contype = 'c'`,
  );
  for (const { owner, name } of rows) await sql.query(`alter table ${owner} drop constraint "${name}"`);
});
afterAll(async () => {
  await authority.remove();
  await db.drop();
});

/** A chain of its own with an entry for each text. */
async function makeChain(texts: readonly string[]): Promise<string> {
  const [chain, organization] = [`in_${randomUUID()}`, randomUUID()];
  await sql.query('insert into organizations (id, name) values ($1, $2)', [organization, `o-${organization}`]);
  await sql.query('insert into audit_heads (chain_id, organization_id) values ($1, $2)', [chain, organization]);
  // Every other is about a run.
  const runs = texts.map((_, n) => (n % 2 === 0 ? null : randomUUID()));
  const payloads = texts.map((text, n) => {
    const run = runs[n];
    return JSON.stringify({
      action: 'test.made',
      n,
      text,
      object: run ? encodeId('run', run) : `"object":"run_${text}`,
    });
  });
  await sql.query('select from audit_append(array_fill($1::text, array[cardinality($2::jsonb[])]), $2, $3)', [
    chain,
    payloads,
    runs,
  ]);
  return chain;
}

/** Makes the stored chain this one. */
async function overwrite(chain: string, { entries, head }: StoredChain): Promise<void> {
  await sql.query(`set session_replication_role = 'replica'`);
  await sql.query('delete from audit_entries where chain_id = $1', [chain]);
  await sql.query(
    `insert into audit_entries (chain_id, seq, claim, prev, link, at, action, run_id)
     select $1, e.seq, e.claim, decode(e.prev, 'hex'), decode(e.link, 'hex'), e.at, e.action, e."runId"
     from jsonb_to_recordset($2) as e (
       seq bigint, claim text, prev text, link text, at timestamptz, action text, "runId" uuid)`,
    [chain, JSON.stringify(entries.map(({ beside, ...rest }) => ({ ...rest, ...beside })))],
  );
  await sql.query(`update audit_heads set seq = $2, link = decode($3, 'hex') where chain_id = $1`, [
    chain,
    head.seq,
    head.link,
  ]);
  await sql.query(`set session_replication_role = 'origin'`);
}

const verifyAnew = (chain: string) => new AuditService(pool).verify(chain);

describe('S4-102 S4-103 an attack that breaks the chain is found, with its number and its check', () => {
  it.each(Object.entries(ATTACKS))('%s', { timeout: 60_000 }, async (_, attack) => {
    await fc.assert(
      fc.asyncProperty(texts, choice, async (made, chosen) => {
        const chain = await makeChain(made);
        expect(await verifyAnew(chain)).toMatchObject({ ok: true, entries: made.length });
        const { found, ...after } = attack(sceneOf(chain, await readChain(sql, chain), chosen));
        await overwrite(chain, after);
        expect(await verifyAnew(chain)).toMatchObject({ ok: false, ...found });
        expect(recompute(chain, await readChain(sql, chain)), 'the second opinion').toEqual(found);
      }),
      { numRuns: 20 },
    );
  });

  it('several of them at once: the first number that fails is named, as the second opinion says', {
    timeout: 120_000,
  }, async () => {
    const attacks = fc.array(fc.tuple(fc.constantFrom(...Object.values(ATTACKS)), choice), {
      minLength: 2,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(texts, attacks, async (made, chosen) => {
        const chain = await makeChain(made);
        for (const [attack, how] of chosen) {
          const stored = await readChain(sql, chain);
          if (stored.entries.length >= 2) await overwrite(chain, attack(sceneOf(chain, stored, how)));
        }
        const opinion = recompute(chain, await readChain(sql, chain));
        const { ok, brokenAt, check } = await verifyAnew(chain);
        expect({ ok, brokenAt, check }).toEqual({
          ok: opinion === undefined,
          brokenAt: undefined,
          check: undefined,
          ...opinion,
        });
      }),
      { numRuns: 150 },
    );
  });
});

describe('S4-102 S4x-02 an attack that leaves a chain which holds is not found by the chain alone', () => {
  /** Unbroken, but not what was: from a place on, entries are gone or others, and the head agrees. */
  const REWRITES: Readonly<Record<string, (chain: string, stored: StoredChain, from: number) => StoredChain>> = {
    'the tail cut off together with the head': (_, { entries }, from) => {
      const left = entries.filter(({ seq }) => seq < from);
      return { entries: left, head: left.at(-1) ?? { seq: 0, link: '' } };
    },
    'everything from an entry on written anew': (chain, { entries, head }, from) => {
      const forged = entries.map((entry) => (entry.seq === from ? { ...entry, ...FORGERY } : entry));
      const made = relinked(chain, forged, from);
      return { entries: made, head: made.at(-1) ?? head };
    },
  };

  it.each(Object.entries(REWRITES))(
    '%s: an anchor, a receipt and the memory of a process find it',
    async (name, rewrite) => {
      const isCut = name.includes('cut off');
      await fc.assert(
        fc.asyncProperty(texts, choice, async (made, chosen) => {
          const chain = await makeChain(made);
          const before = await readChain(sql, chain);
          const { at, other, last } = sceneOf(chain, before, chosen);
          const anchored = Math.max(at.seq, other.seq);
          const witness = new AuditService(pool);
          expect(await witness.verify(chain)).toMatchObject({ ok: true, entries: last.seq });
          await overwrite(chain, rewrite(chain, before, at.seq));

          const left = isCut ? at.seq - 1 : last.seq;
          expect(await verifyAnew(chain), 'this is what a chain alone can not show').toMatchObject({
            ok: true,
            entries: left,
          });
          expect(await witness.verify(chain)).toMatchObject({
            ok: false,
            brokenAt: isCut ? at.seq : last.seq,
            check: 'behind',
          });
          for (const { seq, link } of before.entries) {
            const reason = isCut ? 'missing' : 'differs';
            const expected = seq < at.seq ? { holds: true } : { holds: false, reason };
            expect(await receiptAnswer(chain, `${chain}:${seq}:${link}`), `the receipt of ${seq}`).toMatchObject(
              expected,
            );
          }
          await anchor(chain, anchored, before);
          expect(await verifyAnew(chain)).toMatchObject({ ok: false, brokenAt: anchored, check: 'anchor' });
        }),
        { numRuns: 25 },
      );
    },
  );

  /** The timestamp that was made of an entry while the chain was what it was. */
  async function anchor(chain: string, seq: number, { entries }: StoredChain): Promise<void> {
    const link = entries.find((entry) => entry.seq === seq)?.link ?? '';
    const token = await authority.token(timeStampRequest(link, Buffer.alloc(8, 0x42)));
    await sql.query(
      `insert into audit_anchors (chain_id, seq, link, at, ref, token)
       values ($1, $2, decode($3, 'hex'), $4, 'https://tsa.test/', $5)`,
      [chain, seq, link, readTimeStamp(token, link).genTime, token],
    );
  }

  function receiptAnswer(chain: string, receipt: string): Promise<unknown> {
    const principal = { type: 'token', id: 'tok_test', name: 'test' } as const;
    const caller = { organizationId: randomUUID(), chain, principal, isInstallationAdmin: false };
    return new EntriesService(pool, new AuditService(pool)).receipt(caller, receipt);
  }

  it('an anchor of an entry before the attack still equals it, and is counted', async () => {
    const chain = await makeChain(['a', 'b', 'c']);
    const before = await readChain(sql, chain);
    await anchor(chain, 2, before);
    expect(await verifyAnew(chain)).toMatchObject({ ok: true, anchors: 1 });
    await overwrite(chain, REWRITES['everything from an entry on written anew']?.(chain, before, 3) ?? before);
    expect(await verifyAnew(chain)).toMatchObject({ ok: true, anchors: 1 });
    await overwrite(chain, REWRITES['everything from an entry on written anew']?.(chain, before, 2) ?? before);
    expect(await verifyAnew(chain)).toMatchObject({ ok: false, brokenAt: 2, check: 'anchor' });
  });
});
