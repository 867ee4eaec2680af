import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { systemTiming } from '../../src/platform/time.js';
import { at, capstan } from './cli.fixture.js';
import { capstanHere } from './here.fixture.js';
import { type Answer, problem, RUN_ID, runJson, type StandIn, standIn } from './stand-in.fixture.js';

async function against(answer: Answer, args: string[] = ['runs'], env: Readonly<Record<string, string>> = {}) {
  const server = await standIn(answer);
  const finished = await capstan(args, at(server.url, env));
  await server.close();
  return { ...finished, asked: server.asked, url: server.url };
}

describe('an answer that isn’t the wanted one', () => {
  it('401 says which token was used and where others are taken from', async () => {
    const reply = problem(401, 'unauthorized', { detail: 'the token is not known' });
    const { code, stdout, stderr } = await against(() => reply);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain('capstan: Title of unauthorized: the token is not known\n  token used: CAPSTAN_TOKEN\n');
    for (const place of ['--token-file FILE', 'CAPSTAN_TOKEN_FILE', 'admin-token', 'CAPSTAN_DATA_DIR']) {
      expect(stderr).toContain(place);
    }
    expect(stderr).not.toContain('cap_token-of-the-test');
  });

  it('422 names each fault once', async () => {
    const one = { pointer: '/spec/argv', message: 'must have at least one item' };
    const two = { pointer: '/queue', message: 'must match\n\u001b[31m^[a-z]' };
    const several = problem(422, 'invalid_input', { detail: 'the run is not valid', errors: [one, two] });
    expect((await against(() => several)).stderr).toBe(
      'capstan: Title of invalid_input: the run is not valid\n' +
        '  /spec/argv: must have at least one item\n  /queue: must match \u{FFFD}[31m^[a-z]\n',
    );
    const single = problem(422, 'invalid_input', { detail: '/spec/argv: must have at least one item', errors: [one] });
    expect((await against(() => single)).stderr.match(/at least one item/g)).toHaveLength(1);
  });

  it('is passed on whole with --json, on standard error', async () => {
    const reply = problem(404, 'not_found', { detail: 'no such run', requestId: 'req_1', extra: { a: 1 } });
    const { code, stdout, stderr } = await against(() => reply, ['show', RUN_ID, '--json']);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(JSON.parse(stderr)).toEqual({ ...(reply.body as object), hint: expect.stringContaining('capstan runs') });
  });

  it('500 leads to the server’s log', async () => {
    const { code, stderr } = await against(() => problem(500, 'internal', { requestId: 'req_1' }));
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: "capstan: Title of internal\n  look for req_1 in the server's log\n",
    });
  });

  it('of something else than Capstan is told as such', async () => {
    const page = await against(() => ({ status: 404, body: Buffer.from('<html>not here</html>') }));
    expect(page).toMatchObject({
      code: 3,
      stderr: `capstan: HTTP 404: ${page.url} did not answer as a Capstan server does\n`,
    });
    const html = await against(() => ({ body: Buffer.from('<html>welcome</html>') }));
    expect(html).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('not the answer of a Capstan server: the body is not JSON'),
    });
    const json = await against(() => ({ body: { hello: 'world' } }));
    expect(json).toMatchObject({ code: 3, stderr: expect.stringContaining('items is not a list') });
  });
});

describe('no answer', () => {
  it('because nobody listens says how to start a server or name another', async () => {
    const gone = await standIn(() => ({}));
    await gone.close();
    const { code, stdout, stderr } = await capstan(['runs'], at(gone.url));
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toBe(
      `capstan: no connection: no server answers at ${gone.url}\n` +
        '  start one: npm start\n  another server: --url URL, --profile NAME or CAPSTAN_URL\n',
    );
    const json = await capstan(['runs', '--json'], at(gone.url));
    expect({ code: json.code, stdout: json.stdout }).toEqual({ code: 3, stdout: '' });
    expect(JSON.parse(json.stderr)).toMatchObject({
      code: 'no_connection',
      hint: expect.stringContaining('npm start'),
    });
  });

  it('yet is outlived, without a word, when the server comes up before the tries end', async () => {
    const first = await standIn(() => ({}));
    await first.close();
    let second: StandIn | undefined;
    const delay = async (ms: number) => {
      second ??= await standIn(() => ({ body: { items: [], next: null } }), Number(new URL(first.url).port));
      await systemTiming.delay(ms);
    };
    const { env = {} } = at(first.url);
    const { code, stderr } = await capstanHere(['runs'], { env, timing: { ...systemTiming, delay } });
    await second?.close();
    expect({ code, stderr, asked: second?.asked.length }).toEqual({
      code: 0,
      stderr: 'capstan: no such runs\n',
      asked: 1,
    });
  });

  it('because something else listens there is told as such', async () => {
    const greeter = createServer((socket) => socket.end('220 mail.example.org ESMTP\r\n'));
    greeter.listen(0, '127.0.0.1');
    await once(greeter, 'listening');
    const { port } = greeter.address() as AddressInfo;
    const { code, stderr } = await capstan(['runs'], at(`http://127.0.0.1:${port}`));
    greeter.close();
    expect(code).toBe(3);
    expect(stderr).toContain(`http://127.0.0.1:${port} doesn't speak HTTP as expected`);
  });

  it('that makes sense is waited out where somebody has answered before', async () => {
    const run = runJson();
    const asked: string[] = [];
    const server = await standIn(({ method }) => {
      asked.push(method);
      return method === 'POST' ? { status: 201, body: run } : problem(410, 'run_removed');
    });
    let connections = 0;
    const front = createServer((socket) => {
      connections += 1;
      socket.on('error', () => undefined);
      if (connections === 2) {
        socket.end('220 mail.example.org ESMTP\r\n');
        return;
      }
      const onward = connect(Number(new URL(server.url).port), '127.0.0.1');
      onward.on('error', () => undefined);
      // The first connection is lost once the submit is answered.
      onward.on('data', (data) => socket.write(data, () => connections === 1 && socket.destroySoon()));
      socket.on('data', (data) => onward.write(data)).on('close', () => onward.destroy());
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    const { port } = front.address() as AddressInfo;
    const { code, stderr } = await capstan(['run', '--wait', '--', 'ls'], at(`http://127.0.0.1:${port}`));
    front.close();
    await server.close();
    expect({ code, asked }).toEqual({ code: 3, asked: ['POST', 'GET'] });
    expect(stderr).toContain("doesn't speak HTTP as expected");
    expect(stderr).toContain('; trying again');
    expect(stderr).toContain('Title of run_removed');
  });

  it('because there is no such host is told at once', async () => {
    const { code, stderr } = await capstan(['runs'], at('http://no-such-host.invalid'));
    expect(code).toBe(3);
    expect(stderr).toMatch(/there is no host of the name|can't be reached/);
  });
});
