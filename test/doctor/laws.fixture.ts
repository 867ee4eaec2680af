/** Ends a suite: every law holds in the database that it leaves behind. */
import { pino } from 'pino';
import { expect } from 'vitest';
import { violations } from '../../src/doctor/invariants.js';
import type { Violation } from '../../src/doctor/laws.js';
import { Pool } from '../../src/platform/db/db.js';

/** All that doesn't obey a law, over one connection. */
export async function violationsAt(url: string): Promise<Violation[]> {
  const pool = new Pool({
    url,
    direct: true,
    name: 'laws',
    size: 1,
    statementTimeoutMs: 30_000,
    log: pino({ level: 'silent' }),
  });
  try {
    return await violations(pool);
  } finally {
    await pool.close();
  }
}

export async function expectLaws(url: string): Promise<void> {
  expect(await violationsAt(url), 'what the laws of src/doctor/laws.ts find').toEqual([]);
}
