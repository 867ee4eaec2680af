/** A PostgreSQL of its own for hours of simulation: nothing in it has to survive. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { migrate } from '../../src/platform/db/migrate.js';
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded.js';
import type { Server } from './campaign.js';

const TEMPLATE = 'simulation_template';

export async function startServer(): Promise<Server & { stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-simulate-'));
  const log = () => undefined;
  const dataDir = join(folder, 'data');
  const server = await startEmbeddedPostgres({ dataDir, databaseName: 'capstan', log, durable: false });
  const stop = async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const admin = new pg.Client(server.adminUrl);
    await admin.connect();
    await admin.query(`create database ${TEMPLATE}`);
    await admin.end();
    const url = new URL(server.adminUrl);
    url.pathname = TEMPLATE;
    await migrate({ databaseUrl: url.href, waitMs: 10_000, log: pino({ level: 'silent' }) });
    return { adminUrl: server.adminUrl, template: TEMPLATE, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
