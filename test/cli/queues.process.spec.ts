/** `queues`, `queues pause` and `queues resume` against a server that answers as the test says. */
import { describe, expect, it } from 'vitest';
import { at, capstan } from './cli.fixture.js';
import { type Answer, problem, standIn } from './stand-in.fixture.js';

const PAUSED = { at: '2026-03-02T09:00:00.000Z', by: 'tok_a', byName: 'ops', reason: 'freeze until Monday' };

function queue(members: Readonly<Record<string, unknown>> = {}) {
  return {
    name: 'deploys',
    paused: null,
    depth: 3,
    depthIsEstimate: false,
    oldestPendingAt: '2026-03-02T10:00:00.000Z',
    running: 1,
    workers: 2,
    ...members,
  };
}

function worker(queues: readonly string[]) {
  return {
    id: 'wrk_01h455vb4pex5vsknk084sn02q',
    name: 'r1',
    kind: 'replica',
    state: 'live',
    slots: 4,
    queues,
    version: '0.1.0',
    leaseUntil: '2026-03-02T10:00:30.000Z',
    seenAt: '2026-03-02T10:00:00.000Z',
    connected: true,
    running: 0,
    startedAt: '2026-03-02T09:00:00.000Z',
    endedAt: null,
  };
}

async function against(answer: Answer, args: string[]) {
  const server = await standIn(answer);
  const finished = await capstan(args, at(server.url));
  await server.close();
  return { ...finished, asked: server.asked.map(({ method, path, body }) => [method, path, body]) };
}

describe('a list of queues', () => {
  const unknown = { depth: null, oldestPendingAt: null, running: null };
  const items = [
    queue({ paused: PAUSED, depth: 12_000, depthIsEstimate: true }),
    queue({ name: 'quiet', depth: 0, oldestPendingAt: null, running: 0 }),
    queue({ name: 'theirs', paused: { ...PAUSED, reason: 'a\u001b[2J' }, ...unknown }),
  ];
  const pages: Answer = ({ query }) =>
    query.get('cursor') === null
      ? { body: { items: items.slice(0, 2), next: 'more' } }
      : { body: { items: items.slice(2), next: null } };

  it('in a pipe is one line a queue, fields between tabs, of all pages', async () => {
    const { code, stdout, stderr } = await against(pages, ['queues']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'deploys\tpaused\t~12000\t2026-03-02T10:00:00.000Z\t1\t2\tops\tfreeze until Monday',
      'quiet\topen\t0\t\t0\t2\t\t',
      'theirs\tpaused\t\t\t\t2\tops\ta\u{FFFD}[2J',
      '',
    ]);
  });

  it('with --json is one document, as it was answered', async () => {
    const { code, stdout } = await against(pages, ['queues', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ items, next: null });
  });

  it('without any says so', async () => {
    const { code, stdout, stderr } = await against(() => ({ body: { items: [], next: null } }), ['queues']);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: 'capstan: nothing waits, and nobody executes runs\n',
    });
  });
});

describe('a queue that is paused', () => {
  const said = 'capstan: deploys: no run waits in it and no worker serves it by this name\n';
  const idle = queue({ paused: PAUSED, depth: 0, oldestPendingAt: null, running: 0 });
  const pause = ['queues', 'pause', 'deploys', '--reason', PAUSED.reason];
  const servedBy =
    (...queues: string[]): Answer =>
    ({ method }) =>
      method === 'PUT' ? { body: idle } : { body: { items: [worker(queues)], next: null } };

  it('and that nobody uses may be a slip: that is told', async () => {
    const { code, stdout, stderr } = await against(servedBy('*'), pause);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'deploys paused: 0 runs wait, 0 go on\n' });
    expect(stderr.startsWith(said)).toBe(true);
    expect(stderr).toContain('\n  queues there are: capstan queues\n');
  });

  it('and that a worker serves by its name is none', async () => {
    expect(await against(servedBy('gpu', 'deploys'), pause)).toMatchObject({ code: 0, stderr: '' });
  });

  it('is paused, also where nobody can say who serves it', async () => {
    const answer: Answer = ({ method }) => (method === 'PUT' ? { body: idle } : problem(403, 'forbidden'));
    expect(await against(answer, pause)).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('a queue', () => {
  it('is paused and resumed with one call each, and how it stands then is told', async () => {
    const paused = await against(
      () => ({ body: queue({ paused: PAUSED }) }),
      ['queues', 'pause', 'deploys', '--reason', PAUSED.reason],
    );
    expect(paused).toMatchObject({ code: 0, stdout: 'deploys paused: 3 runs wait, 1 goes on\n', stderr: '' });
    expect(paused.asked).toEqual([['PUT', '/v1/queues/deploys', { paused: true, reason: PAUSED.reason }]]);
    const resumed = await against(() => ({ body: queue({ depth: 1 }) }), ['queues', 'resume', 'deploys']);
    expect(resumed).toMatchObject({ code: 0, stdout: 'deploys open: 1 run waits, 2 workers take them\n', stderr: '' });
    expect(resumed.asked).toEqual([['PUT', '/v1/queues/deploys', { paused: false, reason: null }]]);
    const why = await against(() => ({ body: queue() }), ['queues', 'resume', 'deploys', '--reason', 'thawed']);
    expect(why.asked).toEqual([['PUT', '/v1/queues/deploys', { paused: false, reason: 'thawed' }]]);
  });

  it('that was paused before stays so for its first reason, which is told', async () => {
    const { code, stdout, stderr } = await against(
      () => ({ body: queue({ paused: PAUSED }) }),
      ['queues', 'pause', 'deploys', '--reason', 'mine'],
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'deploys paused: 3 runs wait, 1 goes on\n' });
    expect(stderr).toBe('capstan: it was paused before, by ops: freeze until Monday; that reason stands\n');
  });

  it('is refused in the words of the server', async () => {
    const reply = problem(403, 'forbidden', { detail: 'only its admins' });
    const { code, stdout, stderr } = await against(() => reply, ['queues', 'pause', 'a', '--reason', 'x']);
    expect({ code, stdout, stderr }).toEqual({
      code: 3,
      stdout: '',
      stderr: expect.stringMatching(/^capstan: Title of forbidden: only its admins\n {2}this token may not do it/),
    });
  });

  it('must be named, a pause must have its reason, and nothing is sent before', async () => {
    const refused = [
      ['pause', 'deploys'],
      ['pause', '--reason', 'x'],
      ['pause', '', '--reason', 'x'],
      ['pause', 'a', 'b', '--reason', 'x'],
      ['pause', 'a', '--reason', 'x', '--reason', 'y'],
      ['resume'],
      ['resume', ''],
      ['stop', 'deploys'],
    ];
    for (const args of refused) {
      const { code, asked } = await against(() => ({ body: queue() }), ['queues', ...args]);
      expect({ args, code, asked }).toEqual({ args, code: 2, asked: [] });
    }
  });

  it('--json is the queue as it was answered, and nothing else', async () => {
    const { code, stdout, stderr } = await against(
      () => ({ body: queue({ paused: PAUSED }) }),
      ['queues', 'pause', 'deploys', '--reason', 'mine', '--json'],
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(queue({ paused: PAUSED }));
  });

  it('has its help', async () => {
    const { code, stdout } = await capstan(['queues', 'pause', '--help'], {});
    expect(code).toBe(0);
    expect(stdout).toContain("\nExample:\n  capstan queues pause deploys --reason 'freeze until Monday'");
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});
