/** How an application closes: what is being answered is answered, and nobody keeps it open for ever. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type LocalSurface, openLocalSurface } from '../../send.js';
import { until } from '../../server.js';

let surface: LocalSurface;
beforeEach(async () => {
  surface = await openLocalSurface();
});
afterEach(() => surface.close());

/** A request that waits for a lock of the test, until it is let go; its status, 0 when it was cut off. */
async function heldUp(): Promise<{ readonly answer: Promise<number>; readonly letGo: () => Promise<unknown> }> {
  const holder = await surface.session();
  await holder.query('begin');
  await holder.query('lock table live_runs in access exclusive mode');
  const answer = surface.send({ path: '/v1/runs', overTheWire: true }).then(
    ({ status }) => status,
    () => 0,
  );
  await until('the request waits for the lock', async () => {
    const [row] = await surface.pool.run<{ n: number }[]>(
      (sql) => sql`select count(*)::integer as n from pg_stat_activity
                   where wait_event_type = 'Lock' and datname = current_database()`,
    );
    return row?.n === 1;
  });
  return { answer, letGo: () => holder.query('commit') };
}

it('a request in flight is answered before the application is closed, and an idle connection is not waited for', async () => {
  const idle = connect(Number(new URL(await surface.base()).port), '127.0.0.1');
  idle.on('error', () => undefined);
  idle.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(idle, 'data');
  const idleIsClosed = once(idle, 'close');
  const { answer, letGo } = await heldUp();
  let isClosed = false;
  const closed = surface.app.close().then(() => {
    isClosed = true;
  });
  await until('no new connection is taken', async () => !surface.app.getHttpServer().listening);
  await idleIsClosed;
  expect(isClosed).toBe(false);
  await letGo();
  expect(await answer).toBe(200);
  await closed;
});

it('a request that never ends is cut off', { timeout: 15_000 }, async () => {
  const socket = connect(Number(new URL(await surface.base()).port), '127.0.0.1');
  socket.on('error', () => undefined);
  const arrived = once(surface.app.getHttpServer(), 'request');
  socket.write('POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{');
  await arrived;
  await Promise.all([once(socket, 'close'), surface.app.close()]);
});
