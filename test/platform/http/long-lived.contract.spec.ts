/** An installation that is old: its sequences have counted further than 32 bits, and than what a double holds exactly. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeId, newId } from '../../../src/kernel/ids.js';
import { Claimer } from '../../../src/runs/claimer.js';
import { Holder } from '../../runs/holder.fixture.js';
import { type LocalSurface, openLocalSurface } from '../../send.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

it('F144 every column that counts by itself has 64 bits', async () => {
  const session = await surface.session();
  const { rows } = await session.query(
    `select table_name || '.' || column_name as name, data_type as type from information_schema.columns
     where table_schema = 'public' and (column_default like 'nextval%' or is_identity = 'YES')
     order by 1`,
  );
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.filter(({ type }) => type !== 'bigint')).toEqual([]);
});

describe.each([2_147_483_646n, 9_007_199_254_740_990n])('F144 with every sequence at %d', (at) => {
  beforeAll(async () => {
    const session = await surface.session();
    const { rows } = await session.query<{ name: string }>(
      `select format('%I.%I', schemaname, sequencename) as name from pg_sequences where schemaname = 'public'`,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { name } of rows) await session.query('select setval($1::regclass, $2)', [name, String(at)]);
  });

  it('runs are submitted, claimed in their order, ended, canceled, run again and listed', async () => {
    const own = { ...surface, queue: `q-${newId()}` };
    const submit = async () => {
      const answer = await own.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: own.queue } });
      expect(answer.status, answer.text).toBe(201);
      return answer.json.id as string;
    };
    const ids = [await submit(), await submit(), await submit()];
    const holder = await Holder.register(own);
    const hold = await holder.start();
    await holder.finish(hold);
    const [first = '', second = '', third = ''] = ids;
    expect((await own.send({ path: `/v1/runs/${first}` })).json.state).toBe('succeeded');
    expect((await own.send({ method: 'POST', path: `/v1/runs/${second}/cancel` })).status).toBe(200);
    const again = await own.send({ method: 'POST', path: `/v1/runs/${first}/rerun` });
    expect(again.status, again.text).toBe(201);
    const { items } = (await own.send({ path: `/v1/runs?queue=${own.queue}` })).json;
    expect(items.map(({ id }: { id: string }) => id).sort()).toEqual([...ids, again.json.id].sort());
    expect((await own.send({ path: `/v1/runs/${third}/why` })).status).toBe(200);
  });

  it('a burst behind a mark takes each run of a batch once, by priority, and then in the order of the batch', async () => {
    const queue = `q-${newId()}`;
    const priorities = [-100, 0, 0, 0, 100, 0, 0, -100];
    const runs = priorities.map((priority) => ({ kind: 'command', queue, priority, spec: { argv: ['true'] } }));
    const { json } = await surface.send({ method: 'POST', path: '/v1/runs/batch', json: { runs } });
    const made: string[] = json.items.map(({ run }: { run: { id: string } }) => decodeId('run', run.id));
    const holder = await Holder.register({ ...surface, queue });
    let nowMs = 0;
    const claimer = new Claimer(surface.pool, { id: holder.id, queues: [queue] }, { monotonicMs: () => nowMs });
    const taken: string[] = [];
    for (; taken.length < made.length && nowMs < 20_000; nowMs += 600) {
      taken.push(...(await claimer.claim(2)).runs.map(({ runId }) => runId));
    }
    expect(new Set(taken)).toEqual(new Set(made));
    expect(taken[0], 'the highest').toBe(made[4]);
    expect(taken.slice(1, 6), 'those in the middle').toEqual([1, 2, 3, 5, 6].map((i) => made[i]));
    expect(taken.slice(6), 'the lowest').toEqual([made[0], made[7]]);
  });

  it('events and output are written and read, and no answer holds a number that a client can not', async () => {
    const own = { ...surface, queue: `q-${newId()}` };
    const json = { kind: 'command', queue: own.queue, spec: { argv: ['true'] } };
    const { id } = (await own.send({ method: 'POST', path: '/v1/runs', json })).json;
    const holder = await Holder.register(own);
    const hold = await holder.start();
    await holder.write(hold, 1, Buffer.from('said\n'));
    await holder.finish(hold);
    const answers = await Promise.all(
      ['', '/events', '/output', '/why'].map((part) => own.send({ path: `/v1/runs/${id}${part}` })),
    );
    answers.push(await own.send({ path: `/v1/audit?object=${id}` }), await own.send({ path: '/v1/runs' }));
    for (const { status, text } of answers) {
      expect(status, text).toBe(200);
      const numbers = [...text.replace(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(/\d{16,}/g)].map(([digits]) =>
        BigInt(digits),
      );
      expect(numbers.filter((n) => n > BigInt(Number.MAX_SAFE_INTEGER))).toEqual([]);
    }
    expect(answers[1]?.json.items.map(({ type }: { type: string }) => type)).toEqual([
      'run.submitted',
      'run.claimed',
      'run.started',
      'run.ended',
    ]);
    expect(answers[2]?.text).toContain('said');
    expect(answers[4]?.json.items.length).toBeGreaterThanOrEqual(2);
  });

  it('an organization made now has a chain of its own, and its entries follow each other', async () => {
    const { token } = await surface.stranger();
    for (let i = 0; i < 2; i += 1) {
      const answer = await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop' }, token });
      expect(answer.status, answer.text).toBe(201);
    }
    const { json } = await surface.send({ path: '/v1/audit/verify', token });
    expect(json).toMatchObject({ ok: true, entries: 2 });
  });
});
