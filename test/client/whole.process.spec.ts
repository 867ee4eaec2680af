/** The client against real replicas: the whole surface, and the faults that it is made for. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Capstan, type StreamMessage } from '../../src/client/client.js';
import { bundleIn, keyOf, seedOf } from '../audit/signing.fixture.js';
import { standIn } from '../cli/stand-in.fixture.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { type ServerProcess, startServer, until } from '../server.js';
import { TcpProxy } from '../tcp-proxy.js';
import { refusalOf } from './client.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';

let db: TestDatabase;
/** Serves the API alone. */
let front: ServerProcess;
let worker: ServerProcess;
let capstan: Capstan;

beforeAll(async () => {
  db = await createDatabase();
  const common = { DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN };
  const working = { CAPSTAN_NAME: 'worker', CAPSTAN_QUEUES: 'default,many', CAPSTAN_AUDIT_KEY: seedOf(21) };
  worker = await startServer({ ...common, ...working });
  front = await startServer({ ...common, CAPSTAN_NAME: 'front', CAPSTAN_SLOTS: '0' });
  capstan = new Capstan({ url: worker.url, token: TOKEN });
});

afterAll(async () => {
  for (const { child } of [front, worker]) child.kill('SIGTERM');
  await Promise.all([front.finished, worker.finished]);
  await db.drop();
});

const command = (script: string) => ({ kind: 'command' as const, spec: { argv: ['bash', '-c', script] } });
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

describe('the surface', () => {
  it('has a run made, watched, looked at and made again', async () => {
    const { id } = await capstan.submit({ ...command('echo out; echo err >&2; exit 3'), labels: { of: 'surface' } });
    const run = await capstan.wait(id);
    expect(run).toMatchObject({ id, state: 'failed', end: { code: 'tool_failed', exitCode: 3 } });
    expect(text(await capstan.output(id, { stream: 'stderr' }))).toBe('err\n');
    const events = (await capstan.events(id).toArray()).map(({ type }) => type);
    expect(events).toEqual(expect.arrayContaining(['run.started', 'run.ended']));
    expect(await capstan.why(id)).toMatchObject({ isClaimable: false, reasons: [{ code: 'not_pending' }] });
    const again = await capstan.rerun(id);
    expect(again).toMatchObject({ rerunOf: id });
    await capstan.wait(again.id);
    const found = await capstan.runs({ label: ['of:surface'] }).toArray();
    expect(found.map((one) => one.id)).toEqual([again.id, id]);
    expect(await refusalOf(capstan.cancel(id))).toMatchObject({ status: 409, code: 'run_ended' });
  });

  it('F161 has many made, canceled and made again at once', async () => {
    await capstan.pauseQueue('many', 'for the test');
    const runs = Array.from({ length: 5 }, (_, i) => ({ kind: 'noop', queue: 'many', name: `of many ${i}` }) as const);
    const items = await capstan.submitBatch([...runs, { kind: 'noop', queue: 'NO SUCH NAME' }]);
    expect(items.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 422]);
    expect(items[5]?.problem?.errors?.[0]?.pointer).toContain('/queue');
    expect(await capstan.cancelRuns({ queue: 'many' }, { dryRun: true })).toMatchObject({ matched: 5, canceled: 0 });
    expect(await capstan.cancelRuns({ queue: 'many' })).toEqual({ matched: 5, canceled: 5, stopping: 0 });
    expect(await capstan.rerunRuns({ queue: 'many' }, { dryRun: true })).toEqual({ matched: 5, items: [] });
    const asked = { limit: 3, idempotencyKey: 'again' };
    const { items: made } = await capstan.rerunRuns({ queue: 'many', state: 'canceled' }, asked);
    expect(made).toHaveLength(3);
    expect((await capstan.rerunRuns({ queue: 'many', state: 'canceled' }, asked)).items).toEqual(made);
    const queue = (await capstan.queues().toArray()).find(({ name }) => name === 'many');
    expect(queue).toMatchObject({ depth: 3, paused: { reason: 'for the test' } });
    expect(await capstan.resumeQueue('many')).toMatchObject({ paused: null });
    const ended = await Promise.all(made.map(({ id }) => capstan.wait(id)));
    expect(ended.map(({ state }) => state)).toEqual(['succeeded', 'succeeded', 'succeeded']);
  });

  it('has workers drained and taken back', async () => {
    const name = (one: { name: string }) => one.name === 'front';
    const { id } = (await capstan.workers().toArray()).find(name) ?? { id: '' };
    expect(await capstan.drain(id)).toMatchObject({ state: 'draining' });
    expect(await capstan.undrain(id)).toMatchObject({ state: 'live' });
    expect(await capstan.worker(id)).toMatchObject({ name: 'front', connected: true });
  });

  it('has the record looked through, verified and taken away', async () => {
    const run = await capstan.submit({ kind: 'noop', queue: 'nobody-serves-it' });
    const [entry] = await capstan.audit({ object: run.id, action: 'run.submitted' }).toArray();
    expect(entry?.receipt).toBe(run.receipts.submitted);
    expect(await capstan.checkReceipt(run.receipts.submitted ?? '')).toMatchObject({ holds: true });
    expect(await capstan.verifyAudit()).toMatchObject({ ok: true });
    const bytes = Buffer.from(await capstan.auditBundle({ run: run.id }));
    expect(bundleIn({ bytes }, keyOf(21))).toMatchObject({ verdict: { ok: true }, actions: ['run.submitted'] });
    const { publicKey } = await capstan.auditKey();
    const other = keyOf(22).publicKey;
    expect(await capstan.rotateAuditKey(other)).toMatchObject({ publicKey: other, past: [{ publicKey }] });
    expect(await capstan.version()).toMatchObject({ name: 'capstan', replica: { name: 'worker' } });
  });

  it('has every route as the document says it', async () => {
    const { data, response } = await capstan.raw.GET('/v1/runs', { params: { query: { limit: 1 } } });
    expect(data?.items).toHaveLength(1);
    expect(response.headers.get('capstan-replica')).toBe('worker');
    const { data: metrics } = await capstan.raw.GET('/metrics', { parseAs: 'text' });
    expect(metrics).toContain('capstan_');
  });
});

it('F093 an answer that is lost makes one run: the next try finds it by its key', async () => {
  let lost = 0;
  const forgetful = await standIn(async ({ method, path, headers, body }) => {
    const { 'idempotency-key': key = '', authorization = '' } = headers;
    const sent = { authorization, 'idempotency-key': String(key), 'content-type': 'application/json' };
    const answer = await fetch(`${worker.url}${path}`, { method, headers: sent, body: JSON.stringify(body) });
    const reply = { status: answer.status, body: await answer.json() };
    return lost++ < 2 ? { hangUp: true } : reply;
  });
  const labels = { of: 'lost-answer' };
  const run = await new Capstan({ url: forgetful.url, token: TOKEN }).submit({ kind: 'noop', spec: {}, labels });
  await forgetful.close();
  expect(forgetful.asked).toHaveLength(3);
  const made = await capstan.runs({ label: ['of:lost-answer'] }).toArray();
  expect(made.map(({ id }) => id)).toEqual([run.id]);
});

it('a replica that is killed costs a stream nothing: it goes on at another one, no message lost or told twice', async () => {
  const proxy = await TcpProxy.start(front.url);
  const { id } = await capstan.submit(command('for i in $(seq 1 300); do echo "line $i"; sleep 0.01; done'));
  const through = new Capstan({ url: new URL(proxy.through).origin, token: TOKEN });
  const messages: StreamMessage[] = [];
  for await (const message of through.follow(id)) {
    messages.push(message);
    if (messages.length !== 10) continue;
    proxy.retarget(Number(new URL(worker.url).port));
    front.child.kill('SIGKILL');
    await front.finished;
  }
  await proxy.close();
  const output = messages.flatMap((message) => (message.type === 'output' ? [message.data] : []));
  expect(text(Buffer.concat(output))).toBe(Array.from({ length: 300 }, (_, i) => `line ${i + 1}\n`).join(''));
  const seqs = messages.flatMap((message) => (message.type === 'event' ? (message.event.seq ?? []) : []));
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
  const { type, ...last } = messages.at(-1) ?? { type: undefined };
  expect({ type, ...last }).toMatchObject({ type: 'end', run: { id, state: 'succeeded' } });
  expect(proxy.accepted, 'it came back').toBeGreaterThan(1);
});

it('a wait ends at once with its signal, and the run goes on', async () => {
  const { id } = await capstan.submit(command('echo here; sleep 300'));
  await until('it runs', async () => (await capstan.run(id)).state === 'running');
  const aborter = new AbortController();
  const waiting = refusalOf(capstan.wait(id, { signal: aborter.signal }));
  aborter.abort();
  expect(await waiting).toBe(aborter.signal.reason);
  expect(await capstan.run(id)).toMatchObject({ state: 'running' });
  await capstan.cancel(id);
  expect(await capstan.wait(id)).toMatchObject({ state: 'canceled' });
});
