/**
 * What is generated from the application: the OpenAPI document as the code has it. It is made without a database: no
 * route is asked, so no connection is opened.
 */
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { AppModule } from '../src/app.module.js';
import { Bell } from '../src/platform/bell.js';
import { readConfig } from '../src/platform/config/config.js';
import { BytePool } from '../src/platform/db/byte-pool.js';
import { Pool } from '../src/platform/db/db.js';
import { createApp } from '../src/platform/http/app.js';
import { buildOpenApi } from '../src/platform/http/openapi.js';
import { Platform } from '../src/platform/platform.js';
import { systemTiming } from '../src/platform/time.js';

/** What is made of an application that answers nobody; it is closed afterwards. */
export async function ofApplication<T>(make: (app: NestFastifyApplication) => T): Promise<Awaited<T>> {
  const read = readConfig({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', CAPSTAN_NAME: 'document' });
  if (!read.ok) throw new Error(JSON.stringify(read.faults));
  const log = pino({ level: 'silent' });
  const url = read.config.databaseUrl ?? '';
  const pool = new Pool({ url, direct: true, name: 'none', size: 1, statementTimeoutMs: 1_000, log });
  const output = new BytePool({ url, direct: true, name: 'none', size: 1, statementTimeoutMs: 1_000 });
  const pools = { work: pool, submit: pool, output, access: pool, read: pool, probe: output };
  const bells = { claimable: new Bell(), canceled: new Bell(), ended: new Bell<readonly string[]>() };
  const platform = new Platform(read.config, log, new Registry(), systemTiming, pools, bells);
  const app = await createApp(AppModule.forRoot(platform), platform);
  try {
    return await make(app);
  } finally {
    await app.close();
    await pool.close();
  }
}

export function openApiText(): Promise<string> {
  return ofApplication(buildOpenApi);
}
