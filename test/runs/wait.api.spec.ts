/** `Prefer: wait=N` on what makes a run: the answer comes with the end, or when the time is over. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { type Answer, openSurface, type Surface } from '../send.js';
import { until } from '../server.js';
import { Holder } from './holder.fixture.js';

let surface: Surface;
beforeEach(async () => {
  surface = await openSurface();
});
afterEach(() => surface.close());

function submit(prefer: string | undefined, headers: Record<string, string> = {}, body: object = {}): Promise<Answer> {
  const json = { kind: 'noop', queue: surface.queue, ...body };
  const wish: Record<string, string> = prefer === undefined ? {} : { prefer };
  return surface.send({ method: 'POST', path: '/v1/runs', json, headers: { ...headers, ...wish } });
}

/** The run of this surface's queue that waits to be claimed, once it is there. */
const waiting = () =>
  until('the run is made', async () => {
    const path = `/v1/runs?queue=${surface.queue}&state=pending`;
    const { items } = (await surface.send({ path })).json;
    return items[0]?.id as string | undefined;
  });

describe('a caller who prefers to wait', () => {
  it('gets the run as it ended, wherever that was written, with both receipts', async () => {
    const answer = submit('wait=30');
    await waiting();
    const holder = await Holder.register(surface);
    await holder.finish(await holder.start());
    const { status, headers, json } = await answer;
    expect(status).toBe(201);
    expect(headers['preference-applied']).toBe('wait=30');
    expect(headers.location).toBe(`/v1/runs/${json.id}`);
    expect(json).toMatchObject({ state: 'succeeded', end: { code: 'ok' } });
    expect(headers['audit-receipt']).toBe(json.receipts.submitted);
    expect(json.receipts.ended).not.toBeNull();
    expect(json).toEqual((await surface.send({ path: `/v1/runs/${json.id}` })).json);
  });

  it('gets the run as it is when the time is over', async () => {
    const answer = submit('wait=1');
    await waiting();
    const holder = await Holder.register(surface);
    await holder.start();
    const { status, headers, json } = await answer;
    expect(status).toBe(201);
    expect(headers['preference-applied']).toBe('wait=1');
    expect(json).toMatchObject({ state: 'running', fence: 1, end: null });
  });

  it('with a key that was answered before waits for that run: 200', async () => {
    const headers = { 'idempotency-key': newId() };
    const first = await submit(undefined, headers);
    expect(first.headers['preference-applied']).toBeUndefined();
    const answer = submit('wait=30', headers);
    const holder = await Holder.register(surface);
    await holder.finish(await holder.start());
    const { status, headers: got, json } = await answer;
    expect(status).toBe(200);
    expect(got['preference-applied']).toBe('wait=30');
    expect(got['idempotency-replayed']).toBe('true');
    expect(json).toMatchObject({ id: first.json.id, state: 'succeeded' });
    const ended = await submit('wait=60', headers);
    expect(ended.json).toEqual(json);
  });

  it('for a rerun is answered like for a submit', async () => {
    const { id } = (await submit(undefined)).json;
    await surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
    const headers = { prefer: 'wait=30' };
    const answer = surface.send({ method: 'POST', path: `/v1/runs/${id}/rerun`, headers });
    await waiting();
    const holder = await Holder.register(surface);
    await holder.finish(await holder.start());
    expect((await answer).json).toMatchObject({ state: 'succeeded', rerunOf: id });
    expect((await answer).headers['preference-applied']).toBe('wait=30');
  });

  it('in words that can’t be understood is answered at once', async () => {
    const { status, headers, json } = await submit('wait=soon, respond-async');
    expect(status).toBe(201);
    expect(headers['preference-applied']).toBeUndefined();
    expect(json.state).toBe('pending');
  });
});

describe('many who wait', () => {
  it('are answered all alike when they wait for one run', async () => {
    const headers = { 'idempotency-key': newId() };
    const answers = Array.from({ length: 5 }, () => submit('wait=30', headers));
    await waiting();
    const holder = await Holder.register(surface);
    await holder.finish(await holder.start());
    const all = await Promise.all(answers);
    expect(all.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 201]);
    expect(new Set(all.map(({ text }) => text)).size).toBe(1);
  });
});
