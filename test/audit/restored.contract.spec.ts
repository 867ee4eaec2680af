/**
 * A chain is text: carried into another database, of another collation, time zone and date style, it verifies there as
 * it did at home, head included, and goes on.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { Pool } from '../../src/platform/db/db.js';
import { migrate } from '../../src/platform/db/migrate.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { Ground } from '../runs/ground.fixture.js';
import { readChain, recompute } from './recompute.fixture.js';

/** Parents first. */
const TABLES = ['organizations', 'audit_heads', 'audit_entries', 'audit_anchors'];

const HOMES = [
  {
    where: 'of the collation C, in New Zealand, with German dates',
    create: `template template0 encoding 'UTF8' locale_provider libc locale 'C'`,
    settings: { timezone: 'Pacific/Chatham', datestyle: 'German, DMY', bytea_output: 'escape' },
  },
  {
    where: 'of the Turkish collation of ICU, in India, with American dates',
    create: `template template0 encoding 'UTF8' locale_provider icu icu_locale 'tr-TR' locale 'C'`,
    settings: { timezone: 'Asia/Kolkata', datestyle: 'SQL, MDY', bytea_output: 'hex' },
  },
];

let ground: Ground;
let folder: string;
beforeAll(async () => {
  ground = await Ground.open();
  folder = await mkdtemp(join(tmpdir(), 'capstan-restore-'));
  await chmod(folder, 0o777);
  await fillChain();
});
afterAll(async () => {
  await ground.close();
  await rm(folder, { recursive: true, force: true });
});

/** Entries with all that has ever come back from a database as something else. */
async function fillChain(): Promise<void> {
  const composed = 'caf\u00e9 \u00c5 \ufb01 \u1e9b\u0323';
  const keys = [
    composed,
    composed.normalize('NFD'),
    '\u{1f600}\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
    'I\u0130i\u0131',
    '"\\\u2028\u007f<&>',
  ];
  const runs = await ground.submit(...keys.map((key) => ({ key })));
  await cancelIfLive(ground.pool, [ground.cancel(runs[0]?.id ?? '', { byName: '\u0001\u001f\t\r\n\\x00 \\. \\N' })]);
  const payload = {
    action: 'test.made',
    z: 1,
    a: 2,
    Z: 3,
    ä: 4,
    big: Number.MAX_SAFE_INTEGER,
    text: 'x\u00e9\n'.repeat(350_000),
  };
  await ground.sql.query(`select from audit_append(array[$1], array[$2::jsonb], array[null::uuid])`, [
    ground.chain,
    JSON.stringify(payload),
  ]);
}

/** Writes all that chains are made of to files, as the server's own dump would. */
async function dump(): Promise<void> {
  await ground.sql.query(`set datestyle = 'ISO'`);
  for (const table of TABLES) await ground.sql.query(`copy ${table} to '${join(folder, table)}'`);
}

/** A database of its own that was made this way, with these defaults, and the dump in it. */
async function restore(create: string, settings: Readonly<Record<string, string>>) {
  const admin = new pg.Client(inject('postgresUrl'));
  await admin.connect();
  const name = `${new URL(ground.db.url).pathname.slice(1)}_restored`;
  await admin.query(`create database ${name} ${create}`);
  for (const [setting, value] of Object.entries(settings)) {
    await admin.query(`alter database ${name} set ${setting} = '${value}'`);
  }
  const url = new URL(inject('postgresUrl'));
  url.pathname = name;
  const log = pino({ level: 'silent' });
  await migrate({ databaseUrl: url.href, waitMs: 10_000, log });
  const sql = new pg.Client(url.href);
  await sql.connect();
  await sql.query(`begin; set local datestyle = 'ISO'`);
  for (const table of TABLES) await sql.query(`copy ${table} from '${join(folder, table)}'`);
  await sql.query('commit');
  const pool = new Pool({ url: url.href, direct: true, name: 'test', size: 2, statementTimeoutMs: 10_000, log });
  const close = async () => {
    await Promise.all([pool.close(), sql.end()]);
    await admin.query(`drop database ${name} with (force)`);
    await admin.end();
  };
  return { sql, pool, close };
}

describe('a chain in another database', () => {
  it.each(HOMES)(
    'F137 $where: is the same text, verifies, and goes on',
    { timeout: 60_000 },
    async ({ create, settings }) => {
      await dump();
      const home = await readChain(ground.sql, ground.chain);
      const verdict = await new AuditService(ground.pool).verify(ground.chain);
      expect(verdict).toMatchObject({ ok: true, entries: home.head.seq });
      const { sql, pool, close } = await restore(create, settings);
      try {
        const { rows } = await sql.query('show timezone');
        expect(rows, 'it really is another place').toEqual([{ TimeZone: settings.timezone }]);
        expect(await readChain(sql, ground.chain)).toEqual(home);
        const audit = new AuditService(pool);
        for (const chain of [ground.chain, ground.installation]) {
          const { ok, entries, head } = await new AuditService(ground.pool).verify(chain);
          expect(await audit.verify(chain)).toMatchObject({ ok, entries, head });
        }
        await sql.query(
          `select from audit_append(array[$1], array['{"action":"test.later"}'::jsonb], array[null::uuid])`,
          [ground.chain],
        );
        expect(await audit.verify(ground.chain)).toMatchObject({ ok: true, entries: home.head.seq + 1 });
        const grown = await readChain(sql, ground.chain);
        expect(recompute(ground.chain, grown)).toBeUndefined();
        const [last, before] = [grown.entries.at(-1), grown.entries.at(-2)];
        const atOf = (claim = '{}') => (JSON.parse(claim) as { at: string }).at;
        expect(Date.parse(atOf(last?.claim))).toBeGreaterThanOrEqual(Date.parse(atOf(before?.claim)));
      } finally {
        await close();
      }
    },
  );
});
