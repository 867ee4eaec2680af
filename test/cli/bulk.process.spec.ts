/** `cancel` and `rerun` of many, `batch`, and the filters of `runs`, against a server that answers as the test says. */
import { describe, expect, it } from 'vitest';
import { at, capstan, startOnTerminal, until } from './cli.fixture.js';
import { type Answer, type Asked, problem, RUN_ID, runJson, standIn } from './stand-in.fixture.js';

const TOKEN_ID = 'tok_01h455vb4pex5vsknk084sn02q';
const OTHER_ID = 'run_01h455vb4pex5vsknk084sn02r';

async function against(answer: Answer, args: readonly string[], stdin?: string) {
  const server = await standIn(answer);
  const finished = await capstan(args, { ...at(server.url), ...(stdin !== undefined && { stdin }) });
  await server.close();
  return { ...finished, asked: server.asked };
}

type Body = { readonly dryRun: boolean; readonly cursor?: string; readonly filter: unknown };

/** What only looks has none, and changes nothing. */
function bodyOf({ body = { dryRun: true } }: Asked): Body {
  return body as Body;
}

/** 250 runs that match, a hundred at a time; a part may come past nothing and still lead on. */
const CANCELS: Answer = (asked) => {
  if (asked.method === 'GET')
    return { body: { items: [runJson({ createdAt: '2026-03-02T10:00:00.999Z' })], next: null } };
  const { dryRun, cursor } = bodyOf(asked);
  const [matched, next] = { none: [100, 'a'], a: [0, 'b'], b: [150, null] }[cursor ?? 'none'] ?? [0, null];
  return { body: { dryRun, matched, canceled: dryRun ? 0 : matched, stopping: dryRun ? 0 : 1, next } };
};

const PENDING = ['--state', 'pending,held', '--queue', 'q', '--label', 'env=prod', '--search', 'nightly backup'];

describe('a cancel of many', () => {
  it('goes on by next alone until all is done, and sums it up', async () => {
    const { code, stdout, asked } = await against(CANCELS, ['cancel', ...PENDING, '--yes']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '250 runs canceled, 3 being stopped\n' });
    const [look, ...cancels] = asked;
    expect(look?.method).toBe('GET');
    expect(cancels.map(({ method, path }) => `${method} ${path}`)).toEqual(Array(3).fill('POST /v1/runs/cancel'));
    expect(cancels.map((one) => bodyOf(one).cursor)).toEqual([undefined, 'a', 'b']);
    expect(bodyOf(cancels[0] as Asked)).toEqual({
      dryRun: false,
      filter: {
        state: ['pending', 'held'],
        queue: 'q',
        label: ['env:prod'],
        q: 'nightly backup',
        createdBefore: '2026-03-02T10:00:01.000Z',
      },
    });
  });

  it('where nothing matches changes nothing: it has the filter checked', async () => {
    const { stdout, asked } = await against(
      (one) => (one.method === 'GET' ? { body: { items: [], next: null } } : CANCELS(one)),
      ['cancel', '--state', 'pending', '--yes'],
    );
    expect(stdout).toBe('0 runs canceled\n');
    expect(asked.every((one) => bodyOf(one).dryRun)).toBe(true);
  });

  it('only counts with --dry-run, also beside --yes', async () => {
    for (const args of [['--dry-run'], ['--dry-run', '--yes']]) {
      const { code, stdout, asked } = await against(CANCELS, ['cancel', ...PENDING, ...args]);
      expect({ code, stdout }).toEqual({ code: 0, stdout: '250 runs would be canceled\n' });
      expect(asked.every((one) => bodyOf(one).dryRun)).toBe(true);
    }
    const json = await against(CANCELS, ['cancel', ...PENDING, '--dry-run', '--json']);
    expect(JSON.parse(json.stdout)).toEqual({ dryRun: true, matched: 250 });
  });

  it('without a terminal does nothing that --yes did not agree to', async () => {
    for (const args of [[], ['--json'], ['--quiet']]) {
      const { code, stdout, stderr, asked } = await against(CANCELS, ['cancel', ...PENDING, ...args]);
      expect({ code, stdout, asked }).toEqual({ code: 2, stdout: '', asked: [] });
      expect(stderr).toContain('there is nobody to ask here');
    }
  });

  it('on a terminal asks with the count, and takes nothing but yes for an answer', async () => {
    for (const [typed, code] of [
      ['y\n', 0],
      ['\n', 130],
      ['no\n', 130],
    ] as const) {
      const server = await standIn(CANCELS);
      const running = await startOnTerminal('cancel --state pending', { ...at(server.url), isTyping: true });
      await until('it asks', () => running.stdout().includes('cancel 250 runs? [y/N] '));
      running.child.stdin.write(typed);
      const finished = await running.finished();
      await server.close();
      const canceled = server.asked.filter((one) => !bodyOf(one).dryRun).length;
      expect({ typed, code: finished.code, canceled }).toEqual({ typed, code, canceled: code === 0 ? 3 : 0 });
      expect(finished.stdout).toContain(code === 0 ? '250 runs canceled' : 'nothing was done');
    }
  });

  it('that fails on its way says how far it came', async () => {
    const answer: Answer = (asked) =>
      bodyOf(asked).cursor === undefined ? CANCELS(asked) : problem(403, 'forbidden', { detail: 'not yours' });
    const { code, stdout, stderr } = await against(answer, ['cancel', '--state', 'pending', '--yes']);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain('\n  100 runs canceled, 1 being stopped before\n');
    expect(stderr, 'the same command would be refused again').not.toContain('the same command again');
    const broken = await against(
      (one) => (bodyOf(one).cursor === undefined ? CANCELS(one) : problem(500, 'internal', { detail: 'a fault' })),
      ['cancel', '--state', 'pending', '--yes'],
    );
    expect(broken.stderr).toContain('being stopped before\n  the rest: the same command again\n');
    const none = await against(() => problem(422, 'invalid_input'), ['cancel', '--state', 'pending', '--yes']);
    expect(none.stderr).not.toMatch(/canceled|again/);
  });
});

describe('a cancel of several ids', () => {
  const answer: Answer = ({ path }) =>
    path.includes(RUN_ID)
      ? problem(409, 'run_ended', { detail: 'it has succeeded' })
      : { body: runJson({ id: OTHER_ID, state: 'canceled', endedAt: '2026-03-02T10:00:04.200Z' }) };

  it('goes on behind one that is refused, and says which', async () => {
    const { code, stdout, stderr } = await against(answer, ['cancel', RUN_ID, OTHER_ID]);
    expect({ code, stdout, stderr }).toEqual({
      code: 3,
      stdout: `${OTHER_ID} canceled\n`,
      stderr: `capstan: ${RUN_ID}: it has succeeded\n`,
    });
    const quiet = await against(answer, ['cancel', '-q', RUN_ID, OTHER_ID]);
    expect(quiet).toMatchObject({ code: 3, stdout: `${OTHER_ID}\n` });
    const json = await against(answer, ['cancel', '--json', RUN_ID, OTHER_ID]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      items: [
        { id: RUN_ID, problem: { code: 'run_ended' } },
        { id: OTHER_ID, run: { state: 'canceled' } },
      ],
    });
  });

  it('stops at what would befall the others too', async () => {
    const { code, asked } = await against(() => problem(401, 'unauthorized'), ['cancel', RUN_ID, OTHER_ID]);
    expect({ code, count: asked.length }).toEqual({ code: 3, count: 1 });
  });
});

describe('a rerun of many', () => {
  const RERUNS: Answer = (asked) => {
    const { dryRun, cursor } = bodyOf(asked);
    const items = dryRun ? [] : [{ rerunOf: RUN_ID, id: `run_${cursor ?? 'first'}` }];
    return { body: { dryRun, matched: 1, items, next: cursor === undefined ? 'second' : null } };
  };

  it('prints the ids of the new runs, each part under a key of its own', async () => {
    const { code, stdout, stderr, asked } = await against(RERUNS, ['rerun', '--state', 'failed', '--yes']);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'run_first\nrun_second\n',
      stderr: 'capstan: 2 new runs made\n',
    });
    expect(asked.map(({ path }) => path)).toEqual(Array(2).fill('/v1/runs/rerun'));
    expect(new Set(asked.map(({ headers }) => headers['idempotency-key'])).size).toBe(2);
    const quiet = await against(RERUNS, ['rerun', '--state', 'failed', '--yes', '-q']);
    expect(quiet).toMatchObject({ stdout: 'run_first\nrun_second\n', stderr: '' });
  });

  it('that is sent again after a lost answer bears the same key', async () => {
    let tries = 0;
    const { code, asked } = await against(
      (one) => (tries++ === 1 ? { hangUp: true } : RERUNS(one)),
      ['rerun', '--state', 'failed', '--yes'],
    );
    expect(code).toBe(0);
    const keys = asked.map(({ headers }) => headers['idempotency-key']);
    expect(keys[1]).toBe(keys[2]);
    expect(keys[0]).not.toBe(keys[1]);
  });

  it('cannot be waited for', async () => {
    const { code, stderr } = await against(RERUNS, ['rerun', '--state', 'failed', '--yes', '--wait']);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('are for one run') });
  });

  it('with a key of the caller’s makes nothing twice: one for each part, none of them for the count', async () => {
    const server = await standIn(RERUNS);
    const running = await startOnTerminal('rerun --state failed --idempotency-key k', {
      ...at(server.url),
      isTyping: true,
    });
    await until('it asks', () => running.stdout().includes('[y/N] '));
    running.child.stdin.write('y\n');
    expect(await running.finished()).toMatchObject({ code: 0 });
    await server.close();
    const keyed = (isCount: boolean) =>
      server.asked.filter((one) => bodyOf(one).dryRun === isCount).map(({ headers }) => headers['idempotency-key']);
    expect(keyed(false)).toEqual(['k', 'k/2']);
    expect(keyed(true)).toEqual([expect.stringMatching(/^cli-/), expect.stringMatching(/^cli-/)]);
  });

  it('that fails with a key of the caller’s goes on with the same command', async () => {
    const answer: Answer = (one) => (bodyOf(one).cursor === undefined ? RERUNS(one) : problem(403, 'forbidden'));
    const own = ['--idempotency-key', 'k'];
    const keyed = await against(answer, ['rerun', '--state', 'failed', '--yes', ...own]);
    expect(keyed.stderr).toContain('1 new run made before\n  again, which makes none twice: the same command\n');
    const other = await against(answer, ['rerun', '--state', 'failed', '--yes']);
    expect(other.stderr).toContain('look: capstan runs\n');
  });
});

describe('a list of runs', () => {
  it('asks by all its filters, a time ago as the instant that it was', async () => {
    const begunMs = Date.now();
    const args = ['--kind', 'noop', '--origin', 'api', '--principal', TOKEN_ID, '--parent', RUN_ID, '--after', '2h'];
    const before = ['--before', '2030-01-01T00:00:00Z', '--state', 'failed', '--state', 'timed_out'];
    const { code, asked } = await against(() => ({ body: { items: [], next: null } }), ['runs', ...args, ...before]);
    expect(code).toBe(0);
    const query = asked[0]?.query;
    const { createdAfter, ...rest } = Object.fromEntries(query ?? []);
    expect(rest).toEqual({
      kind: 'noop',
      origin: 'api',
      principal: TOKEN_ID,
      parent: RUN_ID,
      createdBefore: '2030-01-01T00:00:00Z',
      state: 'timed_out',
      limit: '50',
    });
    expect(query?.getAll('state')).toEqual(['failed', 'timed_out']);
    const agoMs = begunMs - Date.parse(createdAfter ?? '');
    expect(Math.abs(agoMs - 7_200_000)).toBeLessThan(60_000);
  });

  it('goes on behind pages that are short or empty, and with --quiet prints ids alone', async () => {
    const pages: Answer = ({ query }) => {
      const cursor = query.get('cursor');
      if (cursor === null) return { body: { items: [], next: 'a' } };
      return { body: { items: [runJson({ id: `run_${cursor}` })], next: cursor === 'a' ? 'b' : null } };
    };
    const { code, stdout, stderr } = await against(pages, ['runs', '--quiet']);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'run_a\nrun_b\n', stderr: '' });
  });
});

describe('--quiet', () => {
  it('excludes --json, and is for what has ids', async () => {
    for (const args of [
      ['runs', '--quiet', '--json'],
      ['--quiet', 'runs', '--json'],
      ['--quiet', 'version'],
    ]) {
      const { code, stdout, asked } = await against(() => ({}), args);
      expect({ args, code, stdout, asked }).toEqual({ args, code: 2, stdout: '', asked: [] });
    }
    const shown = await against(() => ({ body: runJson() }), ['show', '-q', RUN_ID]);
    expect(shown).toMatchObject({ code: 0, stdout: `${RUN_ID}\n` });
    const { stdout } = await against(() => ({ status: 201, body: runJson() }), ['--quiet', 'run', '--', 'ls']);
    expect(stdout).toBe(`${RUN_ID}\n`);
  });
});

describe('a batch', () => {
  type Submits = { readonly runs: readonly { readonly kind: string; readonly name?: string }[] };

  /** Takes what is a noop. */
  const takes: Answer = ({ body }) => {
    const items = (body as Submits).runs.map(({ kind, name }) =>
      kind === 'noop'
        ? { status: 201, run: runJson({ id: `run_${name ?? 'x'}` }) }
        : { status: 422, problem: { title: 'Invalid', errors: [{ pointer: '/kind', message: 'is none' }] } },
    );
    return { status: items.some((item) => item.status === 201) ? 200 : 422, body: { items } };
  };

  it('sends what stands in a file in parts of a thousand, each under a key made of one', async () => {
    const lines = Array.from({ length: 2_001 }, (_, i) => `{"kind":"noop","name":"${i}"}`).join('\n');
    const { code, stdout, stderr, asked } = await against(
      takes,
      ['batch', '-', '--idempotency-key', 'k'],
      `${lines}\n`,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'capstan: 2,001 runs submitted\n' });
    expect(stdout.split('\n').slice(0, -1)).toEqual(Array.from({ length: 2_001 }, (_, i) => `run_${i}`));
    expect(asked.map(({ body }) => (body as Submits).runs.length)).toEqual([1_000, 1_000, 1]);
    expect(asked.map(({ headers }) => headers['idempotency-key'])).toEqual(['k', 'k/2', 'k/3']);
  });

  it('takes a list, an object with one, and a submit over several lines', async () => {
    for (const [text, count] of [
      ['[{"kind":"noop"},\n {"kind":"noop"}]', 2],
      ['{"runs":[{"kind":"noop"}]}', 1],
      ['{\n"kind":"noop"\n}', 1],
      ['\n{"kind":"noop"}\n\n{"kind":"noop"}', 2],
    ] as const) {
      const { code, asked } = await against(takes, ['batch', '-'], text);
      expect({ text, code, count: (asked.at(0)?.body as Submits | undefined)?.runs.length }).toEqual({
        text,
        code: 0,
        count,
      });
    }
  });

  it('names the line of what was refused, prints the others, and ends with 1', async () => {
    const text = '{"kind":"noop","name":"a"}\n\n{"kind":"nop"}\n{"kind":"noop","name":"b"}\n';
    const plain = await against(takes, ['batch', '-'], text);
    expect(plain).toMatchObject({ code: 1, stdout: 'run_a\nrun_b\n' });
    expect(plain.stderr).toBe('capstan: line 3: /kind: is none\ncapstan: 2 runs submitted, 1 refused\n');
    const quiet = await against(takes, ['batch', '-', '-q'], text);
    expect(quiet).toMatchObject({ code: 1, stdout: 'run_a\nrun_b\n', stderr: 'capstan: line 3: /kind: is none\n' });
    const json = await against(takes, ['batch', '-', '--json'], text);
    expect(json).toMatchObject({ code: 1, stderr: '' });
    expect(JSON.parse(json.stdout)).toMatchObject({
      made: 2,
      refused: 1,
      items: [{ place: 'line 1', status: 201 }, { place: 'line 3', status: 422 }, { status: 201 }],
    });
    const none = await against(takes, ['batch', '-'], '{"kind":"nop"}');
    expect(none).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('line 1: /kind: is none') });
  });

  it('sends nothing of a file with a line that cannot be understood', async () => {
    for (const [text, says] of [
      ['{"kind":"noop"}\n{"kind"', 'standard input, line 2: expected a JSON object'],
      ['7\n', 'standard input, line 1: expected'],
      ['', 'standard input holds no runs'],
      ['[]', 'standard input holds no runs'],
    ] as const) {
      const { code, stdout, stderr, asked } = await against(takes, ['batch', '-'], text);
      expect({ text, code, stdout, asked }).toEqual({ text, code: 2, stdout: '', asked: [] });
      expect(stderr).toContain(says);
    }
    expect(await against(takes, ['batch', 'no-such-file'])).toMatchObject({ code: 2, asked: [] });
  });

  it('that fails on its way says how to go on without making a run twice', async () => {
    let parts = 0;
    const answer: Answer = (asked) => (++parts === 1 ? takes(asked) : problem(403, 'forbidden'));
    const lines = '{"kind":"noop"}\n'.repeat(1_001);
    const { code, stdout, stderr, asked } = await against(answer, ['batch', '-'], lines);
    expect({ code, ids: stdout.split('\n').length - 1 }).toEqual({ code: 3, ids: 1_000 });
    const key = asked[0]?.headers['idempotency-key'];
    expect(stderr).toContain(`1,000 runs submitted before\n  again, which makes no run twice`);
    expect(stderr).toContain(`--idempotency-key ${key}\n`);
  });

  it('that is refused as a whole is told in the words of the server', async () => {
    const reply = problem(422, 'idempotency_key_reused', { detail: 'another request had this key' });
    const { code, stderr } = await against(() => reply, ['batch', '-'], '{"kind":"noop"}');
    expect(code).toBe(3);
    expect(stderr).toContain('another request had this key');
  });
});
