/** As many entries as a bundle may hold, and more, on a real server: the check is a thread's. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { type ServerProcess, startServer } from '../server.js';
import { bundleIn, keyOf, seedOf } from './signing.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const KEY = keyOf(9);

let db: TestDatabase;
let server: ServerProcess;
beforeAll(async () => {
  db = await createDatabase();
  server = await startServer({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_AUDIT_KEY: seedOf(9),
  });
});
afterAll(async () => {
  server?.child.kill('SIGTERM');
  await server?.finished;
  await db?.drop();
});

const bundle = async (query = '') => {
  const answer = await fetch(`${server.url}/v1/audit/bundle${query}`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  return {
    status: answer.status,
    bytes: Buffer.from(await answer.arrayBuffer()),
    length: answer.headers.get('content-length'),
  };
};

it('S4-104 10,001 entries are refused with the windows to ask for, which verify and join; the newest 10,000 are given', async () => {
  const sql = await db.session();
  await sql.query(
    `select count(*) from audit_heads h cross join lateral audit_append(
       array_fill(h.chain_id, array[9999]),
       (select array_agg(jsonb_build_object('action', 'run.submitted', 'object', 'run_01h455vb4pex5vsknk084sn02q',
          'kind', 'command', 'queue', 'default', 'origin', 'api', 'specDigest', 'sha256:' || repeat('ab', 32), 'n', n,
          'principal', 'tok_01h455vb4pex5vsknk084sn02q', 'principalName', 'é😀 ' || n))
        from generate_series(1, 9999) n),
       array_fill('01890a5d-ac96-774b-bcce-b302099a8057'::uuid, array[9999])) a
     where h.organization_id is not null`,
  );
  const wide = await bundle('?from=1');
  const problem = JSON.parse(wide.bytes.toString());
  expect(problem).toMatchObject({
    status: 422,
    code: 'invalid_input',
    detail: expect.stringContaining('from=1&to=10000, from=10001&to=10001'),
    windows: [
      { from: 1, to: 10_000 },
      { from: 10_001, to: 10_001 },
    ],
  });
  const parts = [];
  for (const { from, to } of problem.windows) {
    const part = await bundle(`?from=${from}&to=${to}`);
    expect(part).toMatchObject({ status: 200, length: String(part.bytes.length) });
    parts.push(bundleIn(part, KEY));
  }
  expect(parts.map(({ verdict, range }) => ({ level: verdict.level, range }))).toEqual([
    { level: 'signed, chained (full)', range: [1, 10_000] },
    { level: 'signed, chained (full)', range: [10_001, 10_001] },
  ]);
  expect(parts[1]?.document.claims[0]?.chain).toMatchObject({ prev: parts[0]?.document.claims.at(-1)?.chain.link });
  const newest = bundleIn(await bundle(), KEY);
  expect(newest).toMatchObject({ verdict: { ok: true }, range: [5, 10_004] });
  expect(newest.actions.at(-1)).toBe('audit.exported');
});
