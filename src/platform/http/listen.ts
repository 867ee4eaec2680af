/** Opens the port of an application; what is in the way becomes one line for the person. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Config } from '../config/config.js';
import { StartRefused } from '../start-refused.js';

/**
 * Finds a port that is taken before anything is started that would have to be stopped for it. To find it, the port is
 * open for less than a millisecond. Throws `StartRefused`.
 */
export async function refuseTakenPort({ port, host }: Config): Promise<void> {
  const trial = createServer();
  try {
    await once(trial.listen({ port, host }), 'listening');
  } catch (error) {
    throw new StartRefused(listenFault(error, 'CAPSTAN_PORT', port));
  }
  await new Promise((resolve) => trial.close(resolve));
}

/** Resolves with the URL to be told a person. Throws `StartRefused`. */
export async function listen(app: NestFastifyApplication, config: Config): Promise<string> {
  try {
    // Not through Nest, which would log the fault before it is told in one line.
    await app.getHttpAdapter().getInstance().listen({ port: config.port, host: config.host });
  } catch (error) {
    throw new StartRefused(listenFault(error, 'CAPSTAN_PORT', config.port));
  }
  const address = app.getHttpServer().address();
  const port = typeof address === 'object' && address !== null ? address.port : config.port;
  const host = config.host === '0.0.0.0' || config.host === '::' ? '127.0.0.1' : config.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

export function listenFault(error: unknown, setting: string, port: number): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') return `port ${port} is in use by another program: set ${setting} to a free one`;
  if (code === 'EACCES') return `port ${port} may not be opened by this user: set ${setting} to one above 1023`;
  return `can't listen on port ${port}: ${error instanceof Error ? error.message : String(error)}`;
}
