/**
 * The surface under test, spoken to through one `send(request)`: an application in this process by default, a real
 * installation when `CAPSTAN_TEST_URL` names its base; then `CAPSTAN_TOKEN` is a token of its organization `default`
 * and `DATABASE_URL` its database. The same specs run against both.
 */
import { Agent, request as httpRequest } from 'node:http';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import pg from 'pg';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { AccessService } from '../src/access/access.service.js';
import { findOrganization } from '../src/access/access.sql.js';
import { AppModule } from '../src/app.module.js';
import { encodeId, newId } from '../src/kernel/ids.js';
import { Bell } from '../src/platform/bell.js';
import { readConfig } from '../src/platform/config/config.js';
import { BytePool } from '../src/platform/db/byte-pool.js';
import { Pool } from '../src/platform/db/db.js';
import { createApp } from '../src/platform/http/app.js';
import { Platform } from '../src/platform/platform.js';
import { systemTiming } from '../src/platform/time.js';
import { createDatabase, type TestDatabase } from './database.js';

export interface Request {
  readonly method?: string;
  /** Path and query, sent as they are. */
  readonly path: string;
  /** A bearer token; null sends none. By default the surface's own. */
  readonly token?: string | null;
  /** Values are bytes written as Latin-1, as on the wire. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** A body sent as JSON. */
  readonly json?: unknown;
  /** A body sent as it is; an array is sent in chunks, without a length. */
  readonly body?: string | Buffer | readonly Buffer[];
  /** Over a real connection even when the application is in this process. */
  readonly overTheWire?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly bytes: Buffer;
  readonly text: string;
  /** The body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the test is about
  readonly json: any;
}

export interface Surface {
  send(request: Request): Promise<Answer>;
  /** A pool on the installation's database, to put runs in states no caller could. */
  readonly pool: Pool;
  /** The same for statements that carry bytes. */
  readonly bytePool: BytePool;
  session(): Promise<pg.Client>;
  readonly token: string;
  readonly organizationId: string;
  /** Another organization with a token of its own. */
  stranger(): Promise<{ readonly token: string; readonly organizationId: string }>;
  /** A queue that nobody serves. */
  readonly queue: string;
  /** Where it listens; an application in this process does from the first call on. */
  base(): Promise<string>;
  close(): Promise<void>;
}

/** An application in this process, and what a test can break about it. */
export interface LocalSurface extends Surface {
  readonly platform: Platform;
  readonly app: NestFastifyApplication;
}

/** Whether something between here and a replica refused the request by itself; never so in this process. */
export function wasRefusedOnTheWay({ status, headers }: Answer): boolean {
  return process.env.CAPSTAN_TEST_URL !== undefined && status === 400 && headers['capstan-replica'] === undefined;
}

/** The installation that `CAPSTAN_TEST_URL` names, otherwise an application in this process. */
export async function openSurface(): Promise<Surface> {
  const base = process.env.CAPSTAN_TEST_URL;
  if (base === undefined) return openLocalSurface();
  const db = sharedDatabase(required('DATABASE_URL'));
  const token = required('CAPSTAN_TOKEN');
  const way = {
    send: (request: Ready) => overHttp(base, request),
    base: async () => base,
    stop: async () => undefined,
  };
  return surfaceOn(db, token, way);
}

/** For what can only be shown with an application of one's own. */
export async function openLocalSurface(): Promise<LocalSurface> {
  const db = await createDatabase();
  const token = `cap_${newId()}`;
  const { app, platform } = await openApp(db, token);
  let url: Promise<string> | undefined;
  const base = () => {
    url ??= listen(app);
    return url;
  };
  const send = async (request: Ready): Promise<Answer> =>
    request.overTheWire || Array.isArray(request.body) ? overHttp(await base(), request) : inject(app, request);
  return { ...(await surfaceOn(db, token, { send, base, stop: () => app.close() })), app, platform };
}

type Ready = Request & { readonly headers: Headers };

/** How the surface is reached, and how it is ended. */
interface Way {
  send(request: Ready): Promise<Answer>;
  base(): Promise<string>;
  stop(): Promise<void>;
}

async function surfaceOn(db: TestDatabase, token: string, { send, base, stop }: Way): Promise<Surface> {
  const pool = db.pool();
  const organization = await findOrganization(pool, 'default');
  if (!organization) throw new Error('the organization `default` is missing');
  return {
    pool,
    bytePool: db.bytePool(2),
    token,
    organizationId: organization.id,
    queue: `q-${newId()}`,
    session: () => db.session(),
    send: (request) => send({ ...request, headers: headersOf(request, token) }),
    stranger: () => makeStranger(db),
    base,
    close: async () => {
      await stop();
      await db.drop();
    },
  };
}

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`CAPSTAN_TEST_URL needs ${name} too`);
  return value;
}

/** The database of an installation that others use too: it is left as it is. */
function sharedDatabase(url: string): TestDatabase {
  const closing: (() => Promise<unknown>)[] = [];
  return {
    url,
    pool(size = 4) {
      const log = pino({ level: 'silent' });
      const pool = new Pool({ url, direct: true, name: 'test', size, statementTimeoutMs: 10_000, log });
      closing.push(() => pool.close());
      return pool;
    },
    bytePool(size = 4) {
      const pool = new BytePool({ url, direct: true, name: 'test', size, statementTimeoutMs: 10_000 });
      closing.push(() => pool.close());
      return pool;
    },
    async session() {
      const client = new pg.Client(url);
      client.on('error', () => undefined);
      await client.connect();
      closing.push(() => client.end());
      return client;
    },
    async drop() {
      await Promise.all(closing.map((close) => close()));
    },
  };
}

async function openApp(
  db: TestDatabase,
  token: string,
): Promise<{ readonly app: NestFastifyApplication; readonly platform: Platform }> {
  const read = readConfig({ DATABASE_URL: db.url, CAPSTAN_NAME: 'r1' });
  if (!read.ok) throw new Error(JSON.stringify(read.faults));
  const pools = {
    work: db.pool(2),
    submit: db.pool(2),
    output: db.bytePool(1),
    access: db.pool(1),
    read: db.pool(4),
    probe: db.bytePool(1),
  };
  const bells = { claimable: new Bell(), canceled: new Bell(), ended: new Bell<readonly string[]>() };
  const log = pino({ level: process.env.LOG_LEVEL ?? 'silent' });
  const platform = new Platform(read.config, log, new Registry(), systemTiming, pools, bells);
  const app = await createApp(AppModule.forRoot(platform), platform);
  const access = app.get(AccessService);
  await access.prepare();
  await access.bootstrap(token);
  return { app, platform };
}

async function listen(app: NestFastifyApplication): Promise<string> {
  await app.listen(0, '127.0.0.1');
  const address = app.getHttpServer().address();
  if (typeof address !== 'object' || address === null) throw new Error('the application does not listen');
  return `http://127.0.0.1:${address.port}`;
}

type Headers = Record<string, string | string[]>;

function headersOf(request: Request, ownToken: string): Headers {
  const headers: Headers = {};
  const token = request.token === undefined ? ownToken : request.token;
  if (token !== null) headers.authorization = `Bearer ${token}`;
  if ('json' in request) headers['content-type'] = 'application/json';
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    headers[name.toLowerCase()] = typeof value === 'string' ? value : [...value];
  }
  return headers;
}

function payloadOf(request: Request): string | Buffer | readonly Buffer[] | undefined {
  return 'json' in request ? JSON.stringify(request.json) : request.body;
}

async function inject(app: NestFastifyApplication, request: Ready): Promise<Answer> {
  const payload = payloadOf(request);
  const answer = await app.inject({
    method: (request.method ?? 'GET') as 'GET',
    url: request.path,
    headers: request.headers,
    ...(payload === undefined ? {} : { payload: payload as string | Buffer }),
  });
  return answerOf(answer.statusCode, answer.headers, answer.rawPayload);
}

/** Connections are kept: a walk of a thousand pages would otherwise open as many. */
const connections = new Agent({ keepAlive: true, maxFreeSockets: 8 });

function overHttp(base: string, request: Ready): Promise<Answer> {
  const { hostname, port } = new URL(base);
  const payload = payloadOf(request);
  return new Promise((resolve, reject) => {
    const { method = 'GET', path, headers } = request;
    const sent = httpRequest({ hostname, port, method, path, headers, agent: connections }, (received) => {
      const parts: Buffer[] = [];
      received.on('data', (part: Buffer) => parts.push(part));
      received.on('error', reject);
      received.on('end', () => {
        resolve(answerOf(received.statusCode ?? 0, received.headers, Buffer.concat(parts)));
      });
    });
    sent.on('error', reject);
    if (Array.isArray(payload)) {
      for (const part of payload) sent.write(part);
      sent.end();
      // Text would be written together with the headers, and make UTF-8 of their bytes.
    } else sent.end(typeof payload === 'string' ? Buffer.from(payload) : payload);
  });
}

function answerOf(status: number, headers: object, bytes: Buffer): Answer {
  const flat = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value === undefined ? undefined : String(value)]),
  );
  return {
    status,
    headers: flat,
    bytes,
    get text() {
      return bytes.toString('utf8');
    },
    get json() {
      return JSON.parse(bytes.toString('utf8'));
    },
  };
}

async function makeStranger(db: TestDatabase): Promise<{ token: string; organizationId: string }> {
  const [organizationId, token, id] = [newId(), `cap_${newId()}`, newId()];
  const session = await db.session();
  await session.query('insert into organizations (id, name) values ($1, $2)', [organizationId, `o-${organizationId}`]);
  await session.query('insert into audit_heads (chain_id, organization_id) values ($1, $2)', [
    encodeId('org', organizationId),
    organizationId,
  ]);
  await session.query(
    `insert into tokens (id, organization_id, name, hash) values ($1, $2, 'stranger', sha256($3::bytea))`,
    [id, organizationId, Buffer.from(token)],
  );
  return { token, organizationId };
}
