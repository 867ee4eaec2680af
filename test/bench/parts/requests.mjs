/** Runs as somebody waits for them: from the request to the answer that knows the end. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { figureOfTimes, series } from '../figures.mjs';
import { timed } from '../lanes.mjs';

export async function wait(ground, { sizes }) {
  const replica = await ground.replica();
  const once = () => timed(() => replica.client.runToEnd({ kind: 'noop' }));
  await series(5, once);
  const samples = await series(sizes.isQuick ? 50 : 500, once);
  return [figureOfTimes('`noop` with `Prefer: wait`, request to answer', samples)];
}

export async function http(ground, { sizes }) {
  const server = createServer((_, answer) => answer.end('{"ok":true}')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const replica = await ground.replica();
  try {
    const run = { kind: 'http', spec: { method: 'GET', url: `http://127.0.0.1:${server.address().port}/` } };
    const request = () => timed(() => replica.client.runToEnd(run));
    await series(5, request);
    const samples = await series(sizes.isQuick ? 50 : 500, request);
    return [figureOfTimes('`http` run to a server beside it, request to answer', samples)];
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
