import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import { type Answer, openSurface, type Surface, wasRefusedOnTheWay } from '../send.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

function submit(body: object, headers: Record<string, string> = {}): Promise<Answer> {
  return surface.send({ method: 'POST', path: '/v1/runs', json: { queue: surface.queue, ...body }, headers });
}

function pointersOf(answer: Answer): string[] {
  expect(answer.status, answer.text.slice(0, 500)).toBe(422);
  return answer.json.errors.map((error: { pointer: string }) => error.pointer);
}

const command = (spec: object) => ({ kind: 'command', spec: { argv: ['true'], ...spec } });
const script = (spec: object) => ({ kind: 'script', spec: { interpreter: 'sh', content: 'true', ...spec } });

it('S4x-03 a submit answers 201 with the run, its place and its receipt, and the run can be shown', async () => {
  const answer = await submit({ kind: 'noop' });
  expect(answer.status).toBe(201);
  const run = answer.json;
  expect(answer.headers.location).toBe(`/v1/runs/${run.id}`);
  expect(answer.headers['audit-receipt']).toBe(run.receipts.submitted);
  expect(run.receipts.submitted).toMatch(/^org_[0-9a-z]{26}:\d+:[0-9a-f]{64}$/);
  expect(run).toEqual({
    id: expect.stringMatching(/^run_[0-9a-z]{26}$/),
    organizationId: encodeId('org', surface.organizationId),
    kind: 'noop',
    name: null,
    queue: surface.queue,
    priority: 0,
    labels: {},
    spec: {},
    timeout: null,
    notBefore: null,
    state: 'pending',
    origin: 'api',
    principal: { type: 'token', id: expect.stringMatching(/^tok_/), name: expect.any(String) },
    parentId: null,
    rootId: run.id,
    rerunOf: null,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    claimedAt: null,
    startedAt: null,
    endedAt: null,
    fence: 0,
    worker: null,
    cancelRequestedAt: null,
    progress: null,
    output: null,
    end: null,
    receipts: { submitted: run.receipts.submitted, ended: null },
  });
  const shown = await surface.send({ path: `/v1/runs/${run.id}` });
  expect(shown.status).toBe(200);
  expect(shown.json).toEqual(run);
});

it('what a submit says comes back: name, priority, labels, timeout and instant in one form', async () => {
  const answer = await submit({
    ...command({ argv: ['printf', '%s', ''] }),
    name: 'nächtliches Backup ✓',
    priority: -100,
    labels: { env: 'prod', 'team/a.b_c-d': '' },
    timeout: '3600s',
    notBefore: '2031-02-03T04:05:06.789012+02:00',
  });
  expect(answer.status, answer.text).toBe(201);
  expect(answer.json).toMatchObject({
    name: 'nächtliches Backup ✓',
    priority: -100,
    labels: { env: 'prod', 'team/a.b_c-d': '' },
    timeout: '1h',
    notBefore: '2031-02-03T02:05:06.789Z',
  });
});

it('the spec is stored complete: what was left out stands there with its default', async () => {
  expect((await submit(command({}))).json.spec).toEqual({
    argv: ['true'],
    env: {},
    cwd: null,
    stdin: null,
    successCodes: [0],
  });
  expect((await submit(script({ interpreter: ['perl', '-w'], env: { TZ: 'UTC' } }))).json.spec).toEqual({
    interpreter: ['perl', '-w'],
    content: 'true',
    args: [],
    env: { TZ: 'UTC' },
    cwd: null,
    stdin: null,
    successCodes: [0],
  });
});

it('null stands for nothing where that is meant, and is refused elsewhere', async () => {
  const nothing = { name: null, timeout: null, notBefore: null, ...command({ cwd: null, stdin: null }) };
  expect((await submit(nothing)).status).toBe(201);
  const all = { id: null, kind: null, queue: null, priority: null, labels: null, spec: null };
  expect(pointersOf(await submit(all))).toEqual(['/id', '/kind', '/queue', '/priority', '/labels', '/spec']);
  const inSpec = { argv: null, env: null, successCodes: null };
  expect(pointersOf(await submit({ kind: 'command', spec: inSpec })).sort()).toEqual(
    ['/spec/argv', '/spec/env', '/spec/successCodes'].sort(),
  );
});

it('every fault of a body is reported at once, each with its place', async () => {
  const answer = await submit({
    kind: 'command',
    priority: 1.5,
    labels: { 'a b': 'x', ok: 1 },
    colour: 'red',
    constructor: 1,
    spec: { argv: ['ok', 3], env: { 'A/B~': 'x' }, successCodes: [0, 256, 0], shell: true },
  });
  expect(pointersOf(answer).sort()).toEqual(
    [
      '/colour',
      '/constructor',
      '/labels/a b',
      '/labels/ok',
      '/priority',
      '/spec/argv/1',
      '/spec/env/A~1B~0',
      '/spec/shell',
      '/spec/successCodes/1',
      '/spec/successCodes/2',
    ].sort(),
  );
});

describe('each bound has two sides', () => {
  const long = (n: number) => 'x'.repeat(n);
  const many = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`l${i}`, 'v']));
  const cases: [string, object, object][] = [
    ['priority', { priority: 100 }, { priority: 101 }],
    ['priority', { priority: -100 }, { priority: -101 }],
    ['name', { name: long(200) }, { name: long(201) }],
    ['name', { name: 'a' }, { name: '' }],
    ['name', { name: 'a b' }, { name: 'a\nb' }],
    ['name', { name: 'a\u00a0b' }, { name: 'a\u009bb' }],
    ['labels', { labels: many(32) }, { labels: many(33) }],
    ['labels', { labels: { [long(63)]: '' } }, { labels: { [long(64)]: '' } }],
    ['labels', { labels: { k: 'é'.repeat(127) } }, { labels: { k: 'é'.repeat(128) } }],
    ['labels', { labels: {} }, { labels: [] }],
    ['timeout', { timeout: '365d' }, { timeout: '366d' }],
    ['timeout', { timeout: '1ms' }, { timeout: '0s' }],
    ['timeout', { timeout: '90s' }, { timeout: 90 }],
    ['notBefore', { notBefore: '2028-02-29T00:00:00Z' }, { notBefore: '2027-02-29T00:00:00Z' }],
    ['notBefore', { notBefore: '2027-01-01T00:00:00-00:30' }, { notBefore: '2027-01-01T00:00:00' }],
    ['notBefore', { notBefore: '2027-01-01T23:59:59.9Z' }, { notBefore: '2027-01-01' }],
    ['notBefore', { notBefore: '9999-12-31T23:59:59Z' }, { notBefore: '9999-12-31T23:59:59-01:00' }],
    ['id', { id: newId() }, { id: 'run_1' }],
    ['id', { id: encodeId('run', newId()) }, { id: encodeId('org', newId()) }],
    ['spec', { spec: {} }, { spec: [] }],
  ];
  it.each(cases)('%s: %j is taken, %j is not', async (member, good, bad) => {
    const taken = await submit({ kind: 'noop', ...good });
    expect(taken.status, taken.text.slice(0, 500)).toBe(201);
    const refused = pointersOf(await submit({ kind: 'noop', ...bad }));
    expect(refused[0]?.split('/')[1]).toBe(member);
  });

  const specs: [string, object, object][] = [
    ['/spec/argv', command({ argv: ['x', ...Array(65_535).fill('')] }), command({ argv: Array(65_537).fill('') })],
    ['/spec/argv/0', command({ argv: ['x', ''] }), command({ argv: ['', 'x'] })],
    ['/spec/argv', command({}), command({ argv: [] })],
    ['/spec/argv', command({}), command({ argv: 'true' })],
    ['/spec/argv/1', command({ argv: ['x', long(131_072)] }), command({ argv: ['x', 1] })],
    ['/spec/env/A', command({ env: { A: '' } }), command({ env: { A: 1 } })],
    ['/spec/env', command({ env: {} }), command({ env: ['A=1'] })],
    ['/spec/cwd', command({ cwd: '/tmp' }), command({ cwd: '' })],
    ['/spec/cwd', command({ cwd: '/' }), command({ cwd: 'sub/folder' })],
    ['/spec/cwd', script({ cwd: '/tmp/../x' }), script({ cwd: './sub' })],
    ['/spec/stdin', command({ stdin: '' }), command({ stdin: 1 })],
    ['/spec/successCodes', command({ successCodes: [0, 255] }), command({ successCodes: [] })],
    ['/spec/successCodes/0', command({ successCodes: [2] }), command({ successCodes: [-1] })],
    ['/spec/interpreter', script({ interpreter: 'node' }), script({ interpreter: 'perl' })],
    ['/spec/interpreter', script({ interpreter: ['perl'] }), script({ interpreter: [] })],
    ['/spec/content', script({ content: 'x' }), script({ content: '' })],
    ['/spec/args/0', script({ args: [''] }), script({ args: [null] })],
  ];
  it.each(specs)('%s has two sides', async (pointer, good, bad) => {
    const taken = await submit(good);
    expect(taken.status, taken.text.slice(0, 500)).toBe(201);
    expect(pointersOf(await submit(bad))).toEqual([pointer]);
  });

  it('a spec of 256 KiB in canonical form is taken, one byte more is not', async () => {
    const empty = { argv: ['true'], cwd: null, env: {}, stdin: '', successCodes: [0] };
    const room = 256 * 1024 - JSON.stringify(empty).length;
    expect((await submit({ kind: 'command', spec: { ...empty, stdin: long(room) } })).status).toBe(201);
    expect(pointersOf(await submit({ kind: 'command', spec: { ...empty, stdin: long(room + 1) } }))).toEqual(['/spec']);
  });
});

describe('F081 hostile text is refused with its place and never a 500', () => {
  const hostile: [string, string][] = [
    ['/name', '{"kind":"noop","name":"a\\u0000b"}'],
    ['/name', '{"kind":"noop","name":"\\ud800"}'],
    ['/name', '{"kind":"noop","name":"\\udc00\\ud800"}'],
    ['/labels/k', '{"kind":"noop","labels":{"k":"\\u0000"}}'],
    ['/labels/\\u0000k', '{"kind":"noop","labels":{"\\u0000k":"v"}}'],
    ['/spec/env/A', '{"kind":"command","spec":{"argv":["x"],"env":{"A":"x\\u0000y"}}}'],
    ['/spec/env/X\\u0000', '{"kind":"command","spec":{"argv":["x"],"env":{"X\\u0000":"1"}}}'],
    ['/spec/argv/1', '{"kind":"command","spec":{"argv":["x","\\ud800"]}}'],
    ['/spec/content', '{"kind":"script","spec":{"interpreter":"sh","content":"\\u0000"}}'],
    ['/priority', '{"kind":"noop","priority":1e999}'],
    ['/anything', '{"kind":"noop","anything":-1e999}'],
  ];
  it.each(hostile)('at %s in %s', async (pointer, body) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await surface.send({ method: 'POST', path: '/v1/runs', body, headers });
    expect(pointersOf(answer)).toEqual([pointer]);
  });

  it('an escaped backslash is no NUL: it comes back as it went in', async () => {
    const spec = { argv: ['x', '\\u0000', 'a\\\\u0000b', '\u2028', '💣', '\u{10ffff}'], env: { A: '\\ud800' } };
    const { id } = (await submit({ kind: 'command', spec })).json;
    const shown = await surface.send({ path: `/v1/runs/${id}` });
    expect(shown.json.spec).toMatchObject(spec);
  });

  it.each([
    '/v1/runs/%00',
    '/v1/runs/%00/cancel',
    '/v1/runs/run_%00',
    '/v1/runs/x%0Ay',
    '/v1/runs/..%2f..%2fetc',
    `/v1/runs/${'9'.repeat(90)}`,
  ])('path %s names nothing', async (path) => {
    const method = path.endsWith('cancel') ? 'POST' : 'GET';
    const answer = await surface.send({ method, path });
    expect(answer.status).toBe(wasRefusedOnTheWay(answer) ? 400 : 404);
  });

  it.each(['/v1/runs/%', '/v1/runs/%zz', '/v1/runs/%c3%28', '/%ff'])('path %s is no path', async (path) => {
    const answer = await surface.send({ path });
    expect([400, 404]).toContain(answer.status);
    if (!wasRefusedOnTheWay(answer)) expect(answer.headers['content-type']).toContain('application/problem+json');
  });

  it.each(['?q=%00', '?queue=%00', '?label=a:%00', '?label=%00:a', '?state=%00', '?cursor=%00', '?%00=1'])(
    'query %s is refused',
    async (query) => {
      expect((await surface.send({ path: `/v1/runs${query}` })).status).toBe(422);
    },
  );

  it.each(['?kind=%ff', '?q=%c3%28', '?q=%', '?%zz=1'])('query %s is no text', async (query) => {
    expect((await surface.send({ path: `/v1/runs${query}` })).status).toBe(400);
  });
});

it('F092 an environment may not hold bad names or what the server gives, each named', async () => {
  const bad = { 'A=B': '1', '': '1', 'BAD NAME': '1', '1A': '1', É: '1', CAPSTAN_RUN_ID: '1', CAPSTAN_FENCE: '1' };
  const pointers = pointersOf(await submit(command({ env: bad })));
  expect(pointers.sort()).toEqual(
    Object.keys(bad)
      .map((name) => `/spec/env/${name}`)
      .sort(),
  );
  const own = { LD_PRELOAD: '/x.so', BASH_ENV: '/x', NODE_OPTIONS: '--require /x', PATH: '/x', _A1: '' };
  expect((await submit(command({ env: own }))).json.spec.env).toEqual(own);
});

it('an object that reaches for a prototype is refused before anything copies it', async () => {
  const headers = { 'content-type': 'application/json' };
  for (const body of [
    '{"kind":"noop","__proto__":{"queue":"x"}}',
    '{"kind":"noop","\\u005f_proto__":1}',
    '{"kind":"command","spec":{"argv":["x"],"env":{"__proto__":"1"}}}',
    '{"kind":"noop","constructor":{"prototype":{"x":1}}}',
  ]) {
    const answer = await surface.send({ method: 'POST', path: '/v1/runs', body, headers });
    expect(answer.status, body).toBe(400);
  }
});

describe('an id that the caller chose', () => {
  it('gives the same run for the same spec, with or without a prefix, and 200', async () => {
    const id = newId();
    const first = await submit({ id, ...command({}) });
    expect(first.status).toBe(201);
    expect(first.json.id).toBe(encodeId('run', id));
    const again = await submit({ id: encodeId('run', id), ...command({ env: {} }) });
    expect(again.status).toBe(200);
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
    expect(again.json).toEqual(first.json);
  });

  it('answers 409 for another spec, and makes nothing', async () => {
    const id = newId();
    await submit({ id, ...command({}) });
    const clash = await submit({ id, ...command({ argv: ['false'] }) });
    expect(clash.status).toBe(409);
    expect(clash.json.code).toBe('id_conflict');
    expect((await surface.send({ path: `/v1/runs/${id}` })).json.spec.argv).toEqual(['true']);
  });

  it('answers 409 without any detail when another organization has it', async () => {
    const { token } = await surface.stranger();
    const id = newId();
    const secret = { name: 'secret name', queue: surface.queue };
    const theirs = await surface.send({
      method: 'POST',
      path: '/v1/runs',
      token,
      json: { kind: 'noop', id, ...secret },
    });
    expect(theirs.status).toBe(201);
    const ours = await submit({ kind: 'noop', id });
    expect(ours.status).toBe(409);
    expect(Object.keys(ours.json).sort()).toEqual(['code', 'detail', 'requestId', 'status', 'title', 'type']);
    expect(ours.text).not.toContain('secret name');
    expect((await surface.send({ path: `/v1/runs/${id}` })).status).toBe(404);
  });

  it('gives one run to 20 submits at once', async () => {
    const id = newId();
    const answers = await Promise.all(Array.from({ length: 20 }, () => submit({ id, kind: 'noop' })));
    expect(answers.map((answer) => answer.status).sort()).toEqual([...Array(19).fill(200), 201]);
  });
});

it('runs submitted together leave one audit entry each, and the receipts name them', async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => submit({ kind: 'noop' })));
  const session = await surface.session();
  const ids = answers.map((answer) => uuidOf(answer.json.id));
  const { rows } = await session.query(
    `select run_id, chain_id || ':' || seq || ':' || encode(link, 'hex') as receipt
     from audit_entries where run_id = any ($1::uuid[])`,
    [ids],
  );
  expect(rows.length, 'a flush appended its entries more often than once').toBe(40);
  const receipts = new Map(rows.map((row) => [row.run_id, row.receipt]));
  for (const answer of answers) {
    expect(answer.headers['audit-receipt']).toBe(receipts.get(uuidOf(answer.json.id)));
  }
});

it('a traceparent is kept when it follows the standard, and dropped otherwise', async () => {
  const session = await surface.session();
  const keptOf = async (traceparent: string) => {
    const { id } = (await submit({ kind: 'noop' }, { traceparent })).json;
    const uuid = (await session.query('select traceparent from runs where id = $1', [uuidOf(id)])).rows[0];
    return uuid.traceparent;
  };
  const good = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  expect(await keptOf(good)).toBe(good);
  expect(await keptOf(`01${good.slice(2)}-more`)).toBe(`01${good.slice(2)}`);
  for (const bad of [
    `ff${good.slice(2)}`,
    good.toUpperCase(),
    `${good}-x`,
    good.replace(/4bf.{29}/, '0'.repeat(32)),
    'x',
  ]) {
    expect(await keptOf(bad), bad).toBeNull();
  }
});

function uuidOf(id: string): string {
  const uuid = decodeId('run', id);
  if (uuid === undefined) throw new Error(`${id} is no id of a run`);
  return uuid;
}
