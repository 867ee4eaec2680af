/** A real HTTP server of one test, which remembers what it was asked; and sockets that speak anything. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createServer as createSocketServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface Origin {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly port: number;
  /** Requests that came whole. */
  readonly asked: Asked[];
  /** Connections that were opened, and those of them that were closed again. */
  readonly connections: { opened: number; closed: number };
}

export type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

export async function startOrigin(answer: Answer, host = '127.0.0.1', port = 0): Promise<Origin> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const body = Buffer.concat(pieces).toString();
      const { method = '', url: path = '', headers } = request;
      asked.push({ method, path, headers, body });
      answer(request, response, body);
    });
    response.on('error', () => {});
  });
  return { ...(await listen(server, host, port)), asked };
}

/** Says `ok` to everything, at an `https` URL. */
export async function startSecureOrigin(cert: string, key: string): Promise<Omit<Origin, 'asked'>> {
  const server = createSecureServer({ cert, key }, (_request, response) => response.end('ok'));
  const origin = await listen(server, '127.0.0.1', 0);
  return { ...origin, url: origin.url.replace('http:', 'https:') };
}

/** Each connection gets `speak` once something came on it. */
export async function startSocketOrigin(speak: (socket: Socket) => void): Promise<Omit<Origin, 'asked'>> {
  return listen(
    createSocketServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => speak(socket));
    }),
    '127.0.0.1',
    0,
  );
}

async function listen(server: Server, host: string, port: number): Promise<Omit<Origin, 'asked'>> {
  const connections = { opened: 0, closed: 0 };
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.opened += 1;
    open.add(socket);
    socket.once('close', () => {
      connections.closed += 1;
      open.delete(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { url: `http://${host}:${address.port}`, port: address.port, connections };
}
