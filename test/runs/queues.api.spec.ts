/** Queues as callers see them, and their pauses. What waits stays where it is; what runs goes on. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import { claimIfLive } from '../../src/runs/claim.sql.js';
import { openSurface, type Request, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

const INSTANT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const REASON = 'the database is moving';
const OPEN = '"open"';
const ETAG = expect.stringMatching(/^"[0-9a-f]{32}"$/);

/** A surface with a queue of its own. */
const apart = (): Surface => ({ ...surface, queue: `q-${newId()}` });
const submit = async (queue: string, more: object = {}) =>
  surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue, ...more } });
const put = (queue: string, json: object, rest: Partial<Request> = {}) =>
  surface.send({ method: 'PUT', path: `/v1/queues/${queue}`, json, ...rest });
const pause = (queue: string, reason = REASON) => put(queue, { paused: true, reason });
const resume = (queue: string) => put(queue, { paused: false });

/** All queues, page by page. */
async function listed(limit = 200, token?: string) {
  const items: { name: string; [member: string]: unknown }[] = [];
  for (let cursor = ''; ; ) {
    const path = `/v1/queues?limit=${limit}${cursor}`;
    const { status, json, text } = await surface.send({ path, ...(token === undefined ? {} : { token }) });
    expect(status, text).toBe(200);
    expect(json.items.length).toBeLessThanOrEqual(limit);
    items.push(...json.items);
    if (json.next === null) return items;
    cursor = `&cursor=${json.next}`;
  }
}
const shown = async (queue: string) => (await listed()).find(({ name }) => name === queue);

async function entriesOf(queue: string): Promise<Record<string, unknown>[]> {
  const session = await surface.session();
  const { rows } = await session.query(
    `select claim::jsonb -> 'payload' as payload from audit_entries
     where claim::jsonb -> 'payload' ->> 'object' = $1 order by seq`,
    [queue],
  );
  return rows.map(({ payload }) => payload);
}

describe('a list of queues', () => {
  it('tells of each what waits, since when, what runs, and who takes runs out of it', async () => {
    const own = apart();
    const holder = await Holder.register(own);
    const { json: first } = await submit(own.queue);
    const { json: second } = await submit(own.queue);
    await submit(own.queue, { notBefore: '2090-01-01T00:00:00.000Z' });
    await submit(own.queue);
    await holder.start();
    expect(await shown(own.queue)).toEqual({
      name: own.queue,
      paused: null,
      etag: OPEN,
      depth: 2,
      depthIsEstimate: false,
      oldestPendingAt: second.createdAt,
      running: 1,
      workers: 1,
    });
    expect(first.createdAt <= second.createdAt).toBe(true);
  });

  it('has queues of which only a worker, only a run that runs, or only a pause is left', async () => {
    const [served, busy, paused] = [apart(), apart(), apart()];
    await Holder.register(served);
    const holder = await Holder.register(busy);
    await submit(busy.queue);
    await holder.start();
    const session = await surface.session();
    // Not one whose lease is over: a replica may take it for lost any moment.
    await session.query(`update workers set slots = 0 where id = $1`, [holder.id]);
    await pause(paused.queue);
    const nothing = { depth: 0, depthIsEstimate: false, oldestPendingAt: null, running: 0, workers: 0 };
    expect(await shown(served.queue)).toEqual({ ...nothing, name: served.queue, paused: null, etag: OPEN, workers: 1 });
    expect(await shown(busy.queue)).toEqual({ ...nothing, name: busy.queue, paused: null, etag: OPEN, running: 1 });
    expect(await shown(paused.queue)).toEqual({
      ...nothing,
      name: paused.queue,
      paused: { at: INSTANT, by: expect.stringMatching(/^tok_/), byName: expect.any(String), reason: REASON },
      etag: ETAG,
    });
  });

  it.each([
    [`state = 'draining'`, 'is drained'],
    [`lease_until = now() - interval '31 seconds' + ttl_ms * interval '1 ms'`, 'was not seen for 30 s'],
    ['slots = 0', 'executes nothing'],
  ])('counts no worker that takes no runs: %s, it %s', async (set) => {
    const own = apart();
    const holder = await Holder.register(own);
    expect(await shown(own.queue)).toMatchObject({ workers: 1 });
    const session = await surface.session();
    await session.query(`update workers set ${set} where id = $1`, [holder.id]);
    expect(await shown(own.queue)).toBeUndefined();
  });

  it('counts a worker that serves all queues, and names none by its star', async () => {
    const own = apart();
    await submit(own.queue);
    const everywhere = await Holder.register({ ...surface, queue: '*' });
    expect(await shown(own.queue)).toMatchObject({ workers: 1 });
    expect((await listed()).map(({ name }) => name)).not.toContain('*');
    const session = await surface.session();
    await session.query(`update workers set state = 'stopped', ended_at = now() where id = $1`, [everywhere.id]);
  });

  it('comes in pages, each queue once and in order of names', async () => {
    const names = Array.from({ length: 5 }, () => apart().queue).sort();
    for (const [i, name] of names.entries()) await (i % 2 ? pause(name) : submit(name));
    const all = (await listed(2)).map(({ name }) => name);
    expect(new Set(all).size).toBe(all.length);
    // Through a balancer the replicas have other callers too, whose queues come and go.
    const mine = (each: readonly string[]) => each.filter((name) => names.includes(name));
    expect(mine(all)).toEqual(names);
    expect(mine((await listed()).map(({ name }) => name))).toEqual(names);
    const { headers, json } = await surface.send({ path: '/v1/queues?limit=1' });
    expect(headers.link).toBe(`</v1/queues?limit=1&cursor=${json.next}>; rel="next"`);
    const cursors = ['x', '', Buffer.from('Q').toString('base64url'), `${Buffer.from('q').toString('base64')}=`];
    for (const bad of ['limit=0', 'limit=201', 'color=red', ...cursors.map((cursor) => `cursor=${cursor}`)]) {
      expect((await surface.send({ path: `/v1/queues?${bad}` })).status, bad).toBe(422);
    }
  });

  it('tells another organization no numbers, and no queue that only runs name', async () => {
    const [busy, served] = [apart(), apart()];
    await submit(busy.queue);
    await submit(served.queue);
    await Holder.register(served);
    const { token } = await surface.stranger();
    const told = await listed(200, token);
    expect(told.find(({ name }) => name === busy.queue)).toBeUndefined();
    const unknown = { depth: null, depthIsEstimate: false, oldestPendingAt: null, running: null };
    expect(told.find(({ name }) => name === served.queue)).toEqual({
      ...unknown,
      name: served.queue,
      paused: null,
      etag: OPEN,
      workers: 1,
    });
    await pause(busy.queue);
    expect((await listed(200, token)).find(({ name }) => name === busy.queue)).toMatchObject({
      ...unknown,
      paused: { reason: REASON },
    });
  });

  it('marks a depth that was estimated', async () => {
    const own = apart();
    const session = await surface.session();
    await session.query(
      `with made as (
         insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id, created_at)
         select n.id, t.organization_id, t.kind, t.queue, 0, t.labels, t.spec, t.spec_digest, t.origin, t.principal, n.id, t.created_at
         from runs t, lateral (select gen_random_uuid() as id, t.id as like_id from generate_series(1, 1200)) n
         where t.id = $1
         returning *)
       insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority)
       select id, organization_id, created_at, created_at::date, 'pending', queue, 0 from made`,
      [decodeId('run', (await submit(own.queue)).json.id)],
    );
    const queue = await shown(own.queue);
    expect(queue).toMatchObject({ depthIsEstimate: true });
    expect(queue?.depth).toBeGreaterThanOrEqual(1_000);
  });
});

describe('a pause', () => {
  it('and a resume each have a receipt and an entry; said again they answer the same and write nothing', async () => {
    const { queue } = apart();
    const paused = await pause(queue);
    expect(paused.status).toBe(200);
    expect(paused.json).toMatchObject({ name: queue, paused: { at: INSTANT, reason: REASON } });
    const again = await pause(queue);
    expect(again.json).toEqual(paused.json);
    expect(again.headers['audit-receipt']).toBe(paused.headers['audit-receipt']);
    const resumed = await put(queue, { paused: false, reason: 'it has moved' });
    expect(resumed.json).toMatchObject({ name: queue, paused: null });
    const onceMore = await resume(queue);
    expect(onceMore.headers['audit-receipt']).toBe(resumed.headers['audit-receipt']);
    const { by, byName } = paused.json.paused;
    const entry = { object: queue, principal: by, principalName: byName };
    expect(await entriesOf(queue)).toEqual([
      expect.objectContaining({ action: 'queue.paused', reason: REASON, ...entry }),
      expect.objectContaining({ action: 'queue.resumed', reason: 'it has moved', ...entry }),
    ]);
    const second = await pause(queue, 'again');
    expect(second.json.paused).toMatchObject({ reason: 'again' });
    expect((await pause(queue, 'again')).headers['audit-receipt']).toBe(second.headers['audit-receipt']);
    expect((await resume(queue)).json.paused).toBeNull();
    expect(await entriesOf(queue)).toHaveLength(4);
    const { json } = await surface.send({ path: `/v1/audit?chain=installation&object=${queue}` });
    expect(json.items).toHaveLength(4);
  });

  it('for another reason takes the place of the one before: another entry and receipt, of who asked and when', async () => {
    const { queue } = apart();
    const first = await pause(queue, 'first');
    const second = await pause(queue, 'second');
    expect(second.json.paused).toMatchObject({ at: INSTANT, reason: 'second' });
    expect(second.json.paused.at >= first.json.paused.at).toBe(true);
    expect(second.headers['audit-receipt']).not.toBe(first.headers['audit-receipt']);
    expect((await pause(queue, 'second')).headers['audit-receipt']).toBe(second.headers['audit-receipt']);
    expect((await shown(queue))?.paused).toEqual(second.json.paused);
    const entry = { action: 'queue.paused', principal: second.json.paused.by };
    expect(await entriesOf(queue)).toEqual([
      expect.objectContaining({ ...entry, reason: 'first' }),
      expect.objectContaining({ ...entry, reason: 'second' }),
    ]);
  });

  it('that nobody made is undone without a word: no receipt, no entry', async () => {
    const { queue } = apart();
    const { status, headers, json } = await resume(queue);
    expect({ status, receipt: headers['audit-receipt'], paused: json.paused }).toEqual({
      status: 200,
      receipt: undefined,
      paused: null,
    });
    expect(await entriesOf(queue)).toEqual([]);
    expect(await shown(queue)).toBeUndefined();
  });

  it('keeps runs where they are, lets others be submitted, and what runs goes on', async () => {
    const own = apart();
    const holder = await Holder.register(own);
    const { id } = (await submit(own.queue)).json;
    const hold = await holder.start();
    const { json: first } = await submit(own.queue);
    expect((await pause(own.queue)).json).toMatchObject({ depth: 1, running: 1 });
    const { json: second, status } = await submit(own.queue, { priority: 5 });
    expect(status).toBe(201);
    expect(await claimIfLive(surface.pool, holder.id, [own.queue], 9)).toEqual([]);
    await holder.finish(hold);
    expect((await surface.send({ path: `/v1/runs/${id}` })).json).toMatchObject({ state: 'succeeded' });
    expect(await shown(own.queue)).toMatchObject({ depth: 2, running: 0, paused: { reason: REASON } });
    expect((await surface.send({ method: 'POST', path: `/v1/runs/${first.id}/cancel` })).status).toBe(200);
    await resume(own.queue);
    const claimed = await claimIfLive(surface.pool, holder.id, [own.queue], 9);
    expect(claimed.map(({ runId }) => encodeId('run', runId))).toEqual([second.id]);
  });

  it('is for admins of the installation: another organization is answered 403, and nothing changes', async () => {
    const { queue } = apart();
    const { token } = await surface.stranger();
    for (const json of [{ paused: true, reason: REASON }, { paused: false }]) {
      const { status, json: problem, headers } = await put(queue, json, { token });
      expect({ status, code: problem.code }).toEqual({ status: 403, code: 'forbidden' });
      expect(headers['audit-receipt']).toBeUndefined();
    }
    expect((await put(queue, { paused: true, reason: REASON }, { token: null })).status).toBe(401);
    expect(await shown(queue)).toBeUndefined();
    expect(await entriesOf(queue)).toEqual([]);
  });

  const bad: [what: string, json: unknown, pointer: string][] = [
    ['no word', {}, '/paused'],
    ['a word that is none', { paused: 'true', reason: REASON }, '/paused'],
    ['null', { paused: null, reason: REASON }, '/paused'],
    ['no reason', { paused: true }, '/reason'],
    ['a reason that is null', { paused: true, reason: null }, '/reason'],
    ['an empty reason', { paused: true, reason: '' }, '/reason'],
    ['a blank reason', { paused: true, reason: ' \u00a0' }, '/reason'],
    ['a reason of two lines', { paused: true, reason: 'a\nb' }, '/reason'],
    ['a reason with a line separator', { paused: true, reason: 'a\u2028b' }, '/reason'],
    ['a reason that is too long', { paused: true, reason: 'x'.repeat(501) }, '/reason'],
    ['a reason that is no text', { paused: true, reason: 5 }, '/reason'],
    ['a bad reason of a resume', { paused: false, reason: '' }, '/reason'],
    ['something else', { paused: true, reason: REASON, until: 'noon' }, '/until'],
    ['NUL', { paused: true, reason: 'a\u0000' }, '/reason'],
    ['half a surrogate', { paused: true, reason: 'a\ud800' }, '/reason'],
  ];
  it.each(bad)('with %s is refused', async (_, json, pointer) => {
    const { queue } = apart();
    const answer = await surface.send({ method: 'PUT', path: `/v1/queues/${queue}`, json });
    expect(answer.status, answer.text).toBe(422);
    expect(answer.json.errors).toEqual([expect.objectContaining({ pointer })]);
    expect(await shown(queue)).toBeUndefined();
  });

  it('takes a reason of 500 characters, quotes and all', async () => {
    const { queue } = apart();
    const reason = `"\\'${'ü'.repeat(497)}`;
    expect((await pause(queue, reason)).json.paused).toMatchObject({ reason });
    expect(await entriesOf(queue)).toEqual([expect.objectContaining({ reason })]);
    await resume(queue);
  });

  it.each(['UPPER', '-a', 'a%20b', 'x'.repeat(64), 'a%22b', '*'])('of %s names no queue', async (name) => {
    const { status, json } = await put(name, { paused: true, reason: REASON });
    expect({ status, code: json.code }).toEqual({ status: 404, code: 'not_found' });
  });

  it('takes no query', async () => {
    const { queue } = apart();
    expect((await put(`${queue}?force=1`, { paused: true, reason: REASON })).status).toBe(422);
    expect(await shown(queue)).toBeUndefined();
  });
});

describe('the ETag of a queue', () => {
  const putIf = (match: string, queue: string, json: object) => put(queue, json, { headers: { 'if-match': match } });

  it('is the same where it is listed and where it was put, as long as its pause is, whatever waits there', async () => {
    const { queue } = apart();
    await submit(queue);
    expect(await shown(queue)).toMatchObject({ etag: OPEN });
    const first = await pause(queue, 'first');
    expect(first.headers.etag).toEqual(ETAG);
    expect(first.json.etag).toBe(first.headers.etag);
    await submit(queue);
    const listed = await shown(queue);
    expect(listed).toMatchObject({ etag: first.headers.etag, depth: 2 });
    const second = await pause(queue, 'second');
    expect(second.headers.etag).toEqual(ETAG);
    expect(second.headers.etag).not.toBe(first.headers.etag);
    expect((await resume(queue)).headers.etag).toBe(OPEN);
    expect((await pause(queue, 'first')).headers.etag, 'another pause').not.toBe(first.headers.etag);
  });

  it('in If-Match, alone, in a list, or as a star, lets a change through', async () => {
    const { queue } = apart();
    const { status, headers } = await putIf(OPEN, queue, { paused: true, reason: 'a' });
    expect(status).toBe(200);
    const list = `W/"x", "a,b",, ${headers.etag} ,`;
    expect((await putIf(list, queue, { paused: true, reason: 'b' })).json.paused.reason).toBe('b');
    const etag = (await shown(queue))?.etag;
    expect((await putIf('*', queue, { paused: true, reason: 'c' })).json.paused.reason).toBe('c');
    const other = await putIf(String(etag), queue, { paused: false });
    expect(other.status).toBe(412);
    expect((await putIf('*', queue, { paused: false })).json.paused).toBeNull();
  });

  it('that is another than If-Match says refuses whatever was asked, and nothing changes', async () => {
    const { queue } = apart();
    const paused = await pause(queue, 'first');
    const etag = paused.headers.etag ?? '';
    for (const match of [OPEN, '""', '"x", "y"', `W/${etag}`, etag.toUpperCase().replace(/[0-9]/g, '9')]) {
      for (const json of [{ paused: true, reason: 'first' }, { paused: true, reason: 'second' }, { paused: false }]) {
        const answer = await putIf(match, queue, json);
        expect([answer.status, answer.json.code], match).toEqual([412, 'precondition_failed']);
        expect(answer.json.detail).toBe(`queue ${queue} is paused: first; its ETag is ${etag}`);
        expect(answer.headers['audit-receipt']).toBeUndefined();
      }
    }
    expect(await shown(queue)).toMatchObject({ paused: paused.json.paused });
    expect(await entriesOf(queue)).toHaveLength(1);
    await resume(queue);
    expect((await putIf(etag, queue, { paused: false })).json).toMatchObject({
      code: 'precondition_failed',
      detail: `queue ${queue} is not paused; its ETag is "open"`,
    });
  });

  it.each([
    '',
    'open',
    '"open',
    'w/"x"',
    '*, "open"',
    '"a" "b"',
    ',',
    `${'"a",'.repeat(1_000)}x`,
    `"a"${' '.repeat(3_000)}x`,
  ])('is not what If-Match has: %s', async (match) => {
    const { queue } = apart();
    const { status, json } = await putIf(match, queue, { paused: true, reason: REASON });
    expect({ status, code: json.code }).toEqual({ status: 400, code: 'malformed_request' });
    expect(await shown(queue)).toBeUndefined();
  });

  it('of two who change what both saw lets one through', async () => {
    const { queue } = apart();
    const etag = (await pause(queue)).headers.etag ?? '';
    const answers = await Promise.all(['a', 'b'].map((reason) => putIf(etag, queue, { paused: true, reason })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412]);
    const winner = answers.find(({ status }) => status === 200);
    expect((await shown(queue))?.paused).toEqual(winner?.json.paused);
    expect(await entriesOf(queue)).toHaveLength(2);
  });
});
