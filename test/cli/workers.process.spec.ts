/** `workers drain` and `undrain` against a server that answers as the test says. */
import { describe, expect, it } from 'vitest';
import { at, capstan, start, startOnTerminal, until } from './cli.fixture.js';
import { type Answer, problem, type Reply, standIn } from './stand-in.fixture.js';

const ID = 'wrk_01h455vb4pex5vsknk084sn02q';
const OTHER = 'wrk_01h455vb4pex5vsknk084sn02r';

function worker(members: Readonly<Record<string, unknown>> = {}) {
  return {
    id: ID,
    name: 'r1',
    kind: 'replica',
    state: 'draining',
    slots: 4,
    queues: ['default'],
    version: '0.1.0',
    leaseUntil: '2026-03-02T10:00:30.000Z',
    seenAt: '2026-03-02T10:00:00.000Z',
    connected: true,
    running: 0,
    startedAt: '2026-03-02T09:00:00.000Z',
    endedAt: null,
    ...members,
  };
}

const list = (...items: readonly unknown[]): Reply => ({ body: { items, next: null } });

async function against(answer: Answer, args: string[]) {
  const server = await standIn(answer);
  const finished = await capstan(args, at(server.url));
  await server.close();
  return { ...finished, asked: server.asked.map(({ method, path, body }) => [method, path, body]) };
}

describe('a worker', () => {
  it('is drained and undrained by its id, with one call, and what it is then is told', async () => {
    const drained = await against(() => ({ body: worker({ running: 2 }) }), ['workers', 'drain', ID]);
    expect(drained).toMatchObject({ code: 0, stdout: `r1 (${ID}) draining: 2 runs go on\n`, stderr: '' });
    expect(drained.asked).toEqual([['POST', `/v1/workers/${ID}/drain`, undefined]]);
    const back = await against(() => ({ body: worker({ state: 'live', running: 1 }) }), ['workers', 'undrain', ID]);
    expect(back).toMatchObject({ code: 0, stdout: `r1 (${ID}) live: takes runs; 1 run there now\n`, stderr: '' });
    expect(back.asked).toEqual([['POST', `/v1/workers/${ID}/undrain`, undefined]]);
  });

  it('is named by its name when one alone lives under it, whatever lived under it before', async () => {
    const former = worker({ id: OTHER, state: 'stopped', endedAt: '2026-03-02T09:00:00.000Z' });
    const answer: Answer = ({ method }) => (method === 'GET' ? list(former, worker()) : { body: worker() });
    const { code, stdout, asked } = await against(answer, ['workers', 'drain', 'r1']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `r1 (${ID}) draining: nothing runs there\n` });
    expect(asked.at(-1)).toEqual(['POST', `/v1/workers/${ID}/drain`, undefined]);
  });

  it('is not guessed: a name that several have is answered with their ids, and nobody is drained', async () => {
    const { code, stdout, stderr, asked } = await against(
      () => list(worker({ state: 'live', running: 3 }), worker({ id: OTHER })),
      ['workers', 'drain', 'r1'],
    );
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr.split('\n')).toEqual([
      'capstan: worker: 2 workers are called r1: name one by its id',
      `  ${ID} (live, 3 running, last seen 2026-03-02T10:00:00.000Z)`,
      `  ${OTHER} (draining, 0 running, last seen 2026-03-02T10:00:00.000Z)`,
      '',
    ]);
    expect(asked.map(([method]) => method)).toEqual(['GET']);
  });

  it('is named by its name right after a crash too: the life that no longer renews is not meant', async () => {
    const seen = (id: string, seconds: number, members: Readonly<Record<string, unknown>> = {}) =>
      worker({
        id,
        state: 'live',
        seenAt: `2026-03-02T10:00:${seconds}.000Z`,
        leaseUntil: `2026-03-02T10:00:${seconds + 30}.000Z`,
        ...members,
      });
    const drained = async (...items: readonly unknown[]) => {
      const answer: Answer = ({ method }) => (method === 'GET' ? list(...items) : { body: worker() });
      return (await against(answer, ['workers', 'drain', 'r1'])).asked.at(-1);
    };
    expect(await drained(seen(OTHER, 10), seen(ID, 21))).toEqual(['POST', `/v1/workers/${ID}/drain`, undefined]);
    expect(await drained(seen(ID, 21), seen(OTHER, 10))).toEqual(['POST', `/v1/workers/${ID}/drain`, undefined]);
    expect((await drained(seen(OTHER, 12), seen(ID, 21)))?.[0], 'both renew').toBe('GET');
    const gone = { connected: false };
    expect((await drained(seen(OTHER, 10, gone), seen(ID, 21, gone)))?.[0], 'neither renews').toBe('GET');
  });

  it('that is unknown or has ended is told apart from one that is there', async () => {
    const gone = list(worker({ state: 'lost', endedAt: '2026-03-02T09:00:00.000Z' }));
    const ended = await against(() => gone, ['workers', 'undrain', 'r1']);
    expect(ended).toMatchObject({ code: 3, stderr: 'capstan: worker: worker r1 has ended\n  look: capstan workers\n' });
    const json = await against(() => gone, ['workers', '--json', 'drain', 'r2']);
    expect(JSON.parse(json.stderr)).toEqual({
      title: 'worker',
      detail: 'no worker is called r2',
      code: 'worker_unknown',
      hint: 'look: capstan workers',
    });
    expect({ code: json.code, stdout: json.stdout }).toEqual({ code: 3, stdout: '' });
  });

  it('that the server refuses to move is told in its words', async () => {
    const reply = problem(409, 'worker_stopping', { detail: 'start it again', state: 'draining' });
    expect(await against(() => reply, ['workers', 'undrain', ID])).toMatchObject({
      code: 3,
      stderr: 'capstan: Title of worker_stopping: start it again\n',
    });
  });

  it('must be given', async () => {
    for (const args of [['drain'], ['undrain'], ['drain', ''], ['drain', ID, 'r2'], ['dran', ID]]) {
      const { code, asked } = await against(() => ({ body: worker() }), ['workers', ...args]);
      expect({ code, asked }).toEqual({ code: 2, asked: [] });
    }
  });

  it('--json is the worker as it was answered, before or behind the word', async () => {
    for (const args of [
      ['workers', 'drain', ID, '--json'],
      ['workers', '--json', 'drain', ID],
      ['--json', 'workers', 'drain', ID],
    ]) {
      const { code, stdout, stderr } = await against(() => ({ body: worker() }), args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(JSON.parse(stdout)).toEqual(worker());
    }
  });
});

describe('drain --wait', () => {
  /** Each look finds one run less. */
  function emptying(first: number, last: Readonly<Record<string, unknown>> = { running: 0 }): Answer {
    let running = first;
    return ({ method }) => {
      if (method !== 'POST') running -= 1;
      return { body: worker(running === 0 ? last : { running }) };
    };
  }

  it('looks until nothing runs there, and tells each change once', async () => {
    const { code, stdout, stderr, asked } = await against(emptying(2), ['workers', 'drain', ID, '--wait']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `r1 (${ID}) draining: nothing runs there\n` });
    expect(stderr).toBe(`capstan: r1 (${ID}) draining: 2 runs go on\ncapstan: r1 (${ID}) draining: 1 run goes on\n`);
    expect(asked).toEqual([
      ['POST', `/v1/workers/${ID}/drain`, undefined],
      ['GET', `/v1/workers/${ID}`, undefined],
      ['GET', `/v1/workers/${ID}`, undefined],
    ]);
  });

  it('with --json is silent until then', async () => {
    const { code, stdout, stderr } = await against(emptying(1), ['workers', 'drain', ID, '--wait', '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(worker());
  });

  it('is over when its process has stopped', async () => {
    const stopped = { running: 0, state: 'stopped', endedAt: '2026-03-02T10:00:00.000Z' };
    const { code, stdout } = await against(emptying(1, stopped), ['workers', 'drain', ID, '--wait']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `r1 (${ID}) stopped: nothing runs there\n` });
  });

  it('fails when somebody puts the worker back into service meanwhile', async () => {
    const live = { running: 0, state: 'live' };
    const { code, stdout, stderr } = await against(emptying(1, live), ['workers', 'drain', ID, '--wait']);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain(`drain: r1 (${ID}) was put back into service meanwhile\n  again: capstan workers drain`);
  });

  it('fails when the worker is lost meanwhile: nothing runs there, but nothing went on to its end either', async () => {
    const lost = { running: 0, state: 'lost' };
    const { code, stdout, stderr } = await against(emptying(1, lost), ['workers', 'drain', ID, '--wait']);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain(
      `drain: r1 (${ID}) was lost meanwhile: what ran there reads interrupted\n  look: capstan runs`,
    );
  });

  it('that is left by Ctrl-C leaves the worker drained, and says how to undo that', async () => {
    const server = await standIn(() => ({ body: worker({ running: 1 }) }));
    const waiting = await start(['workers', 'drain', ID, '--wait'], at(server.url));
    await until('it tells what is left', () => waiting.stderr().includes('1 run goes on'));
    waiting.child.kill('SIGINT');
    const { code, stderr } = await waiting.finished();
    await server.close();
    expect(code).toBe(130);
    expect(stderr).toContain(
      `capstan: r1 (${ID}) goes on draining\n  look: capstan workers\n  undo: capstan workers undrain ${ID}\n`,
    );
  });

  it('shows a person on a terminal how many runs are left', async () => {
    const server = await standIn(emptying(2));
    const { stdout, finished } = await startOnTerminal(`workers drain ${ID} --wait`, at(server.url));
    expect((await finished()).code).toBe(0);
    await server.close();
    const lines = stdout().replaceAll('\r', '').trim().split('\n');
    expect(lines.map((line) => line.replace(/^.*draining: /, ''))).toEqual([
      '2 runs go on',
      '1 run goes on',
      'nothing runs there',
    ]);
  });
});
