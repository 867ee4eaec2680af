/** Real replicas and a real time-stamping authority: anchors come by themselves, and nothing leans on them. */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { type ServerProcess, startServer, until } from '../server.js';
import { startTsa, type TsaMode, type TsaServer } from './tsa.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

let db: TestDatabase;
let sql: pg.Client;
let tsa: TsaServer;
let servers: ServerProcess[];
beforeEach(async () => {
  [db, tsa, servers] = [await createDatabase(), await startTsa(), []];
  sql = await db.session();
});
afterEach(async () => {
  for (const { child } of servers) child.kill('SIGTERM');
  await Promise.all(servers.map(({ finished }) => finished));
  await tsa.close();
  await db.drop();
});

async function serve(name: string, env: Record<string, string>): Promise<ServerProcess> {
  const server = await startServer({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_NAME: name,
    ...env,
  });
  servers.push(server);
  return server;
}

const stamping = (): Record<string, string> => ({ CAPSTAN_TSA_URL: tsa.url, CAPSTAN_TSA_INTERVAL: '1m' });

interface Row {
  readonly chain_id: string;
  readonly seq: string;
  readonly link: Buffer;
  readonly ref: string;
  readonly token: Buffer;
}
const anchors = async () =>
  (await sql.query<Row>('select * from audit_anchors join audit_entries using (chain_id, seq, link)')).rows;
const growing = async () =>
  (await sql.query<{ chain_id: string }>('select chain_id from audit_heads where seq > 0')).rows.map(
    (row) => row.chain_id,
  );

const lines = ({ log }: ServerProcess): { code?: string; reason?: string }[] =>
  log()
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** Submits a run and waits for its end. */
async function runOnce({ url }: ServerProcess): Promise<string> {
  const body = JSON.stringify({ kind: 'command', spec: { argv: ['true'] } });
  const submitted = await fetch(`${url}/v1/runs`, { method: 'POST', headers, body });
  expect(submitted.status).toBe(201);
  const { id } = (await submitted.json()) as { id: string };
  return until('the run ends', async () => {
    const run = (await (await fetch(`${url}/v1/runs/${id}`, { headers })).json()) as { state: string };
    return ['pending', 'claimed', 'running'].includes(run.state) ? undefined : run.state;
  });
}

it('S4x-02 every chain that grows gets one timestamp, which openssl accepts, however many replicas there are', async () => {
  const [one] = await Promise.all([serve('r1', stamping()), serve('r2', stamping())]);
  const chains = await growing();
  const stored = await until(
    'an anchor of each chain',
    async () => {
      const rows = await anchors();
      return new Set(rows.map((row) => row.chain_id)).size === chains.length ? rows : undefined;
    },
    60_000,
  );
  expect(stored).toHaveLength(chains.length);
  expect(tsa.requests).toHaveLength(chains.length);
  for (const { link, token, ref } of stored) {
    const imprint = createHash('sha256').update(link).digest('hex');
    expect(await tsa.authority.accepts(token, imprint)).toBe(true);
    expect(tsa.url.startsWith(ref)).toBe(true);
  }
  const said = servers.flatMap(lines).filter(({ code }) => code === 'anchor_stored');
  expect(said).toHaveLength(chains.length);
  const metrics = await Promise.all(
    servers.map(async ({ url }) => (await fetch(`${url}/metrics`, { headers })).text()),
  );
  const counts = metrics.map((text) =>
    Number(/^capstan_audit_anchors_total\{result="stored"\} (\d+)$/m.exec(text)?.[1] ?? 0),
  );
  expect(counts.reduce((sum, count) => sum + count)).toBe(chains.length);
  expect(await runOnce(one)).toBe('succeeded');
});

it.each<TsaMode>(['otherImprint', 'clockBehind'])(
  'S4x-02 a lying authority (%s) has nothing stored, and the replica goes on',
  async (mode) => {
    tsa.mode = mode;
    const server = await serve('r1', stamping());
    await until('the replica tells it', () => lines(server).some(({ code }) => code === 'anchor_failed'), 60_000);
    expect(tsa.requests.length).toBeGreaterThan(0);
    expect(await anchors()).toEqual([]);
    expect(await runOnce(server)).toBe('succeeded');
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  },
);

it('a silent authority does not hold up a replica that stops', async () => {
  tsa.mode = 'silent';
  const server = await serve('r1', stamping());
  await until('the authority was asked', () => tsa.requests.length > 0, 60_000);
  const begun = Date.now();
  server.child.kill('SIGTERM');
  const { code } = await server.finished;
  expect({ code, heldUp: Date.now() - begun > 9_000 }).toEqual({ code: 0, heldUp: false });
});

it('without an authority nothing is asked, not even the database', async () => {
  const server = await serve('r1', {});
  expect(await runOnce(server)).toBe('succeeded');
  const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text();
  expect(metrics).toContain('capstan_loop_steps_total{loop="work"');
  expect(metrics).not.toContain('loop="anchor"');
});
