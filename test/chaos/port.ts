/** Ports of this machine. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/** A port that was free a moment ago, for a program that can't say which one it took. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || !address) throw new Error('no address');
  return address.port;
}
