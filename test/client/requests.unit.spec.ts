/** Requests: sent again where that is safe and may help, refused in words, ended by a signal. */
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { Capstan, CapstanProblem, NoConnection, UnexpectedAnswer } from '../../src/client/client.js';
import { rawClient } from '../../src/client/raw.js';
import { realTiming } from '../../src/client/timing.js';
import { Transport } from '../../src/client/transport.js';
import { type Asked, problem, RUN_ID, runJson, standIn } from '../cli/stand-in.fixture.js';
import { against, inTurn, refusalOf, SILENT, TOKEN } from './client.fixture.js';

const NOOP = { kind: 'noop' } as const;
const AT_ONCE = { headers: { 'retry-after': '0' } };
const page = (status: number) => ({ status, headers: { 'content-type': 'text/html' }, body: Buffer.from('<html>…') });
const made = { status: 201, body: runJson() };
const keysOf = (asked: readonly Asked[]) => asked.map(({ headers }) => headers['idempotency-key']);

describe('a request', () => {
  it.each([429, 502, 503, 504])('is sent again after a %i', async (status) => {
    await against(inTurn({ ...problem(status, 'unavailable'), ...AT_ONCE }, made), async (capstan, { asked }) => {
      expect(await capstan.submit(NOOP)).toEqual(made.body);
      expect(asked).toHaveLength(2);
    });
  });

  it('is sent again after a connection that was cut, before the answer or in the midst of it', async () => {
    const halfway = { ...made, hangUp: { afterBytes: 20 } };
    await against(inTurn({ hangUp: true }, halfway, made), async (capstan, { asked }) => {
      expect(await capstan.submit(NOOP)).toEqual(made.body);
      expect(asked).toHaveLength(3);
    });
  });

  it('F093 that makes something has one Idempotency-Key in all its tries, and another one than the next request', async () => {
    await against(inTurn({ hangUp: true }, page(502), made), async (capstan, { asked }) => {
      await capstan.submit(NOOP);
      await capstan.submit(NOOP);
      const [first, ...others] = keysOf(asked);
      expect(first).toMatch(/^[0-9a-f-]{36}$/);
      expect(others.slice(0, 2)).toEqual([first, first]);
      expect(others[2]).not.toBe(first);
    });
  });

  it('S4-111 takes the key of its caller, whose characters count as bytes', async () => {
    await against(
      () => made,
      async (capstan, { asked }) => {
        await capstan.submit(NOOP, { idempotencyKey: 'nightly-ü' });
        await capstan.rerun(RUN_ID, { idempotencyKey: 'again' });
        expect(keysOf(asked)).toEqual([Buffer.from('nightly-ü').toString('latin1'), 'again']);
      },
    );
  });

  it('of any route carries a key when it is a POST, by way of raw too', async () => {
    await against(
      () => made,
      async ({ raw }, { asked }) => {
        await raw.POST('/v1/runs', { body: { kind: 'noop' } });
        await raw.POST('/v1/runs', { body: { kind: 'noop' }, params: { header: { 'Idempotency-Key': 'mine' } } });
        await raw.GET('/v1/version');
        expect(keysOf(asked)).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), 'mine', undefined]);
      },
    );
  });

  it('is given up when the server asks for more patience than there is', async () => {
    const busy = { ...problem(503, 'unavailable', { requestId: 'req_1' }), headers: { 'retry-after': '3600' } };
    await against(
      () => busy,
      async (capstan, { asked }) => {
        const error = await refusalOf(capstan.submit(NOOP));
        expect(error).toMatchObject({ status: 503, code: 'unavailable', requestId: 'req_1' });
        expect(asked).toHaveLength(1);
      },
    );
  });

  it('waits as long as Retry-After says, in seconds or until a date', async () => {
    const pauses: number[] = [];
    const timing = {
      monotonicMs: () => 0,
      random: () => 0,
      delay: async (ms: number) => void pauses.push(Math.ceil(ms / 1_000)),
    };
    const until = { 'retry-after': new Date(Date.now() + 9_500).toUTCString() };
    const answers = inTurn(
      { ...problem(429, 'too_many_streams'), headers: { 'retry-after': '7' } },
      { ...problem(503, 'unavailable'), headers: until },
      made,
    );
    const server = await standIn(answers);
    const transport = new Transport({ url: new URL(`${server.url}/`), timing });
    await transport.send(
      () => ({ method: 'GET', path: 'v1/version' }),
      async () => undefined,
    );
    await server.close();
    expect(pauses[0]).toBe(7);
    expect(pauses[1]).toBeGreaterThanOrEqual(7);
    expect(pauses[1]).toBeLessThanOrEqual(10);
  });

  it('that hangs is another try when its time is over', async () => {
    let tries = 0;
    const server = await standIn(() => (++tries === 1 ? { live: () => undefined } : made));
    const transport = new Transport({ url: new URL(`${server.url}/`) });
    const read = (response: Response) => response.json();
    expect(await transport.send(() => ({ method: 'POST', path: 'v1/runs', tryMs: 200 }), read)).toEqual(made.body);
    await server.close();
    expect(new Set(keysOf(server.asked)).size).toBe(1);
    expect(server.asked).toHaveLength(2);
  });
});

describe('a refusal', () => {
  it('is a CapstanProblem with all that the server said, and isn’t asked for again', async () => {
    const errors = [{ pointer: '/spec/argv', message: 'must not be empty' }];
    const said = problem(422, 'invalid_input', { detail: 'no argv', errors, requestId: 'req_7', extra: 1 });
    await against(
      () => said,
      async (capstan, { asked }) => {
        const error = await refusalOf(capstan.submit(NOOP));
        expect(error).toBeInstanceOf(CapstanProblem);
        expect(error).toMatchObject({
          status: 422,
          code: 'invalid_input',
          errors,
          requestId: 'req_7',
          message: 'no argv',
        });
        expect(error).toMatchObject({ document: { extra: 1 } });
        expect(asked).toHaveLength(1);
      },
    );
  });

  it('that comes as a page of a balancer says who answered, and with which status', async () => {
    await against(
      () => page(404),
      async (capstan, { url }) => {
        const error = await refusalOf(capstan.run(RUN_ID));
        expect(error).toMatchObject({ status: 404, code: undefined, title: 'HTTP 404' });
        expect(String(error)).toContain(`${url} did not answer as a Capstan server does`);
      },
    );
  });

  it.each([
    ['a page', page(200)],
    ['text', { headers: { 'content-type': 'text/plain' }, body: Buffer.from('OK') }],
    ['JSON that breaks off', { body: '{"id": "run_' }],
    ['nothing', {}],
  ])('of a 200 that is %s is an UnexpectedAnswer', async (_what, reply) => {
    await against(
      () => reply,
      async (capstan) => {
        const error = await refusalOf(capstan.version());
        expect(error).toBeInstanceOf(UnexpectedAnswer);
        expect(String(error)).toContain('the body is not JSON');
      },
    );
  });

  it('of a whole batch gives the problem of each', async () => {
    const items = [{ status: 422, problem: problem(422, 'invalid_input').body }];
    const refused = { status: 422, headers: { 'content-type': 'application/json' }, body: { items } };
    await against(
      () => refused,
      async (capstan) => expect(await capstan.submitBatch([NOOP])).toEqual(items),
    );
    await against(
      () => problem(422, 'idempotency_key_reused'),
      async (capstan) => {
        expect(await refusalOf(capstan.submitBatch([NOOP]))).toMatchObject({ code: 'idempotency_key_reused' });
      },
    );
  });

  it('is told of an address where nobody is', async () => {
    const gone = await standIn(() => ({}));
    await gone.close();
    const error = await refusalOf(new Capstan({ url: gone.url, token: TOKEN, patienceMs: 1 }).version());
    expect(error).toBeInstanceOf(NoConnection);
    expect(error).toMatchObject({ code: 'ECONNREFUSED', message: `no server answers at ${gone.url}` });
  });
});

describe('the token', () => {
  it('goes nowhere but to the server: a redirect is refused, not followed', async () => {
    const elsewhere = await standIn(() => ({ body: {} }));
    const redirect = { status: 307, headers: { location: `${elsewhere.url}/v1/runs` } };
    await against(
      () => redirect,
      async (capstan, { asked }) => {
        const error = await refusalOf(capstan.submit(NOOP));
        expect(error).toMatchObject({ status: 307, title: 'redirected' });
        expect(String(error)).toContain(`points to ${elsewhere.url}/v1/runs: name that server instead`);
        expect(asked[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`);
      },
    );
    await elsewhere.close();
    expect(elsewhere.asked).toEqual([]);
  });

  it('is in no error and in nothing that is printed of a client', async () => {
    expect(() => new Capstan({ url: 'http://h', token: 'secret\nvalue' })).toThrow(/^token: expected 1 to 255 visible/);
    expect(() => new Capstan({ url: 'http://h', token: 'secret\nvalue' })).not.toThrow(/secret/);
    expect(() => new Capstan({ url: 'http://u:secret@h' })).not.toThrow(/secret/);
    await against(inTurn({ hangUp: true }, problem(401, 'unauthorized'), page(400)), async (capstan) => {
      const errors = [await refusalOf(capstan.version()), await refusalOf(capstan.version()), capstan];
      for (const each of errors) expect(inspect(each, { depth: 10, showHidden: true })).not.toContain(TOKEN);
    });
  });

  it.each(['ftp://h', 'nonsense', 'http://h/?a=1', 'http://h/#a', 'http://u@h'])('asks no server at %s', (url) => {
    expect(() => new Capstan({ url })).toThrow(/^url: /);
  });
});

describe('a list', () => {
  it('F140 is walked by next alone: over short and empty pages, up to where the reader stops', async () => {
    const answer = ({ query }: Asked) => {
      const at = Number(query.get('cursor') ?? 0);
      const items = at % 2 === 1 ? [] : [runJson({ name: `run ${at}` })];
      return { body: { items, next: at < 6 ? String(at + 1) : null } };
    };
    await against(answer, async (capstan, { asked }) => {
      const runs = capstan.runs({ state: 'failed', label: ['env:prod', 'team:ops'] });
      const names = (await runs.toArray()).map(({ name }) => name);
      expect(names).toEqual(['run 0', 'run 2', 'run 4', 'run 6']);
      expect(asked[0]?.query.getAll('label')).toEqual(['env:prod', 'team:ops']);
      expect(await runs.toArray(2)).toHaveLength(2);
      expect(asked).toHaveLength(7 + 3);
    });
  });

  it('that is none is an UnexpectedAnswer', async () => {
    await against(
      () => ({ body: { hello: 'world' } }),
      async (capstan) => expect(await refusalOf(capstan.queues().toArray())).toBeInstanceOf(UnexpectedAnswer),
    );
  });
});

describe('a change by filter', () => {
  it('F161 goes on part by part until nothing is left, and adds up what came of it', async () => {
    const part = (next: string | null) => ({ body: { dryRun: false, matched: 3, canceled: 2, stopping: 1, next } });
    const newest = { body: { items: [runJson({ createdAt: '2026-03-02T10:00:00.999Z' })], next: 'more' } };
    await against(inTurn(newest, part('a'), part('b'), part(null)), async (capstan, { asked }) => {
      expect(await capstan.cancelRuns({ queue: 'gpu' })).toEqual({ matched: 9, canceled: 6, stopping: 3 });
      const filter = { queue: 'gpu', createdBefore: '2026-03-02T10:00:01.000Z' };
      expect(asked.slice(1).map(({ body }) => body)).toEqual([
        { filter, dryRun: false },
        { filter, dryRun: false, cursor: 'a' },
        { filter, dryRun: false, cursor: 'b' },
      ]);
    });
  });

  it('F161 cancels nothing where nothing matches, and nothing by a filter that names nothing', async () => {
    const none = { body: { items: [], next: null } };
    const counted = { body: { dryRun: true, matched: 0, canceled: 0, stopping: 0, next: null } };
    await against(inTurn(none, counted), async (capstan, { asked }) => {
      expect(await capstan.cancelRuns({ queue: 'gpu' })).toEqual({ matched: 0, canceled: 0, stopping: 0 });
      expect(asked[1]?.body).toEqual({ filter: { queue: 'gpu' }, dryRun: true });
    });
    const one = { body: { items: [runJson()], next: null } };
    await against(inTurn(one, problem(422, 'invalid_input')), async (capstan, { asked }) => {
      expect(await refusalOf(capstan.cancelRuns({ queue: undefined }))).toMatchObject({ code: 'invalid_input' });
      expect(asked[1]?.body).toEqual({ filter: {}, dryRun: false });
    });
  });

  it('S4-111 has no key that leaves no room for the numbers of its parts', async () => {
    const part = { body: { dryRun: false, matched: 0, items: [], next: null } };
    await against(
      () => part,
      async (capstan, { asked }) => {
        const rerun = (idempotencyKey: string) => capstan.rerunRuns({ state: 'failed' }, { idempotencyKey });
        expect(await refusalOf(rerun('é'.repeat(121)))).toMatchObject({
          name: 'TypeError',
          message: 'idempotencyKey: expected at most 240 bytes: each part adds its number',
        });
        expect(asked).toEqual([]);
        await rerun('é'.repeat(120));
        expect(asked).toHaveLength(1);
      },
    );
  });

  it('that was worked on for longer than patience lasts is sent again when its replica dies', async () => {
    let now = 0;
    const timing = { ...realTiming, monotonicMs: () => (now += 16_000), delay: async () => undefined };
    const part = { body: { dryRun: true, matched: 1, canceled: 0, stopping: 0, next: null } };
    const server = await standIn(inTurn({ hangUp: true }, part, { hangUp: true }));
    const url = new URL(`${server.url}/`);
    const raw = rawClient(new Transport({ url, timing }), url);
    const body = { filter: { queue: 'gpu' }, dryRun: true };
    expect((await raw.POST('/v1/runs/cancel', { body })).data).toMatchObject({ matched: 1 });
    expect(await refusalOf(raw.GET('/v1/version'))).toBeInstanceOf(NoConnection);
    await server.close();
    expect(server.asked).toHaveLength(3);
  });

  it('F161 reruns up to its limit, each part under a key of its own that comes again when all is asked for again', async () => {
    const items = (count: number) => Array.from({ length: count }, (_, i) => ({ rerunOf: RUN_ID, id: `run_${i}` }));
    const part = (count: number, next: string | null) => ({
      body: { dryRun: false, matched: count, items: items(count), next },
    });
    await against(inTurn(part(1_000, 'a'), part(500, 'b')), async (capstan, { asked }) => {
      const { matched } = await capstan.rerunRuns({ state: 'failed' }, { limit: 1_500, idempotencyKey: 'all' });
      expect(matched).toBe(1_500);
      expect(keysOf(asked)).toEqual(['all', 'all/2']);
      expect(asked.map(({ body }) => (body as { limit: number }).limit)).toEqual([1_000, 500]);
    });
  });
});

describe('a signal', () => {
  it('that has aborted sends nothing', async () => {
    await against(
      () => made,
      async (capstan, { asked }) => {
        const signal = AbortSignal.abort(new Error('no longer wanted'));
        expect(await refusalOf(capstan.submit(NOOP, { signal }))).toBe(signal.reason);
        expect(asked).toEqual([]);
      },
    );
  });

  it.each(['submit', 'run', 'output'] as const)('ends a %s that isn’t answered', async (method) => {
    const aborter = new AbortController();
    const reason = new Error('no longer wanted');
    const answer = () => {
      queueMicrotask(() => aborter.abort(reason));
      return { live: () => undefined };
    };
    await against(answer, async (capstan) => {
      const { signal } = aborter;
      const call = method === 'submit' ? capstan.submit(NOOP, { signal }) : capstan[method](RUN_ID, { signal });
      expect(await refusalOf(call)).toBe(reason);
    });
  });

  it('ends the reading of a stream of raw, though its head arrived and nobody holds the request', async () => {
    setFlagsFromString('--expose-gc');
    const aborter = new AbortController();
    const [reason, params] = [new Error('no longer wanted'), { path: { id: RUN_ID } }];
    await against(
      () => SILENT,
      async ({ raw }) => {
        const { signal } = aborter;
        const { data } = await raw.GET('/v1/runs/{id}/stream', { params, signal, parseAs: 'stream' });
        const reading = data?.getReader().read();
        await new Promise((resolve) => setTimeout(resolve, 0));
        runInNewContext('gc')();
        aborter.abort(reason);
        expect(await refusalOf(Promise.resolve(reading))).toBe(reason);
      },
    );
  });

  it('ends the wait for another try', async () => {
    const aborter = new AbortController();
    const timing = {
      monotonicMs: () => 0,
      random: () => 0,
      // Ends by the signal or never.
      delay: (_ms: number, signal?: AbortSignal) =>
        new Promise<void>((resolve) => {
          signal?.addEventListener('abort', () => resolve());
          aborter.abort();
        }),
    };
    const server = await standIn(() => problem(503, 'unavailable'));
    const transport = new Transport({ url: new URL(`${server.url}/`), timing });
    const { signal } = aborter;
    const request = () => ({ method: 'GET', path: 'v1/version', signal });
    expect(await refusalOf(transport.send(request, async () => undefined))).toBe(signal.reason);
    await server.close();
    expect(server.asked).toHaveLength(1);
  });

  it('leaves no listener behind on a request that was answered', async () => {
    let listeners = 0;
    const signal = new AbortController().signal;
    const { addEventListener, removeEventListener } = signal;
    Object.assign(signal, {
      addEventListener(...args: Parameters<AbortSignal['addEventListener']>) {
        listeners += 1;
        addEventListener.apply(signal, args);
      },
      removeEventListener(...args: Parameters<AbortSignal['removeEventListener']>) {
        listeners -= 1;
        removeEventListener.apply(signal, args);
      },
    });
    const server = await standIn(inTurn({ ...problem(503, 'unavailable'), ...AT_ONCE }, made));
    const transport = new Transport({ url: new URL(`${server.url}/`) });
    await transport.send(
      () => ({ method: 'GET', path: 'v1/version', signal }),
      async () => undefined,
    );
    await server.close();
    expect(listeners).toBe(0);
  });
});
