import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemTiming } from '../../src/platform/time.js';
import { at, capstan, inFolder, start, until } from './cli.fixture.js';
import { capstanHere } from './here.fixture.js';
import { onStage } from './stage.fixture.js';
import { type Answer, type Asked, endedJson, problem, RUN_ID, runJson, standIn } from './stand-in.fixture.js';

/** Runs one command line against a server that answers so, and hands out what it was asked. */
async function against(answer: Answer, args: string[], stdin?: string | Buffer) {
  const server = await standIn(answer);
  const finished = await capstan(args, { ...at(server.url), ...(stdin === undefined ? {} : { stdin }) });
  await server.close();
  return { ...finished, asked: server.asked, body: server.asked[0]?.body, url: server.url };
}

const TAKEN: Answer = () => ({ status: 201, body: runJson() });

function keys(asked: readonly Asked[]): (string | undefined)[] {
  return asked.map(({ headers }) => headers['idempotency-key']?.toString());
}

describe('run', () => {
  it('submits the command as it stands behind --, and prints the id of the run alone', async () => {
    const { code, stdout, stderr, asked, body } = await against(TAKEN, ['run', '--', 'sh', '-c', 'a "b"', '--', '-x']);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${RUN_ID}\n`, stderr: '' });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ method: 'POST', path: '/v1/runs' });
    expect(asked[0]?.headers).toMatchObject({
      authorization: 'Bearer cap_token-of-the-test',
      'content-type': 'application/json',
    });
    expect(body).toEqual({ kind: 'command', spec: { argv: ['sh', '-c', 'a "b"', '--', '-x'] } });
  });

  it('sends all that was said, and nothing that wasn’t', async () => {
    const said = ['--name', 'nightly backup', '--queue', 'gpu', '--priority', '-5', '--timeout', '15m'];
    const more = ['--label', 'env=prod', '--label', 'note=a=b', '--env', 'TZ=UTC', '--env', 'EMPTY=', '--cwd', '/srv'];
    const codes = ['--success-code', '0', '--success-code', '3'];
    const { body } = await against(TAKEN, ['run', ...said, ...more, ...codes, 'pg_dump', '-Fc']);
    expect(body).toEqual({
      kind: 'command',
      name: 'nightly backup',
      queue: 'gpu',
      priority: -5,
      timeout: '15m',
      labels: { env: 'prod', note: 'a=b' },
      spec: { argv: ['pg_dump', '-Fc'], env: { TZ: 'UTC', EMPTY: '' }, cwd: '/srv', successCodes: [0, 3] },
    });
  });

  it('sends what the tool is to read when it is asked to, and never what happens to be piped in', async () => {
    const unasked = await against(TAKEN, ['run', '--', 'cat'], 'hi\n');
    expect(unasked.body).toEqual({ kind: 'command', spec: { argv: ['cat'] } });
    const asked = await against(TAKEN, ['run', '--stdin', '-', '--', 'cat', '--stdin'], 'grüße\n');
    expect(asked.body).toEqual({ kind: 'command', spec: { argv: ['cat', '--stdin'], stdin: 'grüße\n' } });
    const large = await against(TAKEN, ['run', '--stdin', '-', '--', 'cat'], Buffer.alloc(256 * 1024 + 1, 'a'));
    expect(large).toMatchObject({ code: 2, stderr: expect.stringContaining('more than 262144 bytes'), asked: [] });
    await inFolder(async (folder) => {
      const file = join(folder, 'input');
      await writeFile(file, 'from a file');
      const { body } = await against(TAKEN, ['script', '-', '--stdin', file], 'cat\n');
      expect(body).toMatchObject({ kind: 'script', spec: { content: 'cat\n', stdin: 'from a file' } });
    });
  });

  it('prints the run as it came with --json', async () => {
    const { code, stdout, stderr } = await against(TAKEN, ['run', '--json', '--', 'ls']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(runJson());
  });
});

describe('script', () => {
  it('sends a file with its arguments and options, its interpreter guessed', async () => {
    await inFolder(async (folder) => {
      const file = join(folder, 'train.py');
      await writeFile(file, 'print("grüße")\n');
      const args = ['script', file, '--queue', 'gpu', '--env', 'A=1', '--', '--epochs', '3'];
      const { body } = await against(TAKEN, args);
      expect(body).toEqual({
        kind: 'script',
        queue: 'gpu',
        spec: { interpreter: 'python3', content: 'print("grüße")\n', args: ['--epochs', '3'], env: { A: '1' } },
      });
    });
  });

  it('- is read from standard input, unchanged, for the interpreter of its first line', async () => {
    const content = '\u{FEFF}#!/bin/sh\r\necho 1\r\n';
    const { code, body } = await against(TAKEN, ['script', '-'], content);
    expect(code).toBe(0);
    expect(body).toEqual({ kind: 'script', spec: { interpreter: 'bash', content, args: [] } });
    const named = await against(TAKEN, ['script', '-', '--interpreter', 'node'], '#!/bin/sh\n');
    expect(named.body).toMatchObject({ spec: { interpreter: 'node' } });
  });

  it('that isn’t text, or is larger than any run may be, is refused before anybody is asked', async () => {
    const binary = await against(TAKEN, ['script', '-'], Buffer.from([0x23, 0xff, 0xfe]));
    expect(binary).toMatchObject({ code: 2, stderr: 'capstan: usage: standard input is not UTF-8 text\n', asked: [] });
    const large = await against(TAKEN, ['script', '-'], Buffer.alloc(256 * 1024 + 1, 'a'));
    expect(large).toMatchObject({ code: 2, stderr: expect.stringContaining('more than 262144 bytes'), asked: [] });
  });
});

describe('rerun', () => {
  it('makes a new run under a key and prints its id', async () => {
    const made = { status: 201, body: runJson({ id: 'run_new', rerunOf: RUN_ID }) };
    const { code, stdout, stderr, asked } = await against(() => made, ['rerun', RUN_ID]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'run_new\n', stderr: '' });
    expect(asked.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['POST', `/v1/runs/${RUN_ID}/rerun`, undefined],
    ]);
    expect(keys(asked)[0]).toMatch(/^cli-[0-9a-f-]{36}$/);
    const own = await against(() => made, ['rerun', RUN_ID, '--idempotency-key', 'k', '--json']);
    expect(keys(own.asked)).toEqual(['k']);
    expect(JSON.parse(own.stdout)).toEqual(made.body);
  });

  it('is sent again under the same key after a lost connection', async () => {
    let sent = 0;
    const answer: Answer = () => (sent++ === 0 ? { hangUp: true } : { status: 201, body: runJson() });
    const { code, asked } = await against(answer, ['rerun', RUN_ID]);
    expect({ code, tries: asked.length, keys: new Set(keys(asked)).size }).toEqual({ code: 0, tries: 2, keys: 1 });
  });

  it('of a run that goes on says which command cancels it, where a cancel would help', async () => {
    const refusals: [detail: string, stderr: string][] = [
      [`cancel it (POST /v1/runs/${RUN_ID}/cancel) or wait for its end`, `\n  cancel it: capstan cancel ${RUN_ID}\n`],
      ['its holder was asked to stop it: send this again once it has ended', '\n'],
    ];
    for (const [detail, behind] of refusals) {
      const { code, stderr } = await against(() => problem(409, 'run_not_ended', { detail }), ['rerun', RUN_ID]);
      expect({ code, stderr }).toEqual({ code: 3, stderr: `capstan: Title of run_not_ended: ${detail}${behind}` });
    }
  });

  it('--wait follows the new run and exits with its code', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = endedJson('failed', { code: 'tool_failed', exitCode: 5, detail: 'exit code 5' });
      stage.write('stdout', 'once more\n');
      const old = RUN_ID.replace(/.$/, '0');
      const { code, stdout } = await capstan(['rerun', '--wait', old], call);
      expect({ code, stdout }).toEqual({ code: 5, stdout: 'once more\n' });
      expect(server.asked.map(({ path }) => path)).toEqual([`/v1/runs/${old}/rerun`, `/v1/runs/${RUN_ID}/stream`]);
    });
  });
});

describe('http', () => {
  it('is a GET of the URL, or a POST when it has a body, and what was not said is left out', async () => {
    const get = await against(TAKEN, ['http', 'https://example.org/a?b=c']);
    expect(get).toMatchObject({ code: 0, stdout: `${RUN_ID}\n` });
    expect(get.body).toEqual({ kind: 'http', spec: { method: 'GET', url: 'https://example.org/a?b=c' } });
    const post = await against(TAKEN, ['http', 'https://example.org', '-d', '']);
    expect(post.body).toEqual({ kind: 'http', spec: { method: 'POST', url: 'https://example.org', body: '' } });
  });

  it('sends all that was said', async () => {
    const headers = ['-H', 'Accept: application/json', '--header', 'X-Note:  a: b '];
    const request = [
      'put',
      'https://example.org',
      ...headers,
      '-d',
      '{"a":1}',
      '--expect',
      '200,201',
      '--expect',
      '404',
    ];
    const launch = ['--follow', '3', '--queue', 'web', '--timeout', '30s', '--label', 'a=b', '--name', 'n'];
    const { body } = await against(TAKEN, ['http', ...request, ...launch]);
    expect(body).toEqual({
      kind: 'http',
      name: 'n',
      queue: 'web',
      timeout: '30s',
      labels: { a: 'b' },
      spec: {
        method: 'PUT',
        url: 'https://example.org',
        headers: { Accept: 'application/json', 'X-Note': 'a: b' },
        body: '{"a":1}',
        expectedStatus: [200, 201, 404],
        followRedirects: 3,
      },
    });
  });

  it('takes headers and body from files or standard input, so that no secret stands on the command line', async () => {
    await inFolder(async (folder) => {
      const [auth, data] = [join(folder, 'auth.txt'), join(folder, 'body.json')];
      await writeFile(auth, '# for the hook\r\n\r\nAuthorization: Bearer hunter2\r\nX-Two: 2\r\n');
      await writeFile(data, '{"grüße":1}\n');
      const url = 'https://example.org';
      const { body } = await against(TAKEN, ['http', url, '-H', `@${auth}`, '-d', `@${data}`]);
      const headers = { Authorization: 'Bearer hunter2', 'X-Two': '2' };
      expect(body).toMatchObject({ spec: { method: 'POST', headers, body: '{"grüße":1}\n' } });
      const piped = await against(TAKEN, ['http', url, '-d', '-'], 'from a pipe\n');
      expect(piped.body).toMatchObject({ spec: { body: 'from a pipe\n' } });
      const headed = await against(TAKEN, ['http', url, '-H', '@-'], 'X-One: 1\n');
      expect(headed.body).toMatchObject({ spec: { method: 'GET', headers: { 'X-One': '1' } } });
    });
  });

  it('reads what has no size, such as a named pipe, and no more of what has no end than is taken', async () => {
    await inFolder(async (folder) => {
      const pipe = join(folder, 'pipe');
      const url = 'https://example.org';
      const writing = spawn('sh', ['-c', 'mkfifo "$1" && echo ready && printf "from a pipe" > "$1"', 'sh', pipe]);
      await new Promise((resolve) => writing.stdout.once('data', resolve));
      const { body } = await against(TAKEN, ['http', url, '-d', `@${pipe}`]);
      expect(body).toMatchObject({ spec: { body: 'from a pipe' } });
      const endless = ['http', url, '-d', '@/dev/zero'];
      for (const args of [endless, ['http', url, '-H', '@/dev/zero'], ['script', '/dev/zero']]) {
        const { code, stderr, asked } = await against(TAKEN, args);
        expect({ code, asked }).toEqual({ code: 2, asked: [] });
        expect(stderr).toBe('capstan: usage: /dev/zero holds more than 262144 bytes\n');
      }
    });
  });

  it('takes a file of 256 KiB whole, and none that is longer', async () => {
    await inFolder(async (folder) => {
      const file = join(folder, 'body');
      await writeFile(file, 'a'.repeat(256 * 1024));
      const args = ['http', 'https://example.org', '-d', `@${file}`];
      expect((await against(TAKEN, args)).body).toMatchObject({ spec: { body: 'a'.repeat(256 * 1024) } });
      await writeFile(file, 'a'.repeat(256 * 1024 + 1));
      expect(await against(TAKEN, args)).toMatchObject({ code: 2, asked: [] });
    });
  });

  it('shows no header and no URL that it refuses', async () => {
    await inFolder(async (folder) => {
      const auth = join(folder, 'auth.txt');
      await writeFile(auth, 'Authorization hunter2\n');
      const url = 'https://example.org';
      const wrong: [args: string[], says: string][] = [
        [['http', url, '-H', 'Authorization=hunter2'], "--header: expected 'Name: value'"],
        [['http', url, '-H', `@${auth}`], "--header: expected 'Name: value'"],
        [['http', url, '-H', 'A: hunter2', '-H', 'a: hunter2'], '--header: a is given twice'],
        [['http', 'hunter2@example.org'], 'expected a URL that begins with http:// or https://'],
        [['http', url, '-d', '-', '-H', '@-'], 'standard input is read once'],
        [['http', url, '-d', '@-', '-H', '@-'], 'standard input is read once'],
        [['http', url, '-H', '@-', '-H', '@-'], 'standard input is read once'],
        [['http', url, '-d', 'hunter2', '-d', 'a'], '--data is given twice'],
      ];
      for (const [args, says] of wrong) {
        const { code, stderr, asked } = await against(TAKEN, args);
        expect({ code, asked: asked.length }).toEqual({ code: 2, asked: 0 });
        expect(stderr).toContain(says);
        expect(stderr).not.toContain('hunter2');
      }
    });
  });

  it('--wait prints the body of the answer and exits with 1 when the request failed', async () => {
    await onStage(async (stage, call) => {
      stage.run = endedJson('failed', { code: 'tool_failed', detail: 'status 500' });
      stage.write('stdout', '{"error":"x"}');
      const { code, stdout } = await capstan(['http', '--wait', 'https://example.org'], call);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '{"error":"x"}' });
    });
  });
});

describe('a submit', () => {
  it('carries a new Idempotency-Key each time, or the one that was given, as the bytes it was typed in', async () => {
    const server = await standIn(TAKEN);
    for (const own of [[], [], ['--idempotency-key', 'nächtlich 2026']]) {
      await capstan(['run', ...own, '--', 'ls'], at(server.url));
    }
    await server.close();
    const [first, second, third] = keys(server.asked);
    expect(first).toMatch(/^cli-[0-9a-f-]{36}$/);
    expect(second).toMatch(/^cli-[0-9a-f-]{36}$/);
    expect(second).not.toBe(first);
    expect(Buffer.from(third ?? '', 'latin1').toString('utf8')).toBe('nächtlich 2026');
  });

  it('is sent again under the same key after a lost connection and a 503, and makes one run', async () => {
    const replies = [{ hangUp: true }, problem(503, 'unavailable'), { status: 201, body: runJson() }] as const;
    let sent = 0;
    const { code, stdout, asked } = await against(() => replies[sent++] ?? {}, ['run', '--', 'ls']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${RUN_ID}\n` });
    expect(asked).toHaveLength(3);
    expect(new Set(keys(asked)).size).toBe(1);
    expect(asked[1]?.body).toEqual(asked[0]?.body);
  });

  it('whose answer broke off half-way is sent again', async () => {
    let sent = 0;
    const answer: Answer = () => ({
      status: 201,
      body: runJson(),
      ...(sent++ === 0 ? { hangUp: { afterBytes: 40 } } : {}),
    });
    const { code, stdout, asked } = await against(answer, ['run', '--', 'ls']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${RUN_ID}\n` });
    expect(new Set(keys(asked)).size).toBe(1);
  });

  it('waits as long as Retry-After says', async () => {
    const busy = { ...problem(503, 'unavailable'), headers: { 'retry-after': '7' } };
    const events: string[] = [];
    const server = await standIn(() => {
      events.push('asked');
      return events.length === 1 ? busy : { status: 201, body: runJson() };
    });
    const delay = async (ms: number) => void events.push(`waited ${ms} ms`);
    const timing = { ...systemTiming, delay, random: () => 0 };
    const { code } = await capstanHere(['run', '--', 'ls'], { env: at(server.url).env ?? {}, timing });
    await server.close();
    expect(code).toBe(0);
    expect(events).toEqual(['asked', 'waited 7000 ms', 'asked']);
  });

  it('is not held up by a server that asks for more patience than there is', async () => {
    const reply = { ...problem(503, 'unavailable', { detail: 'no database' }), headers: { 'retry-after': '60' } };
    const { code, stderr, asked } = await against(() => reply, ['run', '--', 'ls']);
    expect({ code, stderr }).toEqual({ code: 3, stderr: 'capstan: Title of unavailable: no database\n' });
    expect(asked).toHaveLength(1);
  });

  it('that is refused is not sent again', async () => {
    for (const status of [401, 409, 500]) {
      const { code, asked } = await against(() => problem(status, 'refused'), ['run', '--', 'ls']);
      expect({ status, code, tries: asked.length }).toEqual({ status, code: 3, tries: 1 });
    }
  });

  it('under a key that was used before says which run it made', async () => {
    const answer: Answer = () => ({ body: runJson(), headers: { 'idempotency-replayed': 'true' } });
    const own = await against(answer, ['run', '--idempotency-key', 'k', '--', 'ls']);
    expect(own).toMatchObject({ code: 0, stdout: `${RUN_ID}\n` });
    expect(own.stderr).toBe(`capstan: this key was used before: it made ${RUN_ID}\n`);
    expect((await against(answer, ['run', '--', 'ls'])).stderr).toBe('');
  });

  it('under a key that was used before is not told as submitted when it is waited for', async () => {
    const answer: Answer = ({ method }) =>
      method === 'POST'
        ? { body: runJson(), headers: { 'idempotency-replayed': 'true' } }
        : problem(410, 'run_removed', { detail: 'gone' });
    const { stderr } = await against(answer, ['run', '--wait', '--idempotency-key', 'k', '--', 'ls']);
    expect(stderr).toContain(`capstan: this key was used before: it made ${RUN_ID}\n`);
    expect(stderr).not.toContain('submitted');
  });

  it('that Ctrl-C cuts off says how to find out and how to send it again without a second run', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const server = await standIn(async () => {
      await held;
      return {};
    });
    const running = await start(['run', '--', 'ls'], at(server.url));
    await until('the submit is sent', () => server.asked.length === 1);
    running.child.kill('SIGINT');
    const { code, stdout, stderr } = await running.finished();
    release();
    await server.close();
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(stderr).toContain('capstan: the run may have been submitted\n');
    expect(stderr).toContain(`--idempotency-key ${keys(server.asked)[0]}`);
  });
});
