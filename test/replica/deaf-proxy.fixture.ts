/** A way to the database on which every NOTIFY is lost, and nothing else: nobody on it can tell. */
import { once } from 'node:events';
import { createServer, connect as tcpConnect } from 'node:net';
import { Transform } from 'node:stream';

const NOTIFICATION = 'A'.charCodeAt(0);
/** The type of a message and its length, which counts itself but not the type. */
const HEADER_BYTES = 5;

export interface DeafProxy {
  /** The database's URL by way of the proxy. */
  readonly through: string;
  /** Notifications that were lost so far. */
  lost(): number;
  close(): void;
}

export async function startDeafProxy(url: string): Promise<DeafProxy> {
  const target = new URL(url);
  const port = Number(target.port);
  let lost = 0;
  const server = createServer((client) => {
    const upstream = tcpConnect(port, '127.0.0.1');
    client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => client.destroy()).on('close', () => client.destroy());
    const deaf = withoutNotifications(() => {
      lost += 1;
    });
    client.pipe(upstream).pipe(deaf).pipe(client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('no address');
  target.port = String(address.port);
  return { through: target.href, lost: () => lost, close: () => void server.close() };
}

function withoutNotifications(onLost: () => void): Transform {
  let held = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _encoding, taken) {
      held = Buffer.concat([held, chunk]);
      while (held.length >= HEADER_BYTES) {
        const end = 1 + held.readUInt32BE(1);
        if (held.length < end) break;
        if (held[0] === NOTIFICATION) onLost();
        else this.push(held.subarray(0, end));
        held = held.subarray(end);
      }
      taken();
    },
  });
}
