/** The command line against a real server, as its user would use it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataFolder, type ServerProcess, startServer } from '../server.js';
import { type Call, capstan, start, startOnTerminal, until } from './cli.fixture.js';

let server: ServerProcess;
let data: Awaited<ReturnType<typeof dataFolder>>;
let call: Call;

beforeAll(async () => {
  data = await dataFolder();
  server = await startServer({ CAPSTAN_DATA_DIR: data.path, CAPSTAN_HTTP_ALLOW: '127.0.0.1' });
  call = { env: { CAPSTAN_URL: server.url, CAPSTAN_TOKEN_FILE: join(data.path, 'admin-token') } };
});

afterAll(async () => {
  server?.child.kill('SIGTERM');
  await server?.finished;
  await data?.remove();
});

/** The id in `capstan: run_… submitted`. */
function idIn(text: string): string {
  return /capstan: (run_\w+) submitted/.exec(text)?.[1] ?? '';
}

describe('the command line against a server', () => {
  it('S1-12 a run that fails, succeeds, times out or is canceled ends --wait with its own code, 0, 1 and 1', async () => {
    const failed = await capstan(['run', '--wait', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'], call);
    expect({ code: failed.code, stdout: failed.stdout }).toEqual({ code: 7, stdout: 'out\n' });
    expect(failed.stderr).toMatch(/submitted\nerr\ncapstan: run_\w+ failed: exit code 7 \(tool_failed\) after /);
    expect(await capstan(['run', '--wait', '--', 'true'], call)).toMatchObject({ code: 0, stdout: '' });
    const late = await capstan(['run', '--wait', '--timeout', '1s', '--', 'sleep', '60'], call);
    expect({ code: late.code, line: late.stderr }).toEqual({ code: 1, line: expect.stringMatching(/ timed_out: /) });
    const canceled = await start(['run', '--wait', '--', 'sh', '-c', 'echo begun; sleep 60'], call);
    await until('the tool runs', () => canceled.stdout() === 'begun\n');
    await capstan(['cancel', idIn(canceled.stderr())], call);
    expect(await canceled.finished()).toMatchObject({ code: 1, stderr: expect.stringMatching(/ canceled: /) });
  });

  it('hands a tool what it is to read, and an empty input unless it was asked to', async () => {
    const piped = { ...call, stdin: 'grüße\n' };
    const read = await capstan(['run', '--wait', '--stdin', '-', '--', 'cat'], piped);
    expect(read).toMatchObject({ code: 0, stdout: 'grüße\n' });
    expect(await capstan(['run', '--wait', '--', 'cat'], piped)).toMatchObject({ code: 0, stdout: '' });
  });

  it('copies binary output of any chunking byte for byte while it comes', async () => {
    const content = 'import os,sys\nfor i in range(2000): os.write(1, bytes(range(256)) * 4)\n';
    const { code, bytes } = await capstan(['script', '--wait', '--interpreter', 'python3', '-'], {
      ...call,
      stdin: content,
    });
    const row = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    expect(code).toBe(0);
    expect(bytes.equals(Buffer.concat(Array.from({ length: 8_000 }, () => row)))).toBe(true);
  });

  it('logs -f --tail begins so many lines before the end and goes on to it', async () => {
    const tool = 'for i in 1 2 3 4 5; do echo line $i; done; read go < gate; echo over';
    const submitted = await capstan(['run', '--', 'sh', '-c', `mkfifo gate; pwd >&2; ${tool}`], call);
    const id = submitted.stdout.trim();
    let folder = '';
    while (folder === '') folder = (await capstan(['logs', id, '--stream', 'stderr'], call)).stdout.trim();
    let written = '';
    while (!written.endsWith('line 5\n')) written = (await capstan(['logs', id, '--stream', 'stdout'], call)).stdout;
    const follower = await start(['logs', '-f', '--tail', '2', '--stream', 'stdout', id], call);
    await until('the last lines are there', () => follower.stdout() === 'line 4\nline 5\n');
    const opened = await start(['run', '--wait', '--', 'sh', '-c', `echo go > ${folder}/gate`], call);
    expect((await opened.finished()).code).toBe(0);
    expect(await follower.finished()).toMatchObject({ code: 0, stdout: 'line 4\nline 5\nover\n' });
    expect((await capstan(['logs', '--tail', '1', '--stream', 'stdout', id], call)).stdout).toBe('over\n');
    const events = await capstan(['events', id], call);
    const types = events.stdout.match(/run\.\w+/g);
    expect(types).toEqual(['run.submitted', 'run.claimed', 'run.started', 'run.ended']);
  });

  it('Ctrl-C twice on a terminal cancels the run', async () => {
    const running = await startOnTerminal("run --wait -- sh -c 'echo begun; sleep 60'", { ...call, isTyping: true });
    await until('the tool runs', () => running.stdout().includes('begun'));
    running.child.stdin.write('\u0003');
    await until('it is told', () => running.stdout().includes('Ctrl-C again within 3 s'));
    running.child.stdin.write('\u0003');
    expect((await running.finished()).code).toBe(130);
    expect(running.stdout()).toMatch(/capstan: run_\w+ is being stopped/);
    const id = idIn(running.stdout());
    expect((await capstan(['logs', '-f', id], call)).stderr).toMatch(/ canceled: /);
  });

  it('rerun makes a new run of the same, which names the first', async () => {
    const first = await capstan(['run', '--wait', '--name', 'again', '--', 'sh', '-c', 'echo $CAPSTAN_RUN_ID'], call);
    const again = await capstan(['rerun', '--wait', first.stdout.trim()], call);
    expect(again.code).toBe(0);
    expect(again.stdout).not.toBe(first.stdout);
    const shown = await capstan(['show', again.stdout.trim()], call);
    expect(shown.stdout).toContain(`rerun of\t${first.stdout.trim()}\n`);
    expect(shown.stdout).toContain('name\tagain\n');
  });

  it('http sends the request as it was said and prints the body of the answer', async () => {
    const site = createServer((request, response) => {
      response.end(`${request.method} ${request.headers['x-secret']}`);
    });
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
    const headers = { ...call, stdin: 'X-Secret: hunter2\n' };
    const done = await capstan(['http', '--wait', 'DELETE', url, '-H', '@-'], headers);
    expect({ code: done.code, stdout: done.stdout }).toEqual({ code: 0, stdout: 'DELETE hunter2' });
    expect((await capstan(['http', '--wait', url, '--expect', '404'], call)).code).toBe(1);
    site.close();
  });

  it('a queue that nobody serves is named while waiting', async () => {
    const waiting = await start(['run', '--wait', '--queue', 'nobody', '--', 'true'], call);
    await until('it is said', () => waiting.stderr().includes('no worker has taken it yet (queue nobody)'));
    waiting.child.kill('SIGINT');
    expect((await waiting.finished()).code).toBe(130);
  });

  it('submits many out of a file, cancels them by a filter, and runs them again', async () => {
    const stdin = '{"kind":"noop","queue":"nobodys","name":"one of many"}\n'.repeat(3);
    const made = await capstan(['batch', '-'], { ...call, stdin });
    expect(made).toMatchObject({ code: 0, stderr: 'capstan: 3 runs submitted\n' });
    const many = ['--queue', 'nobodys', '--search', 'many one', '--after', '1h'];
    const listed = await capstan(['runs', '--quiet', ...many], call);
    expect(listed.stdout.split('\n').sort()).toEqual(made.stdout.split('\n').sort());
    const counted = await capstan(['cancel', ...many, '--dry-run'], call);
    expect(counted).toMatchObject({ code: 0, stdout: '3 runs would be canceled\n' });
    const canceled = await capstan(['cancel', ...many, '--yes'], call);
    expect(canceled).toMatchObject({ code: 0, stdout: '3 runs canceled\n' });
    const again = await capstan(['rerun', ...many, '--state', 'canceled', '--yes', '--quiet'], call);
    expect(again.stdout).toMatch(/^(run_\w+\n){3}$/);
    const top = await capstan(['top', '--once'], call);
    expect(top.stdout).toMatch(/^queue\tnobodys\topen\t3\t/m);
    expect(await capstan(['cancel', ...again.stdout.trim().split('\n')], call)).toMatchObject({ code: 0 });
    expect((await capstan(['version'], call)).stdout).toMatch(/^server\t\d+\.\d+\.\d+$/m);
  });
});
