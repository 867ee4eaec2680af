/** Why a run isn't running, as its organization is told: each reason by an example, and nothing of anybody else's runs. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import { startIfHeld } from '../../src/runs/claim.sql.js';
import { promoteDue } from '../../src/runs/pulse.sql.js';
import { openLocalSurface, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let root: Surface;
/** The surface with a queue of its own for each test. */
let surface: Surface;
beforeAll(async () => {
  // Elsewhere others register workers of all queues, and janitors look after leases.
  root = await openLocalSurface();
});
beforeEach(() => {
  surface = { ...root, queue: `q-${newId()}` };
});
afterAll(() => root.close());

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/;

async function submit(body: object = {}, token = surface.token): Promise<string> {
  const json = { kind: 'command', spec: { argv: ['true'] }, queue: surface.queue, ...body };
  const answer = await surface.send({ method: 'POST', path: '/v1/runs', json, token });
  expect(answer.status, answer.text).toBe(201);
  return answer.json.id;
}

async function why(id: string, token = surface.token) {
  const answer = await surface.send({ path: `/v1/runs/${id}/why`, token });
  expect(answer.status, answer.text).toBe(200);
  expect(answer.json).toEqual({
    id,
    state: expect.any(String),
    queue: surface.queue,
    isClaimable: answer.json.reasons.length === 0,
    reasons: answer.json.reasons,
  });
  return answer.json;
}
const codes = async (id: string): Promise<string[]> =>
  (await why(id)).reasons.map(({ code }: { code: string }) => code);
const reason = async (id: string, code: string) =>
  (await why(id)).reasons.find((one: { code: string }) => one.code === code);

async function change(holder: Holder, set: string): Promise<void> {
  await (await surface.session()).query(`update workers set ${set} where id = $1`, [holder.id]);
}
const pause = (paused: boolean) =>
  surface.send({
    method: 'PUT',
    path: `/v1/queues/${surface.queue}`,
    json: paused ? { paused, reason: 'freeze "until" Monday' } : { paused },
  });

describe('a run that nobody serves', () => {
  it('is told that no worker is connected, whatever was connected before', async () => {
    const id = await submit();
    expect((await why(id)).reasons).toEqual([
      {
        code: 'no_worker',
        detail: 'no worker is connected: none that has slots holds a lease',
        remedy: 'start one: capstan serve, or capstan worker',
        until: null,
      },
    ]);
    const holder = await Holder.register(surface);
    expect(await codes(id)).toEqual([]);
    for (const set of [`lease_until = now() - interval '1 second'`, 'slots = 0']) {
      await change(holder, `lease_until = now() + interval '1 hour', slots = 9`);
      await change(holder, set);
      expect(await codes(id), set).toEqual(['no_worker']);
    }
    await change(holder, `lease_until = now() + interval '1 hour', slots = 9, state = 'stopped', ended_at = now()`);
    expect(await codes(id)).toEqual(['no_worker']);
  });

  it('is told which queues are served', async () => {
    const id = await submit();
    const [other, third] = [`q-${newId()}`, `q-${newId()}`].sort();
    for (const queue of [third, other, third]) await Holder.register({ ...surface, queue: queue ?? '' });
    expect(await reason(id, 'not_served')).toEqual({
      code: 'not_served',
      detail: `no connected worker serves queue ${surface.queue}; they serve ${other}, ${third}`,
      remedy: expect.stringContaining(`CAPSTAN_QUEUES has ${surface.queue}`),
      until: null,
      queues: [other, third],
    });
  });
});

describe('a run that waits', () => {
  it('is claimable, without any reason, when a worker with a free slot is there', async () => {
    const id = await submit();
    await Holder.register(surface);
    expect(await why(id)).toMatchObject({ state: 'pending', isClaimable: true, reasons: [] });
  });

  it('is told who drains, and how to put one back that a person drained', async () => {
    const id = await submit();
    const holder = await Holder.register(surface);
    const worker = encodeId('wrk', holder.id);
    expect((await surface.send({ method: 'POST', path: `/v1/workers/${worker}/drain` })).status).toBe(200);
    expect((await why(id)).reasons).toEqual([
      {
        code: 'workers_draining',
        detail: `no worker that serves queue ${surface.queue} takes new runs; draining: test-holder`,
        remedy: `put one back: POST /v1/workers/${worker}/undrain; or start another worker that serves it`,
        until: null,
        workers: [{ id: worker, name: 'test-holder' }],
      },
    ]);
    await change(holder, 'drained_by = null');
    expect(await reason(id, 'workers_draining')).toMatchObject({ remedy: 'start another worker that serves it' });
    await Holder.register(surface);
    expect(await codes(id)).toEqual([]);
  });

  it('is told whose runs have the slots, and of runs of others only how many', async () => {
    const holder = await Holder.register(surface);
    await change(holder, 'slots = 2');
    const stranger = await surface.stranger();
    const mine = await submit();
    const theirs = await submit({}, stranger.token);
    await holder.start();
    await holder.start();
    const id = await submit();
    const busy = await why(id);
    expect(busy.reasons).toEqual([
      {
        code: 'slots_busy',
        detail: `every slot of the workers that serve queue ${surface.queue} is busy: test-holder (2 of 2)`,
        remedy: expect.stringContaining('wait until one of their runs ends'),
        until: null,
        workers: [{ id: encodeId('wrk', holder.id), name: 'test-holder', slots: 2, held: 2, runs: [mine] }],
      },
    ]);
    expect(JSON.stringify(busy)).not.toContain(theirs);
    const last = await submit();
    expect(await codes(last)).toEqual(['slots_busy', 'others_first']);
    const told = await why(await submit({}, stranger.token), stranger.token);
    expect(told.reasons[0].workers[0]).toMatchObject({ held: 2, runs: [theirs] });
    expect(JSON.stringify(told)).not.toContain(mine);
  });

  it('is told how many go first, by priority and by arrival, until there are slots for all of them', async () => {
    const holder = await Holder.register(surface);
    await change(holder, 'slots = 2');
    const first = await submit();
    const urgent = await submit({ priority: 5 });
    const third = await submit();
    expect([await codes(first), await codes(urgent)]).toEqual([[], []]);
    expect((await why(third)).reasons).toEqual([
      {
        code: 'others_first',
        detail: '2 runs go first, by priority or for having been there before',
        remedy: expect.stringContaining('higher priority'),
        until: null,
        ahead: 2,
        isAtLeast: false,
      },
    ]);
    await change(holder, 'slots = 3');
    expect(await codes(third)).toEqual([]);
  });

  it('is told at least how many, where very many go first', async () => {
    const holder = await Holder.register(surface);
    await change(holder, 'slots = 1');
    await Promise.all(Array.from({ length: 120 }, () => submit()));
    expect(await reason(await submit({ priority: -1 }), 'others_first')).toMatchObject({
      detail: 'at least 100 runs go first, by priority or for having been there before',
      ahead: 100,
      isAtLeast: true,
    });
  });
});

describe('a run that waits, whatever it waits for,', () => {
  it('is told of a pause: since when, by whom, why, and how it ends', async () => {
    const id = await submit();
    const paused = (await pause(true)).json.paused;
    expect(await reason(id, 'queue_paused')).toEqual({
      code: 'queue_paused',
      detail: `queue ${surface.queue} is paused since ${paused.at} by ${paused.byName}: "freeze \\"until\\" Monday"`,
      remedy: `an admin of the installation resumes it: PUT /v1/queues/${surface.queue} {"paused": false}`,
      until: null,
    });
    await pause(false);
    expect(await codes(id)).not.toContain('queue_paused');
  });

  it('is told until when it is not due, also while nobody has found yet that it is', async () => {
    await pause(true);
    const notBefore = new Date(Date.now() + 3_600_000).toISOString();
    const id = await submit({ notBefore });
    expect(await reason(id, 'not_before')).toMatchObject({
      until: notBefore,
      detail: expect.stringContaining(`submitted for ${notBefore}`),
    });
    const session = await surface.session();
    await session.query(`update live_runs set not_before = now() - interval '1 second' where run_id = $1`, [
      decodeId('run', id),
    ]);
    expect(await codes(id)).toContain('not_before');
    await promoteDue(surface.pool, 1_000);
    expect(await codes(id)).not.toContain('not_before');
  });

  it('is told everything that is in its way, not only the first', async () => {
    await pause(true);
    const id = await submit({ notBefore: new Date(Date.now() + 3_600_000).toISOString() });
    const all = await codes(id);
    expect(all.slice(0, 2)).toEqual(['not_before', 'queue_paused']);
    expect(all).toHaveLength(3);
  });
});

describe('a run that waits no more', () => {
  it('is told only that it was taken, then that it runs, and that its cancel was requested', async () => {
    const holder = await Holder.register(surface);
    const id = await submit();
    const hold = await holder.claim();
    expect((await why(id)).reasons).toEqual([
      {
        code: 'not_pending',
        detail: expect.stringMatching(`^it was taken by worker test-holder at ${INSTANT.source}$`),
        remedy: 'nothing is to be done: it starts in a moment',
        until: null,
      },
    ]);
    await startIfHeld(surface.pool, holder.id, [hold]);
    await pause(true);
    expect((await why(id)).reasons).toMatchObject([
      { code: 'not_pending', detail: expect.stringMatching(`^it runs on worker test-holder since ${INSTANT.source}$`) },
    ]);
    expect((await surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` })).status).toBe(202);
    expect(await codes(id)).toEqual(['not_pending', 'cancel_requested']);
    await holder.finish(hold);
    expect((await why(id)).reasons).toEqual([
      {
        code: 'not_pending',
        detail: expect.stringMatching(`^it has ended succeeded at ${INSTANT.source} \\(ok: exit code 0\\)$`),
        remedy: `an end never changes; run it again: POST /v1/runs/${id}/rerun`,
        until: null,
      },
    ]);
  });

  it.each([
    ['is over', `lease_until = now() - interval '1 second'`],
    ['ended with its life', `state = 'stopped', ended_at = now()`],
  ])('is told that the lease of who has it %s', async (_, set) => {
    const holder = await Holder.register(surface);
    const id = await submit();
    await holder.start();
    await change(holder, set);
    expect((await why(id)).reasons).toMatchObject([
      {
        code: 'not_pending',
        detail: expect.stringMatching(
          `^it runs on worker test-holder since .*, whose lease ended at ${INSTANT.source}$`,
        ),
        remedy: expect.stringContaining('interrupted'),
      },
    ]);
  });

  it.each(['held', 'parked'])('because it is %s is told so, and what else is in its way', async (state) => {
    const id = await submit();
    await pause(true);
    const session = await surface.session();
    await session.query('update live_runs set state = $2 where run_id = $1', [decodeId('run', id), state]);
    expect((await codes(id)).slice(0, 2)).toEqual(['not_pending', 'queue_paused']);
    expect(await why(id)).toMatchObject({ state, isClaimable: false });
  });
});

it('what the caller may not know of is not there: 404, and a query is refused: 422', async () => {
  const id = await submit();
  const { token } = await surface.stranger();
  for (const [path, rest, status] of [
    [`/v1/runs/${encodeId('run', newId())}/why`, {}, 404],
    ['/v1/runs/nothing/why', {}, 404],
    [`/v1/runs/${id}/why`, { token }, 404],
    [`/v1/runs/${id}/why`, { token: null }, 401],
    [`/v1/runs/${id}/why?verbose=1`, {}, 422],
  ] as const) {
    expect((await surface.send({ path, ...rest })).status, path).toBe(status);
  }
  expect((await surface.send({ path: `/v1/runs/${decodeId('run', id)}/why` })).json).toMatchObject({ id });
});
