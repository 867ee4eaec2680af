/** The main job on one machine: a real command runs, is stopped, is remembered; through the real command line. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lookBeside } from '../src/platform/postgres/beside.js';
import { expectLaws } from './doctor/laws.fixture.js';
import {
  capstan,
  dataFolder,
  finishOf,
  isAlive,
  QUICK,
  type ServerProcess,
  spawnCapstan,
  startServer,
  until,
} from './server.js';

interface RunJson {
  readonly id: string;
  readonly state: string;
  readonly fence: number;
  readonly end: { code: string; detail: string; exitCode: number | null; signal: string | null; at: string } | null;
}

let data: Awaited<ReturnType<typeof dataFolder>>;
let server: ServerProcess;

beforeAll(async () => {
  data = await dataFolder();
  server = await startServer({ CAPSTAN_DATA_DIR: data.path, SECRET_OF_THE_SERVER: 'hunter2' });
});

afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.finished;
  await data.remove();
});

const cli = (args: readonly string[], input?: string) => capstan(server, data.path, args, input);

async function submit(...args: string[]): Promise<string> {
  const { stdout, stderr } = await cli(['--json', ...args]);
  expect(stderr).toBe('');
  return (JSON.parse(stdout) as RunJson).id;
}

async function show(id: string): Promise<RunJson> {
  return JSON.parse((await cli(['show', id, '--json'])).stdout) as RunJson;
}

const ended = (id: string, withinMs?: number) =>
  until(
    `${id} ends`,
    async () => {
      const run = await show(id);
      return run.end && { ...run, end: run.end };
    },
    withinMs,
  );

describe('a newcomer', () => {
  it('is told the address, where the data and the first token are, and what to try', async () => {
    expect(server.banner).toMatch(/ready at http:\/\/127\.0\.0\.1:\d+/);
    expect(server.banner).toContain(data.path);
    expect(server.banner).toContain(join(data.path, 'admin-token'));
    expect(server.banner).toContain('npx capstan run --wait -- echo hello');
    expect((await stat(join(data.path, 'admin-token'))).mode & 0o777).toBe(0o600);
  });

  it('sees what a command wrote, and gets its exit code', async () => {
    expect(await cli(['run', '--wait', '--', 'echo', 'hello'])).toMatchObject({ code: 0, stdout: 'hello\n' });
    const failed = await cli(['run', '--wait', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7']);
    expect(failed).toMatchObject({ code: 7, stdout: 'out\n' });
    expect(failed.stderr).toContain('err\n');
  });

  it('runs a shell loop and Python from standard input', async () => {
    const loop = await cli(['script', '-', '--wait'], 'for i in 1 2 3; do echo "line $i"; done\n');
    expect(loop).toMatchObject({ code: 0, stdout: 'line 1\nline 2\nline 3\n' });
    const python = await cli(
      ['script', '-', '--interpreter', 'python3', '--wait', '--', 'x'],
      'import sys\nprint(sys.argv[1] * 3)\n',
    );
    expect(python).toMatchObject({ code: 0, stdout: 'xxx\n' });
  });
});

describe('a tool', () => {
  it('F109 that leaves a background process behind ends at once, with its code and its output whole', async () => {
    const id = await submit('run', '--', 'bash', '-c', 'sleep 600 & echo hi; exit 3');
    const run = await ended(id, 5_000);
    expect(run).toMatchObject({ state: 'failed', end: { code: 'tool_failed', exitCode: 3, signal: null } });
    expect(run.end.detail).toContain('left behind');
    expect((await cli(['logs', id])).stdout).toBe('hi\n');
  });

  it('F080 may write any bytes: they are kept unchanged, both streams apart', async () => {
    const id = await submit(
      'run',
      '--',
      'bash',
      '-c',
      String.raw`printf 'A\0B\n\xff\xfe\xed\xa0\x80'; printf 'e\0' >&2`,
    );
    await ended(id);
    const output = async (stream: string) => {
      const token = (await readFile(join(data.path, 'admin-token'), 'utf8')).trim();
      const answer = await fetch(`${server.url}/v1/runs/${id}/output?stream=${stream}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      return Buffer.from(await answer.arrayBuffer()).toString('hex');
    };
    expect(await output('stdout')).toBe('4100420afffeeda080');
    expect(await output('stderr')).toBe('6500');
  });

  it('that cannot be started ends its run failed with a clear detail, and the replica lives on', async () => {
    const missing = await ended(await submit('run', '--', 'no-such-program-anywhere'));
    expect(missing).toMatchObject({ state: 'failed', end: { code: 'unavailable', exitCode: null } });
    expect(missing.end.detail).toContain('no-such-program-anywhere');
    const nowhere = await ended(await submit('run', '--cwd', '/no/such/folder', '--', 'true'));
    expect(nowhere).toMatchObject({ state: 'failed', end: { code: 'invalid_input' } });
    expect(nowhere.end.detail).toContain('/no/such/folder');
    const script = join(dirname(data.path), 'long.json');
    await writeFile(script, JSON.stringify({ kind: 'command', spec: { argv: ['echo', 'x'.repeat(200_000)] } }));
    const token = (await readFile(join(data.path, 'admin-token'), 'utf8')).trim();
    const answer = await fetch(`${server.url}/v1/runs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: await readFile(script),
    });
    expect(answer.status).toBe(201);
    const long = await ended(((await answer.json()) as RunJson).id);
    expect(long).toMatchObject({ state: 'failed', end: { code: 'invalid_input' } });
    expect(long.end.detail).toMatch(/argument/);
    expect(await cli(['run', '--wait', '--', 'echo', 'alive'])).toMatchObject({ code: 0, stdout: 'alive\n' });
  });

  it('F092 gets a clean environment and a private folder that is gone afterwards', async () => {
    const { stdout } = await cli([
      'run',
      '--wait',
      '--env',
      'GREETING=hi',
      '--',
      'bash',
      '-c',
      'env | sort; echo "PWD_IS=$PWD"; touch left',
    ]);
    const names = stdout.split('\n').map((line) => line.split('=')[0]);
    expect(names).toEqual([
      'CAPSTAN_ATTEMPT',
      'CAPSTAN_EVENTS_FILE',
      'CAPSTAN_FENCE',
      'CAPSTAN_OUTPUT_FILE',
      'CAPSTAN_RUN_ID',
      'GIT_TERMINAL_PROMPT',
      'GREETING',
      'HOME',
      'LANG',
      'PATH',
      'PWD',
      'SHLVL',
      'TF_INPUT',
      '_',
      'PWD_IS',
      '',
    ]);
    expect(stdout).not.toContain('hunter2');
    const folder = /PWD_IS=(.*)/.exec(stdout)?.[1] ?? '';
    expect(folder).not.toBe('');
    await expect(stat(folder)).rejects.toThrow('ENOENT');
  });

  it('S4-21 S0-60 S1-12 that ignores TERM is killed with its whole group when it is canceled', async () => {
    const id = await submit(
      'run',
      '--',
      'bash',
      '-c',
      'trap "" TERM; (trap "" TERM; sleep 300) & echo $$ $!; wait; sleep 300',
    );
    const pids = await until('the tool says its processes', async () => {
      const { stdout } = await cli(['logs', id]);
      return /^(\d+) (\d+)\n/.exec(stdout)?.slice(1).map(Number);
    });
    expect(await cli(['cancel', id])).toMatchObject({ code: 0 });
    expect(await ended(id)).toMatchObject({
      state: 'canceled',
      end: { code: 'canceled', kind: 'requested', signal: 'SIGKILL' },
    });
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('S1-12 that overruns its timeout is stopped and its run ends timed out', async () => {
    const id = await submit('run', '--timeout', '1s', '--', 'sleep', '300');
    expect(await ended(id)).toMatchObject({ state: 'timed_out', end: { code: 'timeout', signal: 'SIGTERM' } });
  });

  it('S1-12 that overruns its timeout and ignores TERM is killed after the grace period, with its group', async () => {
    const script = 'trap "echo term" TERM; (trap "" TERM; sleep 300) & echo $$ $!; while :; do sleep 0.1; done';
    const id = await submit('run', '--timeout', '1s', '--', 'bash', '-c', script);
    expect(await ended(id)).toMatchObject({
      state: 'timed_out',
      end: { code: 'timeout', exitCode: null, signal: 'SIGKILL' },
    });
    const { stdout } = await cli(['logs', id]);
    expect(stdout, 'TERM came first').toMatch(/^\d+ \d+\n[\s\S]*term\n$/);
    expect(stdout.split(/\s/, 2).map(Number).filter(isAlive)).toEqual([]);
  });

  it('S4-02 never runs beside more than the slots allow', async () => {
    const mark = join(dirname(data.path), 'slots');
    await writeFile(mark, '');
    const script = `echo + >> ${mark}; sleep 0.2; echo - >> ${mark}`;
    const ids = await Promise.all(Array.from({ length: 8 }, () => submit('run', '--', 'sh', '-c', script)));
    await Promise.all(ids.map((id) => ended(id)));
    let [now, most] = [0, 0];
    for (const sign of (await readFile(mark, 'utf8')).trim().split('\n')) {
      now += sign === '+' ? 1 : -1;
      most = Math.max(most, now);
    }
    expect(now).toBe(0);
    expect(most).toBeLessThanOrEqual(4);
    expect(most).toBeGreaterThan(1);
  });
});

describe('whoever watches it', () => {
  it('gets the numbers with a token, and not without', async () => {
    const token = (await readFile(join(data.path, 'admin-token'), 'utf8')).trim();
    const waiting = await fetch(`${server.url}/v1/runs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ kind: 'noop', queue: 'later' }),
    });
    expect(waiting.status).toBe(201);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(401);
    const answer = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    const text = await answer.text();
    expect(text).toMatch(
      /^capstan_runs_ended_total\{state="succeeded",code="ok",kind="command",queue="default"\} [1-9]/m,
    );
    expect(text).toMatch(/^capstan_queue_depth\{queue="later"\} 1$/m);
    expect(text).toMatch(/^capstan_queue_oldest_pending_seconds\{queue="later"\} /m);
    expect(text).toMatch(/^capstan_lease_age_seconds [0-9.]+$/m);
    expect(text).toMatch(/^capstan_db_pool_in_flight\{pool="work"\} /m);
    expect(text).not.toMatch(/(run|org|wrk)_[0-9a-z]{26}/);
  });
});

describe('a server that is killed in the middle', () => {
  it('S4-19 S3-09 leaves no tool; started again it has every run, repeats none, and its chain verifies', async () => {
    const effects = join(dirname(data.path), 'effects');
    const running = await submit('run', '--', 'bash', '-c', `while :; do echo $$ >> ${effects}; sleep 0.1; done`);
    await until('the tool works', () => readFile(effects, 'utf8').catch(() => ''));
    const later = await submit('run', '--queue', 'default', '--', 'sh', '-c', 'sleep 0.2; echo done');
    await ended(later);
    const tool = Number((await readFile(effects, 'utf8')).split('\n')[0]);
    server.child.kill('SIGKILL');
    await server.finished;
    await until('the tool is gone', () => !isAlive(tool));
    const written = await readFile(effects, 'utf8');

    server = await startServer({ CAPSTAN_DATA_DIR: data.path });
    expect(await show(later)).toMatchObject({ state: 'succeeded' });
    const lost = await ended(running, 30_000);
    expect(lost).toMatchObject({ state: 'interrupted', fence: 1, end: { code: 'worker_lost', exitCode: null } });
    expect(await readFile(effects, 'utf8')).toBe(written);
    expect(JSON.parse((await cli(['audit', 'verify', '--json'])).stdout)).toMatchObject({ ok: true });
    expect(await cli(['run', '--wait', '--', 'echo', 'again'])).toMatchObject({ code: 0, stdout: 'again\n' });
  });

  it('S0-31 calls itself by another id in its next life', async () => {
    const workers = JSON.parse((await cli(['workers', '--json'])).stdout) as { items: { id: string; state: string }[] };
    expect(new Set(workers.items.map(({ id }) => id)).size).toBe(2);
    expect(workers.items.map(({ state }) => state).sort()).toEqual(['live', 'lost']);
  });
});

describe('a server that is stopped', () => {
  it('lets a tool end within the drain time, keeps its end, and starts again with its data', async () => {
    const id = await submit('run', '--', 'sh', '-c', 'sleep 1.5; echo finished');
    await until('it runs', async () => (await show(id)).state === 'running');
    server.child.kill('SIGINT');
    server.child.kill('SIGINT');
    expect(await server.finished).toMatchObject({ code: 0 });
    server = await startServer({ CAPSTAN_DATA_DIR: data.path });
    expect(await show(id)).toMatchObject({ state: 'succeeded', end: { exitCode: 0 } });
    expect((await cli(['logs', id])).stdout).toBe('finished\n');
  });

  it('is ended at once by a second signal, its tools killed and their runs interrupted', async () => {
    const id = await submit('run', '--', 'bash', '-c', 'trap "" TERM INT; echo $$; sleep 300');
    const tool = await until(
      'the tool says its process',
      async () => Number((await cli(['logs', id])).stdout) || undefined,
    );
    server.child.kill('SIGINT');
    await until('it drains', async () => (await fetch(`${server.url}/readyz`)).status === 503);
    await until('a second signal counts', () => {
      server.child.kill('SIGINT');
      return server.child.exitCode !== null || server.log().includes('"forced":true');
    });
    await server.finished;
    expect(isAlive(tool)).toBe(false);
    server = await startServer({ CAPSTAN_DATA_DIR: data.path });
    expect(await show(id)).toMatchObject({ state: 'interrupted', end: { code: 'replica_stopped' } });
  });
});

describe('a start that cannot succeed', () => {
  const oneLine = /^capstan: [^\n]+\n$/;
  const attempt = async (env: Record<string, string>) => {
    const child = await spawnCapstan(['serve'], { ...QUICK, ...env });
    return finishOf(child);
  };

  it('a second server on the same data folder is refused, and the first is unharmed', async () => {
    const second = await attempt({ CAPSTAN_DATA_DIR: data.path });
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(oneLine);
    expect(await cli(['run', '--wait', '--', 'echo', 'unharmed'])).toMatchObject({ code: 0, stdout: 'unharmed\n' });
  });

  it('a busy port is refused in one line', async () => {
    const other = await dataFolder();
    const busy = await attempt({ CAPSTAN_DATA_DIR: other.path, CAPSTAN_PORT: new URL(server.url).port });
    expect(busy.code).toBe(1);
    expect(busy.stderr).toMatch(oneLine);
    expect(busy.stderr).toContain('CAPSTAN_PORT');
    await other.remove();
  });

  it('F152 a misspelt setting is refused in one line that names the right one', async () => {
    const misspelt = await attempt({ CAPSTAN_DATA_DIR: data.path, CAPSTAN_SLOT: '3' });
    expect(misspelt).toMatchObject({ code: 2, stdout: '' });
    expect(misspelt.stderr).toMatch(oneLine);
    expect(misspelt.stderr).toContain('CAPSTAN_SLOTS');
  });

  it('S4-07 S0-07 a database that is not PostgreSQL is refused', async () => {
    const other = await attempt({ DATABASE_URL: 'mysql://localhost/x' });
    expect(other.code).toBe(2);
    expect(other.stderr).toMatch(oneLine);
    expect(other.stderr).toContain('postgres');
  });
});

describe('an ordinary user', () => {
  it('starts it, runs a command and stops it', async () => {
    const own = await dataFolder();
    const prefix =
      process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'] : [];
    const theirs = await startServer({ CAPSTAN_DATA_DIR: own.path }, prefix);
    const answer = await capstan(theirs, own.path, ['run', '--wait', '--', 'id', '-u']);
    expect(answer).toMatchObject({ code: 0, stdout: prefix.length > 0 ? '65534\n' : `${process.getuid?.()}\n` });
    theirs.child.kill('SIGTERM');
    expect(await theirs.finished).toMatchObject({ code: 0 });
    await own.remove();
  });
});

describe('behind all of that', () => {
  it('every law holds', async () => {
    const database = lookBeside(data.path, 'capstan');
    if (database.state !== 'running') throw new Error('the database is gone');
    await expectLaws(database.url);
  });
});
