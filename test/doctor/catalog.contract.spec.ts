/** What migrations make is known part by part, and each that is gone or doesn't work is found in a real catalog. */
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { partFaults, stateFaults } from '../../src/doctor/catalog.rules.js';
import { schemaParts, schemaState } from '../../src/doctor/catalog.sql.js';
import { SCHEMA_PARTS } from '../../src/doctor/schema-parts.js';
import { newId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { createDatabase, type TestDatabase } from '../database.js';

const HEAD = `/**
 * What the migrations make, partitions aside. Not written by hand: after a change of migrations
 * \`npx vitest run test/doctor/catalog.contract.spec.ts -u\` renews it.
 */
import type { Part } from './catalog.js';

export const SCHEMA_PARTS: readonly Part[] = Object.freeze([
`;

let db: TestDatabase;
let pool: Pool;
let sql: pg.Client;

beforeEach(async () => {
  db = await createDatabase();
  pool = db.pool(1);
  sql = await db.session();
});
afterEach(() => db.drop());

const faults = async () =>
  partFaults(SCHEMA_PARTS, await schemaParts(pool)).map(({ what, remedy }) => `${what}; ${remedy}`);
const state = async () => stateFaults(await schemaState(pool)).map(({ what, remedy }) => `${what}; ${remedy}`);

describe('the parts of a schema', () => {
  it('are those that the migrations make, all of which work', async () => {
    const parts = await schemaParts(pool);
    expect(parts.filter(({ isWorking }) => !isWorking)).toEqual([]);
    const lines = parts.map(({ kind, name, on, body }) => {
      const members = Object.entries({ kind, name, on, body }).filter(([, value]) => value !== null);
      return `  { ${members.map(([key, value]) => `${key}: '${value}'`).join(', ')} },\n`;
    });
    await expect(`${HEAD}${lines.join('')}]);\n`).toMatchFileSnapshot('../../src/doctor/schema-parts.ts');
    expect(await faults()).toEqual([]);
  });

  it.each([
    [
      'drop trigger runs_ended_never_change on runs',
      /^the trigger runs_ended_never_change of runs is missing.*migrations/,
    ],
    [
      'alter table runs disable trigger runs_ended_never_change',
      /is disabled.*alter table runs enable trigger runs_ended/,
    ],
    ['alter table runs enable replica trigger runs_ended_never_change', /runs_ended_never_change of runs is disabled/],
    [
      'drop index live_runs_order',
      /^the index live_runs_order of live_runs is missing: without it statements read whole/,
    ],
    ['drop index audit_entries_first_key', /^the unique index audit_entries_first_key of audit_entries is missing/],
    [
      `update pg_index set indisvalid = false where indexrelid = 'runs_newest'::regclass`,
      /^the index runs_newest of runs is not valid.*reindex index concurrently runs_newest/,
    ],
    [
      `create or replace function refuse_change() returns trigger language plpgsql as 'begin return new; end'`,
      /^the function refuse_change\(\) has another text than the migrations gave it/,
    ],
    ['drop table idempotency_keys', /^the table idempotency_keys is missing.*backup/],
  ])('%s is one fault', async (change, text) => {
    await sql.query(change);
    expect(await faults()).toEqual([expect.stringMatching(text)]);
  });

  it('are more than that where somebody made an index, a trigger or a table of their own', async () => {
    await sql.query(`create index mine on runs (name); create table theirs (id integer primary key);
                     create trigger own after insert on runs for each row execute function refuse_change();
                     select ensure_run_partitions(2)`);
    expect(await faults()).toEqual([]);
  });

  it('lack the constraints that were dropped, and keys that are not enforced', async () => {
    const { rows } = await sql.query(`select conname from pg_constraint where conrelid = 'runs'::regclass
                                        and contype in ('c', 'f') order by contype, conname`);
    const [check, foreign] = [rows[0].conname, rows.at(-1).conname];
    await sql.query(`alter table runs drop constraint ${check}`);
    await sql.query('alter table runs disable trigger all');
    const found = await faults();
    expect(found).toContainEqual(expect.stringContaining(`the constraint ${check} of runs is missing`));
    expect(found).toContainEqual(expect.stringContaining(`the constraint ${foreign} of runs is not valid`));
  });
});

describe('triggers that fire nowhere', () => {
  it('are found by the settings of the database and of roles that write here, each with its way back', async () => {
    expect(await state()).toEqual([]);
    const role = `writer_${newId().slice(-12)}`;
    const reader = `reader_${newId().slice(-12)}`;
    const name = new URL(db.url).pathname.slice(1);
    await sql.query(`create role ${role}; grant update on runs to ${role}; create role ${reader}`);
    for (const each of [`role ${role}`, `role ${role} in database ${name}`, `role ${reader}`, `database ${name}`]) {
      await sql.query(`alter ${each} set session_replication_role = replica`);
    }
    expect(await state()).toEqual(
      [`database ${name}`, `role ${role}`, `role ${role} in database ${name}`].map((each) =>
        expect.stringContaining(`; alter ${each} reset session_replication_role`),
      ),
    );
    await sql.query(`drop owned by ${role}; drop role ${role}; drop role ${reader}`);
  });

  it('are found in the session that looks', async () => {
    await pool.run((each) => each`set session_replication_role = replica`);
    expect(await state()).toEqual([expect.stringMatching(/^no trigger fires in this session.*set it to origin$/)]);
  });
});

describe('the row of the installation', () => {
  it('is missing where there are organizations, and not where nobody ever was', async () => {
    expect(await state()).toEqual([]);
    await sql.query(`insert into organizations (id, name) values ($1, 'one')`, [newId()]);
    expect(await state()).toEqual([expect.stringMatching(/row of the table installation is gone.*backup/)]);
  });
});
