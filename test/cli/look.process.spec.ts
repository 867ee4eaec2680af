import { describe, expect, it } from 'vitest';
import { at, capstan, cleanEnv, inFolder, mainFile, startProcess } from './cli.fixture.js';
import {
  type Answer,
  type Asked,
  endedJson,
  problem,
  RUN_ID,
  runJson,
  runningJson,
  standIn,
} from './stand-in.fixture.js';

async function against(answer: Answer, args: string[]) {
  const server = await standIn(answer);
  const finished = await capstan(args, at(server.url));
  await server.close();
  return { ...finished, asked: server.asked };
}

const THREE = [
  runningJson({ id: 'run_c', name: 'three\nlines\u001b[2J', labels: { env: 'prod' } }),
  endedJson('failed', { code: 'tool_failed', exitCode: 7, detail: 'exit code 7' }, { id: 'run_b' }),
  runJson({ id: 'run_a' }),
];

function page({ query }: Asked): { body: unknown } {
  const start = Number(query.get('cursor') ?? 0);
  const end = start + Number(query.get('limit') ?? 50);
  return { body: { items: THREE.slice(start, end), next: end < THREE.length ? String(end) : null } };
}

describe('runs', () => {
  it('in a pipe is one line a run, fields between tabs, instants as they came', async () => {
    const { code, stdout, stderr } = await against(page, ['runs']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'run_c\trunning\tcommand\tdefault\t2026-03-02T10:00:00.000Z\t\tthree lines\u{FFFD}[2J',
      'run_b\tfailed\tcommand\tdefault\t2026-03-02T10:00:00.000Z\t3.20s\t',
      'run_a\tpending\tcommand\tdefault\t2026-03-02T10:00:00.000Z\t\t',
      '',
    ]);
  });

  it('hands its filters to the server', async () => {
    const filters = ['--state', 'pending,running', '--state', 'cancelled', '--queue', 'gpu', '--kind', 'script'];
    const { asked } = await against(page, [
      'runs',
      ...filters,
      '--label',
      'env=prod',
      '--label',
      'a=b:c',
      '--limit',
      '7',
    ]);
    const query = asked[0]?.query ?? new URLSearchParams();
    expect(query.getAll('state')).toEqual(['pending', 'running', 'canceled']);
    expect(query.getAll('label')).toEqual(['env:prod', 'a:b:c']);
    expect([query.get('queue'), query.get('kind'), query.get('limit')]).toEqual(['gpu', 'script', '7']);
    expect(asked[0]?.path).toBe('/v1/runs');
  });

  it('stops at its limit and says that there are more; --all walks every page', async () => {
    const some = await against(page, ['runs', '--limit', '2']);
    expect(some.stdout.match(/^run_/gm)).toHaveLength(2);
    expect(some.stderr).toBe('capstan: these are the newest 2; more: --limit N or --all\n');
    const pages = (asked: Asked) =>
      page({ ...asked, query: new URLSearchParams({ ...Object.fromEntries(asked.query), limit: '1' }) });
    const all = await against(pages, ['runs', '--all', '--json']);
    expect(JSON.parse(all.stdout)).toEqual({ items: THREE, next: null });
    expect(all.asked.map(({ query }) => query.get('cursor'))).toEqual([null, '1', '2']);
  });

  it('with --json is the list, and where it goes on', async () => {
    const { stdout, stderr } = await against(page, ['runs', '--json', '--limit', '1']);
    expect(JSON.parse(stdout)).toEqual({ items: THREE.slice(0, 1), next: '1' });
    expect(stderr).toBe('');
  });
});

describe('show', () => {
  it('in a pipe is one fact a line', async () => {
    const run = endedJson('failed', { code: 'tool_failed', exitCode: 7, detail: 'exit code 7' });
    const { code, stdout, asked } = await against(() => ({ body: run }), ['show', RUN_ID]);
    expect(code).toBe(0);
    expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual([`GET /v1/runs/${RUN_ID}`]);
    for (const line of ['state\tfailed', 'exit code\t7', "command\techo 'two words'", 'took\t3.20s', 'signal\t']) {
      expect(stdout.split('\n')).toContain(line);
    }
    expect(stdout).toContain('receipt submitted\torg_1:1:ab\n');
  });

  it('tells progress, output and what it reruns on one short line each', async () => {
    const output = { text: 'two\nlines', more: 'x'.repeat(500) };
    const run = runningJson({ progress: { percent: 40, message: 'half\u001b[2J' }, output, rerunOf: 'run_old' });
    const { stdout } = await against(() => ({ body: run }), ['show', RUN_ID]);
    expect(stdout).toContain('rerun of\trun_old\nprogress\t{"percent":40,"message":"half\\u001b[2J"}\n');
    expect(stdout).toMatch(/^output\t\{"text":"two\\nlines","more":"x{150,190}…$/m);
  });

  it('of an http run tells the request', async () => {
    const run = runJson({ kind: 'http', spec: { method: 'PUT', url: 'https://example.org' } });
    expect((await against(() => ({ body: run }), ['show', RUN_ID])).stdout).toContain(
      'command\tPUT https://example.org\n',
    );
  });

  it('with --json is the run as it came', async () => {
    const { stdout } = await against(() => ({ body: runJson() }), ['show', '--json', RUN_ID]);
    expect(JSON.parse(stdout)).toEqual(runJson());
  });
});

describe('events', () => {
  const at = '2026-03-02T10:00:00.000Z';
  const EVENTS = [
    { seq: 1, type: 'run.submitted', at, data: {} },
    { seq: null, type: 'run.started', at, data: { fence: 1 } },
    { seq: 2, type: 'progress', at, data: { percent: 40, note: 'a\tb' } },
  ];
  const pages: Answer = ({ query }) => {
    const start = Number(query.get('cursor') ?? 0);
    const end = start + Math.min(2, Number(query.get('limit')));
    return { body: { items: EVENTS.slice(start, end), next: end < EVENTS.length ? String(end) : null } };
  };

  it('in a pipe is one line an event, oldest first, over all pages', async () => {
    const { code, stdout, stderr, asked } = await against(pages, ['events', RUN_ID]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(
      `1\t${at}\trun.submitted\t{}\n\t${at}\trun.started\t{"fence":1}\n` +
        `2\t${at}\tprogress\t{"percent":40,"note":"a\\tb"}\n`,
    );
    expect(asked.map(({ path, query }) => [path, query.get('cursor')])).toEqual([
      [`/v1/runs/${RUN_ID}/events`, null],
      [`/v1/runs/${RUN_ID}/events`, '2'],
    ]);
  });

  it('stops at its limit and says that there are more; with --json is the list', async () => {
    const some = await against(pages, ['events', RUN_ID, '--limit', '1']);
    expect(some.stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(some.stderr).toBe('capstan: these are the oldest 1; more: --limit N or --all\n');
    const json = await against(pages, ['events', RUN_ID, '--json', '--all']);
    expect(JSON.parse(json.stdout)).toEqual({ items: EVENTS, next: null });
  });
});

describe('cancel', () => {
  it('tells whether the run has ended or its tool is still being stopped', async () => {
    const ended = endedJson('canceled', { code: 'canceled', kind: 'requested' });
    const now = await against(() => ({ body: ended }), ['cancel', RUN_ID]);
    expect(now).toMatchObject({ code: 0, stdout: `${RUN_ID} canceled\n`, stderr: '' });
    expect(now.asked.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['POST', `/v1/runs/${RUN_ID}/cancel`, undefined],
    ]);
    const later = await against(() => ({ status: 202, body: runningJson() }), ['cancel', RUN_ID]);
    expect(later).toMatchObject({ code: 0, stdout: `${RUN_ID} is being stopped\n` });
  });

  it('of a run that ended otherwise is refused with its end', async () => {
    const reply = problem(409, 'run_ended', { detail: 'the run succeeded', end: { code: 'ok' } });
    expect(await against(() => reply, ['cancel', RUN_ID])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: 'capstan: Title of run_ended: the run succeeded\n',
    });
    const json = await against(() => reply, ['cancel', '--json', RUN_ID]);
    expect(JSON.parse(json.stderr)).toEqual(reply.body);
  });
});

describe('the installation', () => {
  const worker = {
    id: 'wrk_1',
    name: 'r1',
    kind: 'replica',
    state: 'live',
    slots: 4,
    queues: ['default', 'gpu'],
    version: '0.1.0',
    leaseUntil: '2026-03-02T10:00:30.000Z',
    seenAt: '2026-03-02T10:00:00.000Z',
    connected: true,
    running: 2,
    startedAt: '2026-03-02T09:00:00.000Z',
    endedAt: null,
  };

  it('F159 workers lists who executes runs, and when each was seen', async () => {
    const list = { items: [worker], next: null };
    const { stdout, asked } = await against(() => ({ body: list }), ['workers']);
    expect(stdout).toBe('r1\tlive\tyes\t2\t4\t2026-03-02T10:00:00.000Z\twrk_1\t0.1.0\tdefault,gpu\n');
    expect(asked.map(({ path, query }) => `${path}?${query}`)).toEqual(['/v1/workers?limit=200']);
    expect(JSON.parse((await against(() => ({ body: list }), ['workers', '--json'])).stdout)).toEqual(list);
  });

  it('workers walks every page of the list', async () => {
    const names = ['r1', 'r2', 'r3'];
    const pages: Answer = ({ query }) => {
      const index = Number(query.get('cursor') ?? 0);
      const next = index + 1 < names.length ? String(index + 1) : null;
      return { body: { items: [{ ...worker, name: names[index] }], next } };
    };
    const { stdout, asked } = await against(pages, ['workers']);
    expect(stdout.match(/^r\d/gm)).toEqual(names);
    expect(asked.map(({ query }) => query.get('cursor'))).toEqual([null, '1', '2']);
    const items = names.map((name) => ({ ...worker, name }));
    expect(JSON.parse((await against(pages, ['workers', '--json'])).stdout)).toEqual({ items, next: null });
  });

  it('audit verify exits 0 when the chain holds and 1 when it is broken, which is an answer', async () => {
    const whole = { ok: true, chain: 'org_1', entries: 12, head: { seq: 12, link: 'ab' }, anchors: 0, tookMs: 3 };
    const good = await against(() => ({ body: whole }), ['audit', 'verify']);
    expect(good).toMatchObject({ code: 0, stderr: '' });
    expect(good.stdout).toContain('verdict\tok\n');
    const broken = { ...whole, ok: false, entries: 4, brokenAt: 5, check: 'link' };
    const bad = await against(() => ({ body: broken }), ['audit', 'verify']);
    expect(bad).toMatchObject({ code: 1, stderr: expect.stringContaining('entry 5: its content was changed') });
    expect(bad.stdout).toContain('verdict\tbroken\nbroken at\t5\nfailed check\tlink\n');
    const json = await against(() => ({ body: broken }), ['audit', 'verify', '--json']);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toEqual(broken);
  });
});

describe('on a terminal', () => {
  /** What a person sees. `script` of util-linux makes the terminal. */
  async function onTerminal(answer: Answer, args: string, env: Readonly<Record<string, string>> = {}) {
    const server = await standIn(answer);
    const command = `stty cols 200; exec "${process.execPath}" "${await mainFile()}" ${args}`;
    const seen = await inFolder((folder) =>
      startProcess('script', ['-qec', command, '/dev/null'], {
        cwd: folder,
        env: cleanEnv({ ...at(server.url).env, TZ: 'America/New_York', SHELL: '/bin/sh', TERM: 'xterm', ...env }),
      }).finished(),
    );
    await server.close();
    return { ...seen, lines: seen.stdout.replaceAll('\r\n', '\n').split('\n') };
  }

  it('a table has titles, colored states and local times, and nobody’s control characters', async () => {
    const { code, stdout, lines } = await onTerminal(page, 'runs');
    expect(code).toBe(0);
    expect(lines[0]).toMatch(/ID.*STATE.*KIND.*QUEUE.*CREATED.*TOOK.*NAME/);
    expect(stdout).toContain('\u001b[36mrunning\u001b[39m');
    expect(stdout).toContain('\u001b[31mfailed\u001b[39m');
    expect(stdout).toContain('2026-03-02 05:00:00');
    expect(stdout).not.toContain('\u001b[2J');
  });

  it('NO_COLOR takes the colors away and nothing else', async () => {
    const { stdout, lines } = await onTerminal(page, 'runs', { NO_COLOR: '1' });
    expect(stdout).not.toContain('\u001b[');
    expect(lines[2]).toBe('run_b  failed   command  default  2026-03-02 05:00:00  3.20s  -');
  });

  it('a run is shown without what it has not, and JSON is indented', async () => {
    const { stdout } = await onTerminal(() => ({ body: runJson() }), `show ${RUN_ID}`, { NO_COLOR: '1' });
    expect(stdout).toContain('state              pending\r\n');
    expect(stdout).not.toContain('exit code');
    const json = await onTerminal(() => ({ body: runJson() }), `show ${RUN_ID} --json`);
    expect(json.lines.slice(0, 2)).toEqual(['{', `  "id": "${RUN_ID}",`]);
  });
});
