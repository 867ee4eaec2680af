/** The signing key of real processes: given, missing, of another, replaced, and made by an embedded install. */
import { createHash } from 'node:crypto';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SigningKey } from '../../src/kernel/signing-key.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { dataFolder, finishOf, QUICK, type ServerProcess, spawnCapstan, startServer } from '../server.js';
import { bundleIn, keyOf, seedOf } from './signing.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const [FIRST, SECOND] = [keyOf(11), keyOf(12)];

const running = new Set<ServerProcess>();
afterEach(async () => {
  await Promise.all([...running].map(stop));
});

async function start(env: Readonly<Record<string, string>>): Promise<ServerProcess> {
  const server = await startServer({ CAPSTAN_BOOTSTRAP_TOKEN: TOKEN, ...env });
  running.add(server);
  return server;
}

async function stop(server: ServerProcess): Promise<void> {
  running.delete(server);
  server.child.kill('SIGTERM');
  await server.finished;
}

async function ask(server: ServerProcess, path: string, init: RequestInit = {}) {
  const headers = { authorization: `Bearer ${TOKEN}`, ...(init.body ? { 'content-type': 'application/json' } : {}) };
  const answer = await fetch(`${server.url}/v1/audit/${path}`, { ...init, headers });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, bytes, json: JSON.parse(bytes.toString()) };
}

/** Every spelling that a seed could come out in. */
function spellings(seed: string): string[] {
  const raw = Buffer.from(seed, 'base64');
  return [seed, raw.toString('base64url'), raw.toString('hex'), JSON.stringify([...raw]).slice(1, -1)];
}

function expectNoSeed(seed: string, ...texts: readonly string[]): void {
  for (const spelling of spellings(seed)) for (const text of texts) expect(text.includes(spelling)).toBe(false);
}

describe('replicas of one database', { timeout: 120_000 }, () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await createDatabase();
  });
  afterAll(() => db.drop());

  it('S4-65 without a key a replica starts, says so and signs nothing; the first key that comes is the installation’s', async () => {
    const without = await start({ DATABASE_URL: db.url, CAPSTAN_NAME: 'r1' });
    expect(without.log()).toContain('"code":"audit_key_missing"');
    expect(without.log()).toContain('no signed bundles: set CAPSTAN_AUDIT_KEY');
    const missing = { status: 503, json: { code: 'signing_key_missing' } };
    const none = await ask(without, 'bundle');
    expect(none).toMatchObject(missing);
    expect(none.json.detail).toContain('capstan audit keygen');
    expect(await ask(without, 'verify')).toMatchObject({ status: 200, json: { ok: true } });
    expect((await ask(without, 'key')).json).toMatchObject({ fingerprint: null, signs: false });

    const first = await start({ DATABASE_URL: db.url, CAPSTAN_NAME: 'r2', CAPSTAN_AUDIT_KEY: seedOf(11) });
    expect(first.log()).toContain(FIRST.fingerprint);
    expect(bundleIn(await ask(first, 'bundle'), FIRST).verdict).toMatchObject({ ok: true });
    expect((await ask(without, 'key')).json).toMatchObject({ fingerprint: FIRST.fingerprint, signs: false });
    const kept = await ask(without, 'bundle');
    expect(kept).toMatchObject(missing);
    expect(kept.json.detail).toContain(`start it with ${FIRST.fingerprint}`);
  });

  it('S4-65 a replica with another key is refused with what to do, on one line that holds neither key', async () => {
    const child = await spawnCapstan(['serve'], {
      ...QUICK,
      DATABASE_URL: db.url,
      CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
      CAPSTAN_AUDIT_KEY: seedOf(12),
    });
    const { code, stdout, stderr } = await finishOf(child);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const line = stderr.split('\n').find((each) => each.startsWith('capstan: '));
    expect(line).toContain(`given: ${SECOND.fingerprint}, current: ${FIRST.fingerprint}`);
    expect(line).toContain('capstan audit rotate-key --key-file FILE');
    expectNoSeed(seedOf(12), stderr);
  });

  it('S4-65 a rotation: the new key starts, those with the former one go on and answer bundles 503, also started anew', async () => {
    const [one, two] = await Promise.all([
      start({ DATABASE_URL: db.url, CAPSTAN_NAME: 'r1', CAPSTAN_AUDIT_KEY: seedOf(11) }),
      start({ DATABASE_URL: db.url, CAPSTAN_NAME: 'r2', CAPSTAN_AUDIT_KEY: seedOf(11) }),
    ]);
    const body = JSON.stringify({ publicKey: SECOND.publicKey });
    expect(await ask(one, 'key', { method: 'POST', body })).toMatchObject({ status: 200, json: { signs: false } });
    for (const server of [one, two]) {
      expect(await ask(server, 'bundle')).toMatchObject({ status: 503, json: { code: 'signing_key_superseded' } });
    }
    const runs = { method: 'POST', headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' } };
    const made = await fetch(`${two.url}/v1/runs`, { ...runs, body: '{"kind":"noop"}' });
    expect(made.status).toBe(201);
    await stop(one);
    const [renewed, former] = await Promise.all([
      start({ DATABASE_URL: db.url, CAPSTAN_NAME: 'r1', CAPSTAN_AUDIT_KEY: seedOf(12) }),
      start({ DATABASE_URL: db.url, CAPSTAN_NAME: 'r3', CAPSTAN_AUDIT_KEY: seedOf(11) }),
    ]);
    expect(bundleIn(await ask(renewed, 'bundle'), SECOND).verdict).toMatchObject({ ok: true });
    expect(former.log()).toContain('"code":"audit_key_superseded"');
    expect(await ask(former, 'bundle')).toMatchObject({ status: 503, json: { code: 'signing_key_superseded' } });
    for (const server of [renewed, former]) await stop(server);
    for (const byte of [11, 12]) expectNoSeed(seedOf(byte), one.log(), two.log(), renewed.log(), former.log());
  });

  it('a worker takes no notice of a key', async () => {
    const child = await spawnCapstan(['worker'], { ...QUICK, DATABASE_URL: db.url, CAPSTAN_AUDIT_KEY: seedOf(99) });
    const finished = finishOf(child);
    let log = '';
    await new Promise<void>((resolve) => {
      child.stderr?.on('data', (data) => {
        log += data;
        if (log.includes('"code":"started"')) resolve();
      });
    });
    child.kill('SIGTERM');
    expect(await finished).toMatchObject({ code: 0 });
    expect(log).not.toContain('audit_key');
  });
});

describe("replicas of a database whose installation's chain was tampered with", { timeout: 120_000 }, () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await createDatabase();
  });
  afterAll(() => db.drop());

  it('S4-65 S4-105 start with any key, record and sign nothing; when it holds again the right one signs', async () => {
    const own = { DATABASE_URL: db.url, CAPSTAN_AUDIT_KEY: seedOf(11) };
    await stop(await start({ ...own, CAPSTAN_NAME: 'r1' }));
    const sql = await db.session();
    const change = async (from: string, to: string) => {
      await sql.query(`set session_replication_role = 'replica'`);
      const text = 'update audit_entries set action = $2 where action = $1 returning chain_id as chain, seq::integer';
      const { rows } = await sql.query<{ chain: string; seq: number }>(text, [from, to]);
      await sql.query(`set session_replication_role = 'origin'`);
      return rows;
    };
    const [broken] = await change('audit.key_recorded', 'x');
    if (!broken) throw new Error('there is no first key');
    const [first, foreign] = await Promise.all([
      start({ ...own, CAPSTAN_NAME: 'r1' }),
      start({ ...own, CAPSTAN_NAME: 'r2', CAPSTAN_AUDIT_KEY: seedOf(12) }),
    ]);
    for (const server of [first, foreign]) {
      const line = server
        .log()
        .split('\n')
        .find((each) => each.includes('"code":"audit_key_not_admitted"'));
      expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 'error', ...broken, check: 'column' });
      const refused = { code: 'chain_broken', seq: broken.seq, check: 'column' };
      const answer = await ask(server, 'bundle');
      expect(answer).toMatchObject({ status: 409, json: refused });
      expect(answer.json.detail).toContain(broken.chain);
    }
    const keys = `select claim from audit_entries where action like 'audit.key%'`;
    expect((await sql.query(keys)).rows).toEqual([]);
    await change('x', 'audit.key_recorded');
    for (const server of [first, foreign]) {
      expect(await ask(server, 'verify?chain=installation')).toMatchObject({ json: { ok: true } });
    }
    expect(bundleIn(await ask(first, 'bundle'), FIRST).verdict).toMatchObject({ ok: true });
    expect(await ask(foreign, 'bundle')).toMatchObject({ status: 503, json: { code: 'signing_key_superseded' } });
    expect((await sql.query(keys)).rows).toHaveLength(1);
  });
});

describe('an embedded install', () => {
  it('S4-65 makes a key once, keeps it for its owner alone, and replaces none that was lost', {
    timeout: 120_000,
  }, async () => {
    const folder = await dataFolder();
    const file = join(folder.path, 'audit-key');
    const env = { CAPSTAN_DATA_DIR: folder.path };
    try {
      const first = await start(env);
      const text = await readFile(file, 'utf8');
      expect(text).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const key = SigningKey.of(Buffer.from(text, 'base64'));
      expect(first.log()).toContain(key.fingerprint);
      const made = bundleIn(await ask(first, 'bundle?chain=installation'), key);
      expect(made).toMatchObject({ verdict: { ok: true, level: 'signed, chained (full)' } });
      await stop(first);

      const again = await start(env);
      expect(await readFile(file, 'utf8')).toBe(text);
      expect((await ask(again, 'key')).json).toMatchObject({ fingerprint: key.fingerprint, past: [], signs: true });
      await stop(again);
      expectNoSeed(
        text.trim(),
        first.log(),
        again.log(),
        first.banner,
        made.document.bundle_id,
        JSON.stringify(made.document),
      );

      await rm(file);
      const lost = await start(env);
      expect(lost.log()).toContain('"code":"audit_key_missing"');
      expect(await ask(lost, 'bundle')).toMatchObject({ status: 503, json: { code: 'signing_key_missing' } });
      await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' });
      await stop(lost);

      await writeFile(file, 'no key\n');
      const child = await spawnCapstan(['serve'], { ...QUICK, ...env });
      const { code, stderr } = await finishOf(child);
      expect(code).toBe(1);
      expect(stderr).toContain(`${file} holds no signing key: put back the file as it was`);
      expect(
        createHash('sha256')
          .update(await readFile(file))
          .digest('hex'),
      ).toBe(createHash('sha256').update('no key\n').digest('hex'));
    } finally {
      await Promise.all([...running].map(stop));
      await folder.remove();
    }
  });
});
