/** `why` against a server that answers as the test says, and against a real one. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataFolder, type ServerProcess, startServer } from '../server.js';
import { at, type Call, capstan, startOnTerminal } from './cli.fixture.js';
import { type Answer, problem, RUN_ID, standIn } from './stand-in.fixture.js';

type Json = Readonly<Record<string, unknown>>;

const WORKER_ID = 'wrk_01h455vb4pex5vsknk084sn02q';

function answer(...reasons: readonly Json[]): Json {
  return { id: RUN_ID, state: 'pending', queue: 'deploys', isClaimable: reasons.length === 0, reasons };
}

const reason = (code: string, detail: string, remedy: string, more: Json = {}): Json => ({
  code,
  detail,
  remedy,
  until: null,
  ...more,
});

const PAUSED = reason(
  'queue_paused',
  'queue deploys is paused since 2026-03-02T09:00:00.000Z by ops: "freeze"',
  'an admin of the installation resumes it: PUT /v1/queues/deploys {"paused": false}',
);
const DRAINING = reason(
  'workers_draining',
  'no worker that serves queue deploys takes new runs; draining: r1',
  `put one back: POST /v1/workers/${WORKER_ID}/undrain; or start another worker that serves it`,
  { workers: [{ id: WORKER_ID, name: 'r1' }] },
);

async function against(reply: Answer, args: string[]) {
  const server = await standIn(reply);
  const finished = await capstan(args, at(server.url));
  await server.close();
  return { ...finished, asked: server.asked.map(({ method, path }) => `${method} ${path}`) };
}

describe('why', () => {
  it('is how the run stands, then each reason, and below it what would change it, in commands of this program', async () => {
    const { code, stdout, stderr, asked } = await against(() => ({ body: answer(PAUSED, DRAINING) }), ['why', RUN_ID]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(asked).toEqual([`GET /v1/runs/${RUN_ID}/why`]);
    expect(stdout.split('\n')).toEqual([
      `${RUN_ID} is pending (queue deploys)`,
      'queue deploys is paused since 2026-03-02T09:00:00.000Z by ops: "freeze"',
      '  an admin of the installation resumes it: capstan queues resume deploys',
      'no worker that serves queue deploys takes new runs; draining: r1',
      `  put one back: capstan workers undrain ${WORKER_ID}; or start another worker that serves it`,
      '',
    ]);
  });

  it.each([
    [`follow it: GET /v1/runs/${RUN_ID}/stream`, `follow it: capstan logs -f ${RUN_ID}`],
    [`run it again: POST /v1/runs/${RUN_ID}/rerun`, `run it again: capstan rerun ${RUN_ID}`],
    [`submit it anew: POST /v1/runs/${RUN_ID}/cancel`, `submit it anew: capstan cancel ${RUN_ID}`],
    ['do what GET /v1/nothing tells', 'do what GET /v1/nothing tells'],
  ])('says for %s: %s', async (remedy, shown) => {
    const { stdout } = await against(() => ({ body: answer(reason('any', 'detail', remedy)) }), ['why', RUN_ID]);
    expect(stdout.split('\n')[2]).toBe(`  ${shown}`);
  });

  it('is one line where there is no reason', async () => {
    const { code, stdout, stderr } = await against(() => ({ body: answer() }), ['why', RUN_ID]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`${RUN_ID} is pending; a worker takes it with its next claim (queue deploys)\n`);
  });

  it('with --json is the document as it was answered', async () => {
    const body = answer(PAUSED, reason('of_a_later_version', 'x', 'y', { until: '2026-03-02T10:00:00.000Z' }));
    const { code, stdout, stderr } = await against(() => ({ body }), ['why', RUN_ID, '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(body);
  });

  it('lets nothing that others wrote steer a terminal', async () => {
    const server = await standIn(() => ({ body: answer(reason('queue_paused', 'by ops: a\u001b[2J\nb', 'c\u0007')) }));
    const running = await startOnTerminal(`why ${RUN_ID}`, at(server.url));
    const { code, stdout } = await running.finished();
    await server.close();
    expect(code).toBe(0);
    expect(stdout.split('\r\n')).toEqual([
      `${RUN_ID} is pending (queue deploys)`,
      'by ops: a\u{FFFD}[2J b',
      '  c\u{FFFD}',
      '',
    ]);
  });

  it('of a run that there is not is the problem, and of what is no id nothing is asked', async () => {
    const gone = await against(() => problem(404, 'not_found', { detail: 'there is no such run' }), ['why', RUN_ID]);
    expect(gone).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('there is no such run') });
    for (const args of [['why'], ['why', 'x'], ['why', RUN_ID, RUN_ID]]) {
      expect(await against(() => ({ body: answer() }), args)).toMatchObject({ code: 2, stdout: '', asked: [] });
    }
  });

  it('has its help', async () => {
    const { code, stdout } = await capstan(['why', '--help'], {});
    expect(code).toBe(0);
    expect(stdout).toContain("\nExample:\n  capstan why RUN_ID --json | jq -r '.reasons[].code'");
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});

describe('why, asked of a server with one slot', () => {
  let server: ServerProcess;
  let data: Awaited<ReturnType<typeof dataFolder>>;
  let call: Call;
  beforeAll(async () => {
    data = await dataFolder();
    const settings = { CAPSTAN_NAME: 'r1', CAPSTAN_SLOTS: '1', CAPSTAN_QUEUES: 'default' };
    server = await startServer({ ...settings, CAPSTAN_DATA_DIR: data.path });
    call = { env: { CAPSTAN_URL: server.url, CAPSTAN_TOKEN_FILE: join(data.path, 'admin-token') } };
  });
  afterAll(async () => {
    server?.child.kill('SIGTERM');
    await server?.finished;
    await data?.remove();
  });

  const submit = async (...args: string[]) => {
    const { code, stdout, stderr } = await capstan(['run', ...args], call);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout.trim();
  };
  const lines = async (id: string) => (await capstan(['why', id], call)).stdout.trimEnd().split('\n');
  /** Does what the hint of a reason says behind its colon. */
  const obey = async (hint = '') => {
    const command = /: capstan ([^;]+)/.exec(hint)?.[1]?.split(' ') ?? [];
    expect(command.length, hint).toBeGreaterThan(1);
    expect(await capstan(command, call)).toMatchObject({ code: 0 });
  };
  const ended = (id: string) => capstan(['logs', '-f', id], call);

  it('names what is in the way of a run, and what it says to do about it gets the run to its end', async () => {
    const long = await submit('--', 'sh', '-c', 'until [ -e "$0/go" ]; do sleep 0.1; done', data.path);
    await untilLine(long, /^it runs on worker r1 since /);
    const waiting = await submit('--', 'true');
    const behind = await submit('--', 'true');
    const elsewhere = await submit('--queue', 'deploys', '--', 'true');
    expect((await lines(waiting))[1]).toBe('every slot of the workers that serve queue default is busy: r1 (1 of 1)');
    expect((await lines(behind))[3]).toBe('1 run goes first, by priority or for having been there before');
    expect((await lines(elsewhere))[1]).toBe('no connected worker serves queue deploys; they serve default');
    expect(await capstan(['queues', 'pause', 'default', '--reason', 'a freeze'], call)).toMatchObject({ code: 0 });
    expect(await capstan(['workers', 'drain', 'r1'], call)).toMatchObject({ code: 0 });
    const all = await lines(waiting);
    expect(all[1]).toMatch(/^queue default is paused since \S+ by \S+: "a freeze"$/);
    expect(all[3]).toBe('no worker that serves queue default takes new runs; draining: r1');
    expect(all).toHaveLength(5);
    await obey(all[2]);
    await obey(all[4]);
    expect((await lines(waiting))[1]).toMatch(/^every slot /);
    await writeFile(join(data.path, 'go'), '');
    for (const id of [long, waiting, behind]) {
      expect(await ended(id)).toMatchObject({ code: 0 });
      expect((await lines(id))[1]).toMatch(/^it has ended succeeded at \S+ \(ok: exit code 0\)$/);
    }
    await obey((await lines(behind))[2]);
  }, 120_000);

  async function untilLine(id: string, wanted: RegExp): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      const [, line = ''] = await lines(id);
      if (wanted.test(line)) return;
      if (tries > 100) throw new Error(`it never said ${wanted}: ${line}`);
    }
  }
});
