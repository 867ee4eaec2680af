/**
 * An answer to a request whose body has not all come. Closing with unread bytes makes the system reset the connection,
 * and what was answered may be lost with it: a balancer would say 502, and hold it against the replica. So the answer
 * goes out at once, the rest of the body is read and dropped, and only then may the connection close.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Who sends for longer than this is cut off, and who sends nothing for so long. */
const LINGER_MS = 10_000;
const SILENT_MS = 1_000;

/** For the hook `onSend`: the payload, or a stream of it that ends when the request has. */
export function lingering(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
  const { raw } = request;
  const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload);
  if (raw.complete || raw.readableEnded || raw.destroyed || !isWhole) return payload;
  void reply.header('content-length', Buffer.byteLength(payload));
  return Readable.from(thenWait(payload, raw), { objectMode: false });
}

async function* thenWait(payload: string | Buffer, raw: IncomingMessage): AsyncGenerator<string | Buffer> {
  yield payload;
  const over = new AbortController();
  const silent = setTimeout(() => over.abort(), SILENT_MS);
  const long = setTimeout(() => over.abort(), LINGER_MS);
  raw.on('data', () => silent.refresh());
  await finished(raw, { writable: false, signal: over.signal }).catch(() => undefined);
  clearTimeout(silent);
  clearTimeout(long);
}
