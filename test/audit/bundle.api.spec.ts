/** `GET /v1/audit/bundle` against an application that signs. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { storeAnchorIfHolds } from '../../src/audit/anchors.sql.js';
import { AuditService } from '../../src/audit/audit.service.js';
import { BundleService } from '../../src/audit/bundle.service.js';
import type { ChainBreak } from '../../src/audit/chain.js';
import { KeyService } from '../../src/audit/key.service.js';
import { timeStampRequest } from '../../src/audit/tsa.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { readTimeStamp } from '../../src/verifier/rfc3161.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { bundleIn, giveKey, keyOf } from './signing.fixture.js';
import { Authority } from './tsa.fixture.js';

const KEY = keyOf(7);

let surface: LocalSurface;
let sql: pg.Client;
let chain: string;
beforeAll(async () => {
  surface = await openLocalSurface();
  await giveKey(surface, KEY);
  sql = await surface.session();
  chain = encodeId('org', surface.organizationId);
});
afterAll(() => surface.close());

const bundle = (query = '', token?: string) =>
  surface.send({ path: `/v1/audit/bundle${query}`, ...(token && { token }) });

async function submit(more: object = {}): Promise<string> {
  const { json } = await surface.send({
    method: 'POST',
    path: '/v1/runs',
    json: { kind: 'noop', queue: surface.queue, ...more },
  });
  return json.id;
}

async function head(): Promise<{ seq: number; link: string }> {
  return (await surface.send({ path: '/v1/audit/verify' })).json.head;
}

/** What somebody with all rights over the database does. */
async function tamper(text: string, values: unknown[] = []): Promise<void> {
  await sql.query(`set session_replication_role = 'replica'`);
  const { rowCount } = await sql.query(text, values);
  await sql.query(`set session_replication_role = 'origin'`);
  expect(rowCount).toBe(1);
}

describe('a bundle', () => {
  it('S4-104 holds the whole chain, its own entry last, and the verifier pinned to the key confirms it', async () => {
    await submit();
    const answer = await bundle();
    expect(answer.status).toBe(200);
    const { seq, link } = await head();
    expect(answer.headers).toMatchObject({
      'content-type': 'application/vnd.kordloom.loomseal+json',
      'content-disposition': `attachment; filename="${chain}-${new Date().toISOString().slice(0, 10)}.loomseal.json"`,
      'content-length': String(answer.bytes.length),
      'audit-receipt': `${chain}:${seq}:${link}`,
    });
    const { verdict, document, range, actions } = bundleIn(answer, KEY);
    expect(verdict).toMatchObject({ ok: true, level: 'signed, chained (full)' });
    expect(range).toEqual([1, seq]);
    expect(document).toMatchObject({
      loomseal: '0.1',
      bundle_id: expect.stringMatching(/^lsb_/),
      producer: { product: 'capstan', install_id: chain, key_id: KEY.fingerprint },
      subject: { type: 'fleet', id: chain },
      chain: { profile: 'loomseal-chain-v1', keyed: false, params: { install_id: chain }, head: { seq, link } },
    });
    expect(document).not.toHaveProperty('anchors');
    expect(actions).toEqual(['organization.created', 'token.created', 'run.submitted', 'audit.exported']);
    expect(document.claims.at(-1)?.payload).toEqual({
      action: 'audit.exported',
      object: chain,
      from: 1,
      bundle: document.bundle_id,
      fingerprint: KEY.fingerprint,
      principal: expect.stringMatching(/^tok_/),
      principalName: 'bootstrap',
    });
    expect(answer.text.endsWith('}\n')).toBe(true);
  });

  it('holds a window by number, which joins the one behind it', async () => {
    const [first, second] = [bundleIn(await bundle('?from=2&to=3'), KEY), bundleIn(await bundle('?from=4'), KEY)];
    expect(first).toMatchObject({ verdict: { ok: true }, range: [2, 3] });
    expect(second).toMatchObject({ verdict: { ok: true }, range: [4, (await head()).seq] });
    expect(second.document.claims[0]).toMatchObject({ chain: { prev: first.document.claims[1]?.chain.link } });
    expect(bundleIn(await bundle('?to=3'), KEY).range).toEqual([1, 3]);
    expect(bundleIn(await bundle('?from=1&to=999999'), KEY).range).toEqual([1, (await head()).seq]);
  });

  it('holds a window by time, both instants included, in any offset', async () => {
    const before = (await head()).seq;
    await submit();
    await submit();
    const { rows } = await sql.query(
      'select at from audit_entries where chain_id = $1 and seq in ($2, $3) order by seq',
      [chain, before + 1, before + 2],
    );
    const [from = new Date(0), to = new Date(0)] = rows.map(({ at }: { at: Date }) => at);
    const query = (a: string, b: string) => `?from=${encodeURIComponent(a)}&to=${encodeURIComponent(b)}`;
    const found = bundleIn(await bundle(query(from.toISOString(), to.toISOString())), KEY);
    expect(found.verdict.ok).toBe(true);
    expect(found.range[0]).toBeGreaterThan(before - 1);
    expect(found.range[0]).toBeLessThanOrEqual(before + 1);
    expect(found.range[1]).toBe(before + 2);
    const east = `${new Date(to.getTime() + 7_200_000).toISOString().slice(0, -1)}+02:00`;
    expect(bundleIn(await bundle(query(east, east)), KEY).range[1]).toBe(before + 2);
    expect((await bundle(query('2031-01-01T00:00:00Z', '2031-01-02T00:00:00Z'))).status).toBe(404);
    expect((await bundle(query('1999-01-01T00:00:00Z', '1999-01-02T00:00:00Z'))).status).toBe(404);
  });

  it('of a run is the smallest window that holds its entries', async () => {
    const id = await submit();
    const first = (await head()).seq;
    await submit();
    await surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
    const last = (await head()).seq;
    const found = bundleIn(await bundle(`?run=${id}`), KEY);
    expect(found).toMatchObject({ verdict: { ok: true }, range: [first, last] });
    expect(found.actions).toEqual(['run.submitted', 'run.submitted', 'run.ended']);
    expect(found.document.claims.at(-1)?.payload).toMatchObject({ object: id });
    const { token } = await surface.stranger();
    const json = { kind: 'noop', queue: surface.queue };
    const made = Array.from({ length: last }, () => surface.send({ method: 'POST', path: '/v1/runs', json, token }));
    await Promise.all(made);
    expect((await surface.send({ path: '/v1/audit/verify', token })).json.head.seq).toBe(last);
    expect((await bundle(`?run=${id}`, token)).json).toMatchObject({ status: 404, code: 'not_found' });
    expect((await bundle('?run=run_01h455vb4pex5vsknk084sn02q')).status).toBe(404);
  });

  it("of the installation's chain is for its admins", async () => {
    const found = bundleIn(await bundle('?chain=installation'), KEY);
    expect(found).toMatchObject({
      verdict: { ok: true },
      document: { subject: { id: expect.stringMatching(/^ins_/) } },
    });
    const actions = found.actions.filter((action) => action !== 'schema.migrated');
    expect(actions).toEqual(['organization.created', 'audit.key_recorded', 'audit.exported']);
    const { token } = await surface.stranger();
    expect((await bundle('?chain=installation', token)).json).toMatchObject({ status: 403, code: 'forbidden' });
  });

  it('of an organization that has done nothing is 404, and appends nothing', async () => {
    const { token } = await surface.stranger();
    expect((await bundle('', token)).status).toBe(404);
    expect((await surface.send({ path: '/v1/audit/verify', token })).json.head.seq).toBe(0);
  });

  it.each([
    ['from=0', '?from'],
    ['from=-1', '?from'],
    ['from=1.5', '?from'],
    ['to=yesterday', '?to'],
    ['to=2026-02-30T00:00:00Z', '?to'],
    ['from=5&to=4', '?to'],
    ['from=1&from=2', '?from'],
    ['run=wrk_01h455vb4pex5vsknk084sn02q', '?run'],
    ['run=run_01h455vb4pex5vsknk084sn02q&from=1', '?run'],
    ['chain=org_1', '?chain'],
    ['since=1', '?since'],
  ])('?%s is refused and names what is wrong', async (query, pointer) => {
    const before = await head();
    const { status, json } = await bundle(`?${query}`);
    expect({ status, pointers: json.errors.map((each: { pointer: string }) => each.pointer) }).toEqual({
      status: 422,
      pointers: [pointer],
    });
    expect(await head()).toEqual(before);
  });

  it('F137 S4-104 is confirmed whatever names stand in its entries', async () => {
    const awkward = [
      ...[
        '😀 \u{1F469}\u200d\u{1F692}',
        'é',
        'e\u0301',
        '\ufb33',
        '\u2028\u2029',
        '1e2',
        '9007199254740993',
        '\u007f\u0001',
      ],
      ...['"quoted", \\ and "payload":{', '","chain":{"seq":1},"', 'ÿ'.repeat(255)],
    ];
    for (const [n, name] of awkward.entries()) {
      const token = `cap_awkward-name-of-a-token-${n}`;
      await sql.query(`insert into tokens (id, organization_id, name, hash) values ($1, $2, $3, sha256($4::bytea))`, [
        newId(),
        surface.organizationId,
        name,
        Buffer.from(token),
      ]);
      const key = Buffer.from('é'.repeat(126) + String(n).padStart(3, '0')).toString('latin1');
      const json = { kind: 'noop', queue: surface.queue, labels: { '1e2': '1.0' } };
      const headers = { 'idempotency-key': key };
      expect((await surface.send({ method: 'POST', path: '/v1/runs', token, headers, json })).status).toBe(201);
    }
    const { verdict, document } = bundleIn(await bundle(), KEY);
    expect(verdict.failed).toBeUndefined();
    const names = document.claims.map(({ payload }) => payload.principalName);
    expect(names).toEqual(expect.arrayContaining(awkward));
  });

  it('those asked for at the same time are all made, each with an entry of its own', async () => {
    const found = (await Promise.all(Array.from({ length: 6 }, () => bundle()))).map((answer) => bundleIn(answer, KEY));
    expect(found.map(({ verdict }) => verdict.ok)).toEqual(Array(6).fill(true));
    const ends = found.map(({ range }) => range[1] ?? 0);
    expect(new Set(ends).size).toBe(6);
    expect(new Set(found.map(({ document }) => document.bundle_id)).size).toBe(6);
  });

  it('more than may wait are told to come again, and have changed nothing', async () => {
    const before = (await head()).seq;
    const answers = await Promise.all(Array.from({ length: 24 }, () => bundle()));
    const refused = answers.filter(({ status }) => status === 503);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.json).toMatchObject({ code: 'unavailable' });
    expect(refused[0]?.headers['retry-after']).toBe('5');
    expect((await head()).seq).toBe(before + answers.length - refused.length);
  });
});

describe('who asked and has gone', () => {
  const exportsOf = async (of: string) =>
    (await sql.query(`select 1 from audit_entries where chain_id = $1 and action = 'audit.exported'`, [of])).rows
      .length;

  it('ends the recomputation, which kept nobody else, and has exported nothing', async () => {
    const { token, organizationId } = await surface.stranger();
    await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue }, token });
    const verify = vi.spyOn(surface.app.get(AuditService), 'verify');
    let begun = false;
    const ended = new Promise<void>((resolve) => {
      verify.mockImplementationOnce(async (_chain, _range, asking) => {
        begun = true;
        await new Promise<void>((end) => asking?.signal?.addEventListener('abort', () => end()));
        resolve();
        throw new Error('nobody waits');
      });
    });
    const leaving = new AbortController();
    const headers = { authorization: `Bearer ${token}` };
    const asked = fetch(`${await surface.base()}/v1/audit/bundle`, { headers, signal: leaving.signal });
    await vi.waitFor(() => expect(begun).toBe(true));
    expect((await bundle()).status).toBe(200);
    leaving.abort();
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
    await ended;
    verify.mockRestore();
    expect(await exportsOf(encodeId('org', organizationId))).toBe(0);
  });

  it('exports nothing when its turn comes', async () => {
    const { organizationId } = await surface.stranger();
    const other = encodeId('org', organizationId);
    await sql.query(`select audit_append(array[$1], array['{"action": "test.made"}'::jsonb], array[null::uuid])`, [
      other,
    ]);
    const [audit, keys] = [surface.app.get(AuditService), surface.app.get(KeyService)];
    const service = new BundleService(audit, keys, surface.platform.pools, surface.platform.log);
    const make = (of: string, signal: AbortSignal) =>
      service.make(
        { organizationId, chain: of, principal: { type: 'token', id: 'tok_1', name: 'n' }, isInstallationAdmin: false },
        { chain: undefined, from: undefined, to: undefined, run: undefined },
        signal,
      );
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const signer = vi.spyOn(keys, 'signer');
    // The second look at the key is in its turn.
    signer.mockResolvedValueOnce(KEY).mockImplementationOnce(() => held.then(() => KEY));
    const first = make(chain, new AbortController().signal);
    await vi.waitFor(() => expect(signer).toHaveBeenCalledTimes(2));
    const leaving = new AbortController();
    const verify = vi.spyOn(audit, 'verify');
    const left = expect(make(other, leaving.signal)).rejects.toMatchObject({ name: 'AbortError' });
    await vi.waitFor(() => expect(verify.mock.settledResults).toMatchObject([{ type: 'fulfilled' }]));
    leaving.abort();
    goOn();
    expect((await first).receipt).toContain(chain);
    await left;
    for (const spy of [signer, verify]) spy.mockRestore();
    expect(await exportsOf(other)).toBe(0);
  });

  it('HEAD is refused: it would make a bundle that nobody gets, and an entry', async () => {
    const before = await head();
    const { status, headers } = await surface.send({ method: 'HEAD', path: '/v1/audit/bundle' });
    expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'GET' });
    expect(await head()).toEqual(before);
  });
});

describe('with anchors', () => {
  it('S4-104 a window with a timestamp inside is "anchored (proof verified)"; one outside stays out', async () => {
    const authority = await Authority.create();
    try {
      await submit();
      const { seq, link } = await head();
      const token = await authority.token(timeStampRequest(link, Buffer.alloc(8, 0x42)));
      const { genTime: at } = readTimeStamp(token, link);
      const anchor = { seq, link, at, ref: 'https://tsa.example/', token };
      expect(await storeAnchorIfHolds(surface.pool, chain, anchor)).toBe(true);
      await submit();
      const whole = bundleIn(await bundle(), KEY);
      expect(whole.verdict).toMatchObject({ ok: true, level: 'signed, chained (full), anchored (proof verified)' });
      expect(whole.document.anchors).toEqual([
        { type: 'rfc3161', seq, link, at, ref: 'https://tsa.example/', proof: token.toString('base64') },
      ]);
      const before = bundleIn(await bundle(`?to=${seq - 1}`), KEY);
      expect(before).toMatchObject({ verdict: { ok: true, level: 'signed, chained (full)' } });
      expect(before.document).not.toHaveProperty('anchors');
    } finally {
      await authority.remove();
    }
  });
});

describe('a chain that does not hold', () => {
  it('S4-105 is answered 409 that names entry and check, and nothing is signed or appended', async () => {
    const { token, organizationId } = await surface.stranger();
    const other = encodeId('org', organizationId);
    const send = () =>
      surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue }, token });
    for (let n = 0; n < 4; n += 1) await send();
    await tamper(
      `update audit_entries set claim = replace(claim, 'run.submitted', 'run.submittee') where chain_id = $1 and seq = 2`,
      [other],
    );
    for (const query of ['', '?from=3', '?from=1&to=1']) {
      const { status, json, headers } = await bundle(query, token);
      expect({ status, code: json.code, seq: json.seq, check: json.check }).toEqual({
        status: 409,
        code: 'chain_broken',
        seq: 2,
        check: 'link',
      });
      expect(json.detail).toContain('entry 2 (check: link)');
      expect(headers['audit-receipt']).toBeUndefined();
    }
    expect((await surface.send({ path: '/v1/audit/verify', token })).json.head.seq).toBe(4);
    expect(bundleIn(await bundle(), KEY).verdict.ok).toBe(true);
  });

  it('S4-105 so is one whose entry is another than was timestamped, wherever the window is', async () => {
    const { token, organizationId } = await surface.stranger();
    const other = encodeId('org', organizationId);
    for (let n = 0; n < 3; n += 1)
      await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue }, token });
    await sql.query(
      `insert into audit_anchors (chain_id, seq, link, at, ref, token) values ($1, 3, sha256('x'), '2026-03-02T09:00:00Z', 'https://tsa.example/', 'x')`,
      [other],
    );
    for (const query of ['', '?from=1&to=2']) {
      expect((await bundle(query, token)).json).toMatchObject({
        status: 409,
        code: 'chain_broken',
        seq: 3,
        check: 'anchor',
      });
    }
  });

  it('S4-105 so is one whose timestamp is forged to fit its entry', async () => {
    const { token, organizationId } = await surface.stranger();
    await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue }, token });
    await sql.query(
      `insert into audit_anchors (chain_id, seq, link, at, ref, token)
       select chain_id, seq, link, '2026-03-02T09:00:00Z', 'https://tsa.example/', sha256(link)
       from audit_entries where chain_id = $1`,
      [encodeId('org', organizationId)],
    );
    const { json, headers } = await bundle('', token);
    expect(json).toMatchObject({ status: 409, code: 'chain_broken', seq: 1, check: 'anchor' });
    expect(headers['audit-receipt'], 'nothing was even begun').toBeUndefined();
  });

  it('S4-105 a run’s bundle holds its entries whatever the columns beside them say: none is put to it, none is hidden', async () => {
    const { token, organizationId } = await surface.stranger();
    const runs: string[] = [];
    for (let n = 0; n < 2; n += 1) {
      const json = { kind: 'noop', queue: surface.queue };
      runs.push((await surface.send({ method: 'POST', path: '/v1/runs', json, token })).json.id);
    }
    expect(bundleIn(await bundle(`?run=${runs[0]}`, token), KEY).range).toEqual([1, 1]);
    await tamper(
      `update audit_entries set run_id = (select run_id from audit_entries where chain_id = $1 and seq = 1)
       where chain_id = $1 and seq = 2`,
      [encodeId('org', organizationId)],
    );
    expect(bundleIn(await bundle(`?run=${runs[0]}`, token), KEY).range).toEqual([1, 1]);
    expect(bundleIn(await bundle(`?run=${runs[1]}`, token), KEY).range).toEqual([2, 2]);
  });

  it('S4-105 one that was rebuilt from an entry that is no JSON holds, but nothing unverified leaves', async () => {
    const { token, organizationId } = await surface.stranger();
    const other = encodeId('org', organizationId);
    const claim = '{"at":"2026-03-02T09:00:00.000Z","payload":{"a":1.0,"action":"forged"},"type":"capstan.audit/1"}';
    const link = `sha256(convert_to('{"claim":"sha256:' || encode(sha256(convert_to($2, 'UTF8')), 'hex')
      || '","domain":"loomseal-chain-v1","install_id":"' || $1 || '","prev":"","seq":1}', 'UTF8'))`;
    await sql.query(
      `insert into audit_entries (chain_id, seq, claim, prev, link, at, action) select $1, 1, $2, '', ${link}, '2026-03-02T09:00:00Z', 'forged'`,
      [other, claim],
    );
    await tamper(
      `update audit_heads set seq = 1, link = (select link from audit_entries where chain_id = $1 and seq = 1) where chain_id = $1`,
      [other],
    );
    expect((await surface.send({ path: '/v1/audit/verify', token })).json.ok).toBe(true);
    const { json, headers } = await bundle('', token);
    expect(json).toMatchObject({
      status: 409,
      code: 'chain_broken',
      check: 'parse',
      detail: expect.stringContaining('nothing was sent'),
    });
    expect(headers['audit-receipt']).toMatch(new RegExp(`^${other}:2:`));
  });

  it('S4x-01 a chain that cannot be appended to is answered 503, and nothing is sent', async () => {
    const holder = await surface.session();
    await holder.query('select pg_advisory_lock(1129337940, lock_key) from audit_heads where chain_id = $1', [chain]);
    const answer = await bundle();
    await holder.query('select pg_advisory_unlock_all()');
    expect(answer.json).toMatchObject({ status: 503, code: 'unavailable' });
    expect((await bundle()).status).toBe(200);
  });
});

describe('a chain of more than 100,000 entries', () => {
  /** What is known of a chain, and what is asked to be recomputed. */
  class Knowing extends AuditService {
    readonly asked: unknown[] = [];
    known: ChainBreak | undefined;
    held: number | undefined;

    override brokenAsKnown = () => this.known;
    override lastVerified = () => this.held;
    meanwhile: ChainBreak | undefined;
    found: ChainBreak | undefined;
    override verify = async (chain: string, range = {}) => {
      this.asked.push(range);
      this.known ??= this.meanwhile;
      return { ok: !this.found, chain, entries: 0, head: { seq: 0, link: '' }, anchors: 0, ...this.found, tookMs: 0 };
    };
  }

  it('S4-105 is recomputed as a whole until it was once; then the window is, and a break that is known stops it', async () => {
    const { token, organizationId } = await surface.stranger();
    const long = encodeId('org', organizationId);
    for (let n = 0; n < 3; n += 1)
      await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue }, token });
    const { platform, app } = surface;
    const audit = new Knowing(platform.pools.read);
    const service = new BundleService(audit, app.get(KeyService), platform.pools, platform.log);
    const principal = { type: 'token', id: 'tok_1', name: 'n' } as const;
    const caller = { organizationId, chain: long, principal, isInstallationAdmin: false };
    const request = { chain: undefined, from: 1, to: 2, run: undefined };
    const make = async () => bundleIn(await service.make(caller, request, new AbortController().signal), KEY).range;

    audit.held = 3;
    expect(await make()).toEqual([1, 2]);
    expect(audit.asked.splice(0)).toEqual([{}]);
    await tamper('update audit_heads set seq = 100001 where chain_id = $1', [long]);
    expect(await make()).toEqual([1, 2]);
    expect(audit.asked.splice(0)).toEqual([{ from: 1, to: 2 }]);
    audit.held = undefined;
    expect(await make()).toEqual([1, 2]);
    expect(audit.asked.splice(0)).toEqual([{}]);
    audit.held = 100_001;
    audit.known = { brokenAt: 50_000, check: 'prev' };
    const members = { seq: 50_000, check: 'prev' };
    await expect(make()).rejects.toMatchObject({ code: 'chain_broken', members });
    expect(audit.asked).toEqual([]);
    [audit.known, audit.found] = [undefined, audit.known];
    await expect(make(), 'found by its own recomputation').rejects.toMatchObject({ code: 'chain_broken', members });
    expect(audit.asked.splice(0)).toHaveLength(1);
    [audit.found, audit.meanwhile] = [undefined, audit.found];
    await expect(make(), 'found while it waited').rejects.toMatchObject({ code: 'chain_broken', members });
    expect(audit.asked).toHaveLength(1);
  });
});
