/** `/v1/audit/key` against applications in this process: what the installation's chain says of its keys. */
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { KeyService } from '../../src/audit/key.service.js';
import { recordKeyIfFirst } from '../../src/audit/key.sql.js';
import { StartRefused } from '../../src/platform/start-refused.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { until } from '../server.js';
import { bundleIn, giveKey, keyOf } from './signing.fixture.js';

const [FIRST, SECOND, THIRD] = [keyOf(1), keyOf(2), keyOf(3)];

let surface: LocalSurface;
beforeEach(async () => {
  surface = await openLocalSurface();
});
afterEach(() => surface.close());

const show = async () => (await surface.send({ path: '/v1/audit/key' })).json;
const rotate = (publicKey: unknown, token?: string) =>
  surface.send({ method: 'POST', path: '/v1/audit/key', json: { publicKey }, ...(token && { token }) });
const bundle = (query = '') => surface.send({ path: `/v1/audit/bundle${query}` });

async function recorded(): Promise<string[]> {
  const sql = await surface.session();
  const { rows } = await sql.query(
    `select action || ' ' || coalesce(claim::jsonb -> 'payload' ->> 'fingerprint', '') as entry from audit_entries
     where action like 'audit.key%' order by seq`,
  );
  await sql.end();
  return rows.map(({ entry }: { entry: string }) => entry);
}

/** Another replica of the same installation. */
function replica(): KeyService {
  const { pools, log } = surface.platform;
  return new KeyService(new AuditService(pools.read), pools, log);
}

/** So many stand before a chain's lock. */
function untilWaiting(sql: pg.Client, count: number): Promise<boolean> {
  const text = `select count(*)::int as n from pg_locks
    where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`;
  return until('they wait for the lock', async () => (await sql.query(text)).rows[0].n === count);
}

describe('no key', () => {
  it('S4-65 S4-103 the chain is verified all the same, bundles are answered 503, and none is minted', async () => {
    expect(await show()).toEqual({
      fingerprint: null,
      publicKey: null,
      recordedAt: null,
      receipt: null,
      past: [],
      signs: false,
    });
    const { status, json, headers } = await bundle();
    expect({ status, code: json.code }).toEqual({ status: 503, code: 'signing_key_missing' });
    expect(json.detail).toContain('CAPSTAN_AUDIT_KEY');
    expect(headers['retry-after']).toBe('60');
    expect((await surface.send({ path: '/v1/audit/verify' })).json).toMatchObject({ ok: true });
    expect(await recorded()).toEqual([]);
    expect((await surface.send({ path: '/v1/audit/verify' })).json.head.seq).toBe(2);
  });
});

describe('the first key', () => {
  it('is recorded with its public half, and shown to anybody with a token', async () => {
    await giveKey(surface, FIRST);
    const { token } = await surface.stranger();
    const { json } = await surface.send({ path: '/v1/audit/key', token });
    expect(json).toEqual({
      fingerprint: FIRST.fingerprint,
      publicKey: FIRST.publicKey,
      recordedAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      receipt: expect.stringMatching(/^ins_\w+:\d+:[0-9a-f]{64}$/),
      past: [],
      signs: true,
    });
    const { document } = bundleIn(await bundle('?chain=installation'), FIRST);
    const seq = Number(json.receipt.split(':')[1]);
    expect(document.claims[seq - 1]?.payload).toEqual({
      action: 'audit.key_recorded',
      object: FIRST.fingerprint,
      fingerprint: FIRST.fingerprint,
      publicKey: FIRST.publicKey,
      principal: 'system',
    });
  });

  it('S4-102 stays the current one when an export is made to look like a rotation, and verifying shows that', async () => {
    await giveKey(surface, FIRST);
    await bundle('?chain=installation');
    await rotate(SECOND.publicKey);
    await giveKey(surface, SECOND);
    await bundle('?chain=installation');
    const { seq } = (await surface.send({ path: '/v1/audit/verify?chain=installation' })).json.head;
    const sql = await surface.session();
    await sql.query(`set session_replication_role = 'replica'`);
    const forge = `update audit_entries set action = 'audit.key_rotated' where action = 'audit.exported'`;
    expect((await sql.query(forge)).rowCount).toBe(2);
    await sql.query(`set session_replication_role = 'origin'`);
    expect(await show()).toMatchObject({
      fingerprint: SECOND.fingerprint,
      past: [{ fingerprint: FIRST.fingerprint }],
      signs: true,
    });
    const { json } = await surface.send({ path: '/v1/audit/verify?chain=installation' });
    expect(json).toMatchObject({ ok: false, brokenAt: seq - 2, check: 'column' });
  });

  it('S4-65 is one, however many replicas come with it at once; one with another is refused', async () => {
    const ours = Array.from({ length: 6 }, () => replica().admit(FIRST));
    expect((await Promise.allSettled(ours)).map(({ status }) => status)).toEqual(Array(6).fill('fulfilled'));
    expect(await recorded()).toEqual([`audit.key_recorded ${FIRST.fingerprint}`]);
    const refused = replica().admit(SECOND);
    await expect(refused).rejects.toThrow(StartRefused);
    await expect(refused).rejects.toThrow(
      `given: ${SECOND.fingerprint}, current: ${FIRST.fingerprint}): set CAPSTAN_AUDIT_KEY to the current one`,
    );
    expect(await recorded()).toHaveLength(1);
  });

  it('S4-65 of two that come at once with different keys one starts', async () => {
    const both = await Promise.allSettled([replica().admit(FIRST), replica().admit(SECOND)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await recorded()).toHaveLength(1);
  });

  it('S4-65 is one by an index of its own too: who looked before the other had written fails, and reads again', async () => {
    const sql = await surface.session();
    const chain = (await sql.query('select chain_id from audit_heads where organization_id is null')).rows[0].chain_id;
    // Both have looked, and seen none, before either writes: the lock of the chain holds them there.
    await sql.query('select pg_advisory_lock(1129337940, lock_key) from audit_heads where chain_id = $1', [chain]);
    const both = Promise.allSettled([
      recordKeyIfFirst(surface.pool, chain, FIRST),
      recordKeyIfFirst(surface.pool, chain, SECOND),
    ]);
    await untilWaiting(sql, 2);
    await sql.query('select pg_advisory_unlock_all()');
    const [won, lost] = (await both).sort((a) => (a.status === 'fulfilled' ? -1 : 1));
    expect(won).toEqual({ status: 'fulfilled', value: true });
    expect(lost).toMatchObject({ status: 'rejected', reason: { code: '23505' } });
    expect(await recorded()).toHaveLength(1);
    await sql.end();
  });
});

describe("an installation's chain that does not hold", () => {
  let sql: pg.Client;
  let chain: string;
  beforeEach(async () => {
    sql = await surface.session();
    chain = (await sql.query('select chain_id from audit_heads where organization_id is null')).rows[0].chain_id;
  });

  async function change(from: string, to: string): Promise<number> {
    await sql.query(`set session_replication_role = 'replica'`);
    const { rows } = await sql.query(
      'update audit_entries set action = $3 where chain_id = $1 and action = $2 returning seq',
      [chain, from, to],
    );
    await sql.query(`set session_replication_role = 'origin'`);
    expect(rows).toHaveLength(1);
    return Number(rows[0].seq);
  }
  const appendTo = (of: string) =>
    sql.query(`select audit_append(array[$1], array['{"action": "test.made"}'::jsonb], array[null::uuid])`, [of]);
  const verify = () => surface.send({ path: '/v1/audit/verify?chain=installation' });

  it('S4-65 S4-102 names no first key though its action was changed, and a foreign key signs nothing', async () => {
    await giveKey(surface, FIRST);
    const seq = await change('audit.key_recorded', 'x');
    const foreign = replica();
    await foreign.admit(SECOND);
    const members = { seq, check: 'column' };
    await expect(foreign.signer()).rejects.toMatchObject({ code: 'chain_broken', members });
    expect(await foreign.isRecorded()).toBe(true);
    expect(await recordKeyIfFirst(surface.pool, chain, SECOND), 'by the text alone').toBe(false);
    await change('x', 'audit.key_recorded');
    expect(await recorded()).toEqual([`audit.key_recorded ${FIRST.fingerprint}`]);
  });

  it('S4-105 stops all bundles while it is known to be broken, and none from when it holds again', async () => {
    await giveKey(surface, FIRST);
    await appendTo(chain);
    const seq = await change('test.made', 'x');
    expect((await verify()).json).toMatchObject({ ok: false });
    const { json } = await bundle();
    expect(json).toMatchObject({ status: 409, code: 'chain_broken', seq, check: 'column' });
    expect(json.detail).toContain(`${chain} doesn't hold at entry ${seq} (check: column)`);
    await change('x', 'test.made');
    expect((await verify()).json).toMatchObject({ ok: true });
    expect(bundleIn(await bundle(), FIRST).verdict.ok).toBe(true);
  });

  it('S4-65 records the first key once it holds again, without a start', async () => {
    await appendTo(chain);
    await change('test.made', 'x');
    await giveKey(surface, FIRST);
    expect(await recorded()).toEqual([]);
    expect((await bundle()).json).toMatchObject({ status: 409, code: 'chain_broken' });
    await change('x', 'test.made');
    await verify();
    expect(bundleIn(await bundle(), FIRST).verdict.ok).toBe(true);
    expect(await recorded()).toEqual([`audit.key_recorded ${FIRST.fingerprint}`]);
  });
});

describe('a rotation', () => {
  it('counts though the first key was recorded behind it, by a replica that had seen none', async () => {
    const sql = await surface.session();
    const chain = (await sql.query('select chain_id from audit_heads where organization_id is null')).rows[0].chain_id;
    await sql.query('select pg_advisory_lock(1129337940, lock_key) from audit_heads where chain_id = $1', [chain]);
    const rotation = rotate(SECOND.publicKey);
    await untilWaiting(sql, 1);
    const first = recordKeyIfFirst(surface.pool, chain, FIRST);
    await untilWaiting(sql, 2);
    await sql.query('select pg_advisory_unlock_all()');
    await Promise.all([rotation, first]);
    expect(await recorded()).toEqual([
      `audit.key_rotated ${SECOND.fingerprint}`,
      `audit.key_recorded ${FIRST.fingerprint}`,
    ]);
    expect(await show()).toMatchObject({
      fingerprint: SECOND.fingerprint,
      past: [{ fingerprint: FIRST.fingerprint }],
    });
    await giveKey(surface, SECOND);
    expect(bundleIn(await bundle(), SECOND).verdict.ok).toBe(true);
    expect((await rotate(SECOND.publicKey)).status, 'said again').toBe(200);
    expect(await recorded()).toHaveLength(2);
  });

  it('makes another key the current one, keeps the former, and stops who still has that from signing', async () => {
    await giveKey(surface, FIRST);
    const before = await show();
    const { status, json, headers } = await rotate(SECOND.publicKey);
    expect(status).toBe(200);
    expect(json).toEqual({
      fingerprint: SECOND.fingerprint,
      publicKey: SECOND.publicKey,
      recordedAt: expect.any(String),
      receipt: headers['audit-receipt'],
      past: [
        {
          fingerprint: FIRST.fingerprint,
          publicKey: FIRST.publicKey,
          recordedAt: before.recordedAt,
          receipt: before.receipt,
        },
      ],
      signs: false,
    });
    const refused = await bundle();
    expect(refused.json).toMatchObject({ status: 503, code: 'signing_key_superseded' });
    expect(refused.json.detail).toContain(SECOND.fingerprint);
    expect(refused.headers['retry-after']).toBe('60');
    await giveKey(surface, SECOND);
    expect(await show()).toMatchObject({ fingerprint: SECOND.fingerprint, signs: true });
    const { document, verdict } = bundleIn(await bundle('?chain=installation'), SECOND);
    expect(verdict.ok).toBe(true);
    expect(document.claims.at(-2)?.payload).toEqual({
      action: 'audit.key_rotated',
      object: SECOND.fingerprint,
      fingerprint: SECOND.fingerprint,
      publicKey: SECOND.publicKey,
      previous: FIRST.fingerprint,
      principal: expect.stringMatching(/^tok_/),
      principalName: 'bootstrap',
    });
  });

  it('said again writes nothing and answers the receipt of then; a replica with a former key starts and signs nothing', async () => {
    await giveKey(surface, FIRST);
    const first = await rotate(SECOND.publicKey);
    const again = await rotate(SECOND.publicKey);
    expect(again.status).toBe(200);
    expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
    expect(again.json).toEqual(first.json);
    expect(await recorded()).toHaveLength(2);
    const former = replica();
    await former.admit(FIRST);
    await expect(former.signer()).rejects.toMatchObject({ code: 'signing_key_superseded' });
    await expect(replica().admit(THIRD)).rejects.toThrow(StartRefused);
  });

  it('several at once are all recorded, each with its receipt, and the newest counts', async () => {
    await giveKey(surface, FIRST);
    const keys = [SECOND, THIRD, keyOf(4), keyOf(5)];
    const answers = await Promise.all(keys.map(({ publicKey }) => rotate(publicKey)));
    const { fingerprint, receipt, past } = await show();
    const all = [{ fingerprint, receipt }, ...past] as { fingerprint: string; receipt: string }[];
    expect(all).toHaveLength(5);
    answers.forEach(({ status, headers }, index) => {
      expect(status).toBe(200);
      expect(all.find((each) => each.fingerprint === keys[index]?.fingerprint)?.receipt).toBe(headers['audit-receipt']);
    });
    const seqOf = (each: { receipt: string } | undefined) => Number(each?.receipt.split(':')[1]);
    expect(all.map(seqOf)).toEqual(all.map(seqOf).sort((a, b) => b - a));
  });

  it('may come before any replica had a key, and may go back to a former one', async () => {
    await rotate(SECOND.publicKey);
    await expect(replica().admit(FIRST)).rejects.toThrow(StartRefused);
    await giveKey(surface, SECOND);
    await rotate(FIRST.publicKey);
    await rotate(SECOND.publicKey);
    expect(await show()).toMatchObject({ fingerprint: SECOND.fingerprint, signs: true });
    expect(await recorded()).toEqual([SECOND, FIRST, SECOND].map((key) => `audit.key_rotated ${key.fingerprint}`));
  });

  it('is for admins of the installation', async () => {
    await giveKey(surface, FIRST);
    const { token } = await surface.stranger();
    expect((await rotate(SECOND.publicKey, token)).json).toMatchObject({ status: 403, code: 'forbidden' });
    expect(await recorded()).toHaveLength(1);
  });

  it.each([
    ['nothing', undefined],
    ['a number', 7],
    ['no base64', 'x'.repeat(44)],
    ['31 bytes', randomBytes(31).toString('base64')],
    ['33 bytes', randomBytes(33).toString('base64')],
    ['base64url', Buffer.alloc(32, 0xff).toString('base64url')],
    ['another spelling', `${FIRST.publicKey.slice(0, -2)}B=`],
    ['a newline', `${FIRST.publicKey}\n`],
    ['an object', { kty: 'OKP' }],
  ])('of %s is refused', async (_, publicKey) => {
    const { status, json } = await rotate(publicKey);
    expect({ status, pointer: json.errors?.[0].pointer }).toEqual({ status: 422, pointer: '/publicKey' });
    expect(await recorded()).toEqual([]);
  });
});
