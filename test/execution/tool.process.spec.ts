/** A tool as a person writes one: it reports while it works, leaves a result, and asks for what nobody answers. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataFolder, type ServerProcess, startServer, until } from '../server.js';

interface RunJson {
  readonly id: string;
  readonly state: string;
  readonly progress: unknown;
  readonly output: unknown;
  readonly end: { readonly code: string; readonly exitCode: number | null } | null;
}

interface EventJson {
  readonly seq: number | null;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

let data: Awaited<ReturnType<typeof dataFolder>>;
let scratch: string;
let server: ServerProcess;
let token: string;
/** Wants a password for everything. */
const strict = createServer((_request, response) => {
  response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="private"' }).end();
});

beforeAll(async () => {
  await new Promise<void>((resolve) => strict.listen(0, '127.0.0.1', resolve));
  data = await dataFolder();
  scratch = await mkdtemp(join(tmpdir(), 'capstan-tool-'));
  server = await startServer({ CAPSTAN_DATA_DIR: data.path, CAPSTAN_SLOTS: '1' });
  token = (await readFile(join(data.path, 'admin-token'), 'utf8')).trim();
});

afterAll(async () => {
  strict.close();
  server.child.kill('SIGTERM');
  await server.finished;
  await data.remove();
  await rm(scratch, { recursive: true, force: true });
});

async function get<T>(path: string): Promise<T> {
  const answer = await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(200);
  return (await answer.json()) as T;
}

const show = (id: string) => get<RunJson>(`/v1/runs/${id}`);
const logs = async (id: string) => {
  const answer = await fetch(`${server.url}/v1/runs/${id}/output`, { headers: { authorization: `Bearer ${token}` } });
  return answer.text();
};

async function submit(spec: Record<string, unknown>): Promise<string> {
  const answer = await fetch(`${server.url}/v1/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'script', spec }),
  });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as RunJson).id;
}

const ended = (id: string) =>
  until(`${id} ends`, async () => {
    const run = await show(id);
    return run.end && { ...run, end: run.end };
  });

/** Those that have a number: the others are derived. */
async function eventsOf(id: string): Promise<EventJson[]> {
  const { items } = await get<{ items: EventJson[] }>(`/v1/runs/${id}/events?limit=200`);
  return items.filter(({ seq }) => seq !== null);
}

describe('a tool talks back', () => {
  it('its progress is seen while it works, its events and its output are kept, and a bad line is told', async () => {
    const content = `
      import json, os, time
      def report(line):
        with open(os.environ["CAPSTAN_EVENTS_FILE"], "a") as file: file.write(line + "\\n")
      def wait(name):
        while not os.path.exists(os.path.join("${scratch}", name)): time.sleep(0.01)
      report(json.dumps({"type": "progress", "percent": 10, "step": "größte"}))
      wait("first")
      report(json.dumps({"type": "progress", "percent": 50}))
      report('{"type": "host.changed", "host": "db1"}')
      report("{oops: secret")
      report('["no", "object"]')
      wait("second")
      report(json.dumps({"type": "progress", "percent": 100}))
      with open(os.environ["CAPSTAN_OUTPUT_FILE"], "w") as file: json.dump({"rows": 3, "ok": True}, file)
      print("done")`;
    const id = await submit({ interpreter: 'python3', content: content.replaceAll('\n      ', '\n') });
    const progress = async () => {
      const run = await show(id);
      expect(run.end).toBeNull();
      return run.progress;
    };
    await until('progress is 10', async () => JSON.stringify(await progress())?.includes('"percent":10'));
    expect(await progress()).toEqual({ percent: 10, step: 'größte' });
    writeFileSync(join(scratch, 'first'), '');
    await until('progress is 50', async () => JSON.stringify(await progress()) === '{"percent":50}');
    writeFileSync(join(scratch, 'second'), '');
    const run = await ended(id);
    expect(run).toMatchObject({ state: 'succeeded', progress: { percent: 100 }, output: { rows: 3, ok: true } });
    const events = await eventsOf(id);
    expect(events.map(({ type, data: told }) => [type, told])).toEqual([
      ['run.submitted', expect.anything()],
      ['progress', { percent: 10, step: 'größte' }],
      ['progress', { percent: 50 }],
      ['host.changed', { host: 'db1' }],
      ['run.report_refused', { source: 'events', line: 4, reason: 'not valid JSON' }],
      ['message', { value: ['no', 'object'] }],
      ['progress', { percent: 100 }],
      ['run.ended', expect.anything()],
    ]);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await logs(id)).toBe('done\n');
  });

  it.each([
    ['is no JSON', 'echo done > "$CAPSTAN_OUTPUT_FILE"', 'not valid JSON'],
    ['is binary', 'head -c 1000 /dev/urandom > "$CAPSTAN_OUTPUT_FILE"', 'not valid'],
    ['is huge', 'truncate -s 10G "$CAPSTAN_OUTPUT_FILE"', 'longer than'],
    ['is no file', 'mkfifo "$CAPSTAN_OUTPUT_FILE"', 'not a regular file'],
    ['is a link to a secret', 'ln -s /etc/passwd "$CAPSTAN_OUTPUT_FILE"', 'not a regular file'],
    ['holds what cannot be stored', `printf '{"a":"\\\\u0000"}' > "$CAPSTAN_OUTPUT_FILE"`, 'cannot be stored'],
    ['holds half a character', `printf '{"a":"\\\\ud800"}' > "$CAPSTAN_OUTPUT_FILE"`, 'cannot be stored'],
    ['holds no number', `echo '{"a":1e400}' > "$CAPSTAN_OUTPUT_FILE"`, 'cannot be stored'],
    [
      'is a string of 10 MB',
      `(printf '"'; yes | head -c 10000000; printf '"') > "$CAPSTAN_OUTPUT_FILE"`,
      'longer than',
    ],
  ])('F027 an output that %s is an event that says so; the run keeps its own end', async (_what, content, reason) => {
    const id = await submit({ interpreter: 'bash', content: `${content}; exit 7` });
    expect(await ended(id)).toMatchObject({ state: 'failed', output: null, end: { exitCode: 7 } });
    const [, refused, ...rest] = await eventsOf(id);
    expect(refused).toMatchObject({ type: 'run.report_refused', data: { source: 'output' } });
    expect(refused?.data.reason).toContain(reason);
    expect(rest).toHaveLength(1);
  });

  it.each(['[]', 'null', '""', '0'])('F027 an output that is %s is kept as it is', async (output) => {
    const id = await submit({ interpreter: 'bash', content: `printf '%s' '${output}' > "$CAPSTAN_OUTPUT_FILE"` });
    expect(await ended(id)).toMatchObject({ state: 'succeeded', output: JSON.parse(output) });
  });

  it('progress that is written over instead of appended is seen as well', async () => {
    const content = `
      echo '{"type": "progress", "percent": 10}' > "$CAPSTAN_EVENTS_FILE"
      until [ -e "${scratch}/over" ]; do sleep 0.01; done
      echo '{"type": "progress", "percent": 20}' > "$CAPSTAN_EVENTS_FILE"
      until [ -e "${scratch}/over-again" ]; do sleep 0.01; done
      echo '{"type": "progress", "percent": 30}' > "$CAPSTAN_EVENTS_FILE"`;
    const id = await submit({ interpreter: 'bash', content });
    const isAt = (percent: number) => async () => {
      const run = await show(id);
      expect(run.end).toBeNull();
      return JSON.stringify(run.progress) === JSON.stringify({ percent });
    };
    await until('progress is 10', isAt(10));
    writeFileSync(join(scratch, 'over'), '');
    await until('progress is 20', isAt(20));
    writeFileSync(join(scratch, 'over-again'), '');
    expect(await ended(id)).toMatchObject({ state: 'succeeded', progress: { percent: 30 } });
    expect((await eventsOf(id)).filter(({ type }) => type === 'progress').map(({ data: told }) => told)).toEqual([
      { percent: 10 },
      { percent: 20 },
      { percent: 30 },
    ]);
  });

  it('events without end or measure are counted, cut and told, and the next run gets its slot', async () => {
    const content = `
      yes '{"type":"tick"}' | head -n 12000 > "$CAPSTAN_EVENTS_FILE"
      head -c 20000000 /dev/urandom >> "$CAPSTAN_EVENTS_FILE"`;
    const id = await submit({ interpreter: 'bash', content });
    expect(await ended(id)).toMatchObject({ state: 'succeeded' });
    const page = await get<{ items: EventJson[] }>(`/v1/runs/${id}/events?limit=200`);
    expect(page.items.filter(({ type }) => type === 'tick').length).toBeGreaterThan(190);
    expect(await ended(await submit({ interpreter: 'bash', content: 'true' }))).toMatchObject({ state: 'succeeded' });
  });
});

describe('a tool that asks for what nobody answers', () => {
  const python = (code: string) => `python3 -c '${code}'`;

  it.each([
    ['a line of standard input', 'read x; echo "got:$x:$?"', 'got::1'],
    ['a password', python('import getpass; getpass.getpass()'), 'EOFError'],
    ['an answer from the terminal itself', python('open("/dev/tty")'), 'No such device or address'],
    ['a choice in a menu', 'select x in a b; do echo "$x"; done; echo "left:$?"', 'left:1'],
    // What is asked for on behalf of a server that this machine may have no program for.
    ...(isThere('git') ? [['the password of a server', 'git clone "$PRIVATE"', 'terminal prompts disabled']] : []),
  ])('F110 is told at once that there is none: %s', async (_what, content, said) => {
    const env = { PRIVATE: `http://127.0.0.1:${(strict.address() as AddressInfo).port}/none` };
    const id = await submit({ interpreter: 'bash', content: `{ ${content}; } 2>&1`, env });
    await ended(id);
    expect(await logs(id)).toContain(said);
    expect(await ended(await submit({ interpreter: 'bash', content: 'true' }))).toMatchObject({ state: 'succeeded' });
  });

  it('F110 is told so by name where programs look for it, unless the run says otherwise', async () => {
    const content = 'echo "$GIT_TERMINAL_PROMPT $TF_INPUT"';
    const usual = await submit({ interpreter: 'bash', content });
    const own = await submit({ interpreter: 'bash', content, env: { GIT_TERMINAL_PROMPT: '1', TF_INPUT: 'true' } });
    await ended(own);
    expect([await logs(usual), await logs(own)]).toEqual(['0 0\n', '1 true\n']);
  });
});

function isThere(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
