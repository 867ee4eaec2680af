/**
 * One throwaway PostgreSQL for a whole test run, with a migrated template database that each spec file clones.
 * Durability is off: these databases live for seconds. What must survive a crash is tested with the product's own.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import type { TestProject } from 'vitest/node';
import { migrate } from '../src/platform/db/migrate.js';
import { startEmbeddedPostgres } from '../src/platform/postgres/embedded.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Connection URL of the test server, as its superuser. */
    postgresUrl: string;
  }
}

export const TEMPLATE = 'capstan_template';

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-test-'));
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, 'data'),
    databaseName: 'capstan',
    log: () => undefined,
    durable: false,
    flags: ['-c', 'max_connections=300'],
  });
  const admin = new pg.Client(server.adminUrl);
  await admin.connect();
  await admin.query(`create database ${TEMPLATE}`);
  const url = new URL(server.adminUrl);
  url.pathname = TEMPLATE;
  await migrate({ databaseUrl: url.href, waitMs: 10_000, log: pino({ level: 'silent' }) });
  await admin.query(`alter database ${TEMPLATE} is_template true allow_connections false`);
  await admin.end();
  project.provide('postgresUrl', server.adminUrl);
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
