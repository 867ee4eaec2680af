/** A real server, somebody with all rights over its database, and what operators and callers see of it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { finishOf, type ServerProcess, spawnCapstan, startServer, until } from '../server.js';

const TOKEN = 'cap_of_the_continuous_verifier';
let db: TestDatabase;
let server: ServerProcess;
beforeAll(async () => {
  db = await createDatabase({ empty: true });
  server = await startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN, CAPSTAN_SLOTS: '0' });
}, 60_000);
afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.finished;
  await db.drop();
});

const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const submit = () =>
  fetch(`${server.url}/v1/runs`, { method: 'POST', headers, body: JSON.stringify({ kind: 'noop', queue: 'nobody' }) });

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`, { headers })).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

const logged = (code: string) =>
  server
    .log()
    .split('\n')
    .filter((line) => line.includes(`"${code}"`))
    .map((line) => JSON.parse(line));

async function capstan(...args: string[]) {
  const child = await spawnCapstan(args, { CAPSTAN_URL: server.url, CAPSTAN_TOKEN: TOKEN });
  child.stdin?.end();
  return finishOf(child);
}

it('S4-102 a break is told by log and metric within one pass, and `audit verify` ends with 1', {
  timeout: 120_000,
}, async () => {
  await submit();
  const made = await submit();
  const receipt = made.headers.get('audit-receipt') ?? '';
  const chain = receipt.split(':')[0] ?? '';
  const { id } = (await made.json()) as { id: string };
  expect(await capstan('audit', 'verify')).toMatchObject({ code: 0, stdout: expect.stringContaining('verdict\tok\n') });
  const list = await capstan('audit', 'list', '--run', id);
  expect(list.stdout).toMatch(new RegExp(`^\\d+\\t\\S+\\trun.submitted\\tbootstrap\\t${id}\\n$`));
  // All entries of both chains, without anybody having asked.
  const sql = await db.session();
  const entries = async () => Number((await sql.query('select count(*) as n from audit_entries')).rows[0].n);
  await until(
    'the loop has verified all there is',
    async () => {
      return (await metric('capstan_audit_verified_seq')) === (await entries());
    },
    30_000,
  );
  expect(await metric('capstan_audit_broken')).toBe(0);
  expect(await metric('capstan_loop_steps_total\\{loop="recheck",result="failed"\\}')).toBe(0);

  await sql.query('alter table audit_entries disable trigger all');
  const seq = Number(receipt.split(':')[1]);
  await sql.query(`update audit_entries set claim = replace(claim, 'noop', 'nope') where chain_id = $1 and seq = $2`, [
    chain,
    seq,
  ]);
  await until('the loop has found the break', async () => (await metric('capstan_audit_broken')) === 1, 60_000);
  expect(logged('audit_chain_broken')).toEqual([
    expect.objectContaining({ level: 'error', chain, seq, check: 'link' }),
  ]);
  const broken = await capstan('audit', 'verify');
  expect(broken.code).toBe(1);
  expect(broken.stdout).toContain(`verdict\tbroken\nbroken at\t${seq}\nfailed check\tlink\n`);
  expect((await capstan('audit', 'verify', '--from', String(seq + 1))).code, 'there is no such entry').toBe(3);
  expect((await submit()).status, 'a tamperer stops nobody').toBe(201);
  const asked = await fetch(`${server.url}/v1/audit/receipts/${receipt}`, { headers });
  expect(await asked.json()).toMatchObject({ holds: false, reason: 'altered' });

  await sql.query(`update audit_entries set claim = replace(claim, 'nope', 'noop') where chain_id = $1 and seq = $2`, [
    chain,
    seq,
  ]);
  await until('the loop has found it whole again', async () => (await metric('capstan_audit_broken')) === 0, 60_000);
  expect(logged('audit_chain_holds')).toEqual([expect.objectContaining({ level: 'info', chain })]);
  expect(logged('audit_chain_broken')).toHaveLength(1);
});
