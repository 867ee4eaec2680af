/** Many submits in one request: each is answered by itself, and all that are taken are made together. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import { type Answer, openSurface, type Request, type Surface } from '../send.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

/** A queue for what must not be made. */
const REFUSED = `q-${newId()}`;

const noop = (over: object = {}) => ({ kind: 'noop', queue: surface.queue, ...over });

const bearing = (key?: string): Record<string, string> => (key === undefined ? {} : { 'idempotency-key': key });

function batch(runs: unknown, rest: Partial<Request> & { readonly key?: string } = {}): Promise<Answer> {
  const { key, ...others } = rest;
  return surface.send({ method: 'POST', path: '/v1/runs/batch', json: { runs }, headers: bearing(key), ...others });
}

function submit(json: object, key?: string): Promise<Answer> {
  return surface.send({ method: 'POST', path: '/v1/runs', json, headers: bearing(key) });
}

const show = async (id: string) => (await surface.send({ path: `/v1/runs/${id}` })).json;
const statuses = (answer: Answer): number[] => answer.json.items.map((item: { status: number }) => item.status);
const ids = (answer: Answer): string[] => answer.json.items.map((item: { run?: { id: string } }) => item.run?.id);

async function countRuns(queue = surface.queue): Promise<number> {
  const session = await surface.session();
  const { rows } = await session.query('select count(*)::integer as n from runs where queue = $1', [queue]);
  return rows[0].n;
}

async function keyCount(key: string): Promise<number> {
  const session = await surface.session();
  const { rows } = await session.query('select count(*)::integer as n from idempotency_keys where key = $1', [key]);
  return rows[0].n;
}

it('makes each run, in the order given, with a receipt of its own that holds; the answer bears the newest', async () => {
  const names = Array.from({ length: 5 }, (_, i) => `r${i}`);
  const answer = await batch(names.map((name) => noop({ name })));
  expect(answer.status, answer.text).toBe(200);
  expect(statuses(answer)).toEqual([201, 201, 201, 201, 201]);
  const runs = answer.json.items.map((item: { run: Record<string, unknown> }) => item.run);
  expect(runs.map((run: { name: string }) => run.name)).toEqual(names);
  expect(new Set(ids(answer)).size).toBe(5);
  for (const run of runs) {
    const { spec: _, output: __, ...summary } = await show(run.id);
    expect(run).toEqual(summary);
    const { json } = await surface.send({ path: `/v1/audit/receipts/${run.receipts.submitted}` });
    expect(json).toMatchObject({ holds: true });
  }
  const receipts = runs.map((run: { receipts: { submitted: string } }) => run.receipts.submitted);
  const seqs = receipts.map((receipt: string) => Number(receipt.split(':')[1]));
  expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  expect(answer.headers['audit-receipt']).toBe(receipts[4]);
  expect(answer.headers['idempotency-replayed']).toBeUndefined();
});

it('F161 1,000 runs are one request and one transaction', async () => {
  const queue = `q-${newId()}`;
  const answer = await batch(Array.from({ length: 1_000 }, () => noop({ queue })));
  expect(answer.status, answer.text.slice(0, 300)).toBe(200);
  expect(new Set(statuses(answer))).toEqual(new Set([201]));
  expect(new Set(ids(answer)).size).toBe(1_000);
  const session = await surface.session();
  const { rows } = await session.query('select count(distinct xmin::text)::integer as n from runs where queue = $1', [
    queue,
  ]);
  expect(rows).toEqual([{ n: 1 }]);
});

describe('an item that can’t be taken', () => {
  it('is a problem of its own, with pointers into it, and the others are made', async () => {
    const answer = await batch([
      noop(),
      noop({ priority: 1_000, surprise: 1 }),
      null,
      { kind: 'command', spec: { argv: [] } },
      noop({ idempotencyKey: 'st:mine' }),
      noop({ idempotencyKey: 7, labels: { 'no key': 'x' } }),
      noop(),
    ]);
    expect(answer.status).toBe(200);
    expect(statuses(answer)).toEqual([201, 422, 422, 422, 422, 422, 201]);
    const pointers = answer.json.items.map(({ problem }: { problem?: { errors: { pointer: string }[] } }) =>
      problem?.errors.map(({ pointer }) => pointer).sort(),
    );
    expect(pointers.slice(1, 6)).toEqual([
      ['/priority', '/surprise'],
      [''],
      ['/spec/argv'],
      ['/idempotencyKey'],
      ['/idempotencyKey', '/labels/no key'],
    ]);
    expect(answer.json.items[1].problem).toMatchObject({
      type: 'urn:capstan:problem:invalid_input',
      title: 'The input is invalid',
      status: 422,
      code: 'invalid_input',
      requestId: answer.headers['x-request-id'],
    });
  });

  it('is told the same when it is the only kind: then the whole is 422, and nothing was made', async () => {
    const before = await countRuns();
    const answer = await batch([noop({ priority: 'high' }), noop({ kind: 'surprise' })], { key: newId() });
    expect(answer.status).toBe(422);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(statuses(answer)).toEqual([422, 422]);
    expect(answer.headers['audit-receipt']).toBeUndefined();
    expect(await countRuns()).toBe(before);
  });

  it('clashes by itself: an id that is taken, a key that came with another submit', async () => {
    const [id, key] = [newId(), newId()];
    await submit(noop({ id }));
    await submit(noop({ name: 'first' }), key);
    const answer = await batch([
      noop({ id, kind: 'command', spec: { argv: ['x'] } }),
      noop({ name: 'second', idempotencyKey: key }),
      noop(),
    ]);
    expect(statuses(answer)).toEqual([409, 422, 201]);
    expect(answer.json.items[0].problem.code).toBe('id_conflict');
    expect(answer.json.items[1].problem.code).toBe('idempotency_key_reused');
  });
});

describe('a body that is no batch is refused as a whole', () => {
  const bodies: [string, unknown, string][] = [
    ['no runs', {}, '/runs'],
    ['no list', { runs: {} }, '/runs'],
    ['an empty list', { runs: [] }, '/runs'],
    ['1,001 runs', { runs: Array(1_001).fill({ kind: 'noop', queue: REFUSED }) }, '/runs'],
    ['another member', { runs: [{ kind: 'noop', queue: REFUSED }], dryRun: true }, '/dryRun'],
  ];
  it.each(bodies)('%s', async (_, json, pointer) => {
    const answer = await surface.send({ method: 'POST', path: '/v1/runs/batch', json });
    expect(answer.status).toBe(422);
    expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(answer.json.errors.map((error: { pointer: string }) => error.pointer)).toEqual([pointer]);
    expect(await countRuns(REFUSED)).toBe(0);
  });

  it('a body of up to 16 MiB is taken, a larger one is 413; no other route takes more than 1 MiB', async () => {
    const filler = (bytes: number) => ({ runs: [noop({ labels: { x: 'y'.repeat(bytes) } }), noop()] });
    const large = await surface.send({ method: 'POST', path: '/v1/runs/batch', json: filler(15 * 1024 * 1024) });
    expect(statuses(large)).toEqual([422, 201]);
    for (const overTheWire of [false, true]) {
      const json = filler(16 * 1024 * 1024);
      const answer = await surface.send({ method: 'POST', path: '/v1/runs/batch', json, overTheWire });
      expect([answer.status, answer.json.code]).toEqual([413, 'body_too_large']);
      const alone = noop({ labels: { x: 'y'.repeat(1024 * 1024) } });
      for (const path of ['/v1/runs', '/v1/runs/cancel', '/v1/runs/rerun']) {
        expect((await surface.send({ method: 'POST', path, json: alone, overTheWire })).status).toBe(413);
      }
    }
  });
});

describe('an item’s own key', () => {
  it('S4-110 F093 gives the same run in a batch and alone, whichever comes first', async () => {
    const [first, second] = [`é-${newId()}`, newId()];
    const wire = Buffer.from(first).toString('latin1');
    const alone = await submit(noop({ name: 'a' }), wire);
    const both = await batch([
      { ...noop({ name: 'a' }), idempotencyKey: first },
      { idempotencyKey: second, ...noop({ name: 'b' }) },
    ]);
    expect(statuses(both)).toEqual([200, 201]);
    expect(ids(both)[0]).toBe(alone.json.id);
    expect(both.headers['idempotency-replayed']).toBeUndefined();
    const again = await submit(noop({ name: 'b' }), second);
    expect([again.status, again.json.id]).toEqual([200, ids(both)[1]]);
    expect(again.headers['idempotency-replayed']).toBe('true');
    const replay = await batch([noop({ name: 'b', idempotencyKey: second })]);
    expect([statuses(replay), ids(replay)]).toEqual([[200], [again.json.id]]);
    expect(replay.headers['audit-receipt']).toBe(again.headers['audit-receipt']);
    expect(replay.headers['idempotency-replayed']).toBe('true');
  });

  it('twice in one batch makes one run, and so does an id', async () => {
    const [key, id] = [newId(), encodeId('run', newId())];
    const before = await countRuns();
    const answer = await batch([
      noop({ idempotencyKey: key }),
      noop({ idempotencyKey: key }),
      noop({ idempotencyKey: key, name: 'other' }),
      noop({ id }),
      noop({ id }),
    ]);
    expect(statuses(answer)).toEqual([201, 200, 422, 201, 200]);
    expect(ids(answer)[0]).toBe(ids(answer)[1]);
    expect(ids(answer).slice(3)).toEqual([id, id]);
    expect(await countRuns()).toBe(before + 2);
  });

  it('is tried for whoever was folded behind one that was refused', async () => {
    const [id, used] = [newId(), newId()];
    await submit(noop({ name: 'first' }), used);
    const answer = await batch([noop({ id, idempotencyKey: used }), noop({ id })], { key: newId() });
    expect(statuses(answer)).toEqual([422, 201]);
    expect(decodeId('run', ids(answer)[1] ?? '')).toBe(id);
  });

  it('S4-111 has 1 to 255 bytes and no control characters', async () => {
    const longest = newId().padEnd(255, 'k');
    const keys = [longest, `${longest}k`, `é${longest.slice(1)}`, '', 'a\nb', null];
    const answer = await batch(keys.map((idempotencyKey) => noop({ idempotencyKey })));
    expect(statuses(answer)).toEqual([201, 422, 422, 422, 422, 201]);
  });

  it('whose run was removed is 410 by itself, and makes no new run', async () => {
    const key = newId();
    await batch([noop({ idempotencyKey: key })]);
    const session = await surface.session();
    await session.query('update idempotency_keys set run_id = $2 where key = $1', [key, newId()]);
    const answer = await batch([noop({ idempotencyKey: key }), noop()]);
    expect(statuses(answer)).toEqual([410, 201]);
    expect(answer.json.items[0].problem.code).toBe('run_removed');
  });
});

describe('a key of the whole', () => {
  it('S4-110 gives the same answer again: the runs as they are now, each 200', async () => {
    const [key, used] = [newId(), newId()];
    await submit(noop({ name: 'before' }), used);
    const runs = [
      noop(),
      noop({ priority: 1_000 }),
      noop({ name: 'before', idempotencyKey: used }),
      noop({ name: 'other', idempotencyKey: used }),
      noop({ idempotencyKey: newId() }),
      noop({ id: newId() }),
    ];
    const first = await batch(runs, { key });
    expect(first.status, first.text).toBe(200);
    expect(statuses(first)).toEqual([201, 422, 200, 422, 201, 201]);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    const before = await countRuns();
    await surface.send({ method: 'POST', path: `/v1/runs/${ids(first)[0]}/cancel` });
    const again = await batch(runs, { key });
    expect(again.status).toBe(200);
    expect(statuses(again)).toEqual([200, 422, 200, 422, 200, 200]);
    expect(ids(again)).toEqual(ids(first));
    expect(again.json.items[0].run.state).toBe('canceled');
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
    expect(await countRuns()).toBe(before);
  });

  it('F095 with another body is 422, and so it is with another route', async () => {
    const key = newId();
    expect((await batch([noop()], { key })).status).toBe(200);
    const other = await batch([noop(), noop()], { key });
    expect([other.status, other.json.code]).toEqual([422, 'idempotency_key_reused']);
    expect((await submit(noop(), key)).json.code).toBe('idempotency_key_reused');
    const item = await batch([noop({ idempotencyKey: key }), noop()]);
    expect(statuses(item)).toEqual([422, 201]);
    expect((await batch([noop()], { key: 'st:1' })).json.code).toBe('idempotency_key_invalid');
  });

  it('S4-110 the same key of two organizations makes two batches', async () => {
    const key = newId();
    const { token } = await surface.stranger();
    const [ours, theirs] = await Promise.all([batch([noop()], { key }), batch([noop()], { key, token })]);
    expect([statuses(ours), statuses(theirs)]).toEqual([[201], [201]]);
    expect(ids(ours)).not.toEqual(ids(theirs));
  });

  it('S4-112 without one each batch makes new runs', async () => {
    const [one, other] = [await batch([noop()]), await batch([noop()])];
    expect(ids(one)).not.toEqual(ids(other));
  });

  it('F095 is not kept for a batch of which nothing was taken: the corrected one is', async () => {
    const [key, id] = [newId(), newId()];
    expect((await batch([noop({ priority: 1_000 })], { key })).status).toBe(422);
    await submit(noop({ id }));
    const clash = noop({ id, kind: 'command', spec: { argv: ['x'] } });
    for (const runs of [[clash], [clash, noop({ priority: 'x' })]]) {
      const refused = await batch(runs, { key });
      expect([refused.status, statuses(refused)[0]]).toEqual([422, 409]);
      expect(await keyCount(key)).toBe(0);
    }
    expect(statuses(await batch([noop()], { key }))).toEqual([201]);
  });

  it('of a batch whose runs were removed says so of each, and makes none', async () => {
    const key = newId();
    const runs = [noop(), noop()];
    const first = await batch(runs, { key });
    const session = await surface.session();
    await session.query('update idempotency_keys set run_ids[1] = $2 where key = $1', [key, newId()]);
    const before = await countRuns();
    for (let time = 0; time < 2; time += 1) {
      const again = await batch(runs, { key });
      expect(statuses(again)).toEqual([410, 200]);
      expect(ids(again)[1]).toBe(ids(first)[1]);
    }
    await session.query('update idempotency_keys set run_ids = array[$2::uuid, $3::uuid] where key = $1', [
      key,
      newId(),
      newId(),
    ]);
    for (let time = 0; time < 2; time += 1) {
      const gone = await batch(runs, { key });
      expect([gone.status, statuses(gone)]).toEqual([422, [410, 410]]);
    }
    expect(await countRuns()).toBe(before);
  });

  it('F093 30 at once with one key make one batch, and every answer carries its runs', async () => {
    const [key, queue] = [newId(), `q-${newId()}`];
    const runs = Array.from({ length: 7 }, () => noop({ queue }));
    const answers = await Promise.all(Array.from({ length: 30 }, () => batch(runs, { key, overTheWire: true })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map((answer) => ids(answer).join())).size).toBe(1);
    expect(answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined)).toHaveLength(1);
    expect(await countRuns(queue)).toBe(7);
  });

  it('F093 of two batches at once with one key, one is made and the other refused', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [key, queue] = [newId(), `q-${newId()}`];
      const answers = await Promise.all([
        batch([noop({ queue })], { key }),
        batch([noop({ queue }), noop({ queue })], { key }),
      ]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
      const made = answers.find(({ status }) => status === 200);
      expect(await countRuns(queue)).toBe(made?.json.items.length);
    }
  });
});

it('another organization’s runs are neither shown nor told of by their ids', async () => {
  const id = newId();
  await submit(noop({ id }));
  const { token } = await surface.stranger();
  const answer = await batch([noop({ id }), noop()], { token });
  expect(statuses(answer)).toEqual([409, 201]);
  expect(answer.json.items[0].problem).toMatchObject({ code: 'id_conflict', detail: expect.not.stringContaining(id) });
});
