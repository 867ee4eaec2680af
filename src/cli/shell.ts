/**
 * The process around a command as a port: its streams, Ctrl-C and time.
 * Invariant: a write is over when the operating system took it, so nothing is lost at exit and a slow reader slows us.
 */
import { once } from 'node:events';
import type { Environment } from '../platform/config/setting.js';
import { systemTiming, type Timing } from '../platform/time.js';
import { Failure, wrongUsage } from './failure.js';

export interface Outlet {
  readonly isTerminal: boolean;
  /** Width of the terminal. */
  readonly columns: number | undefined;
  /** Fails with `readerGone` when the other end of a pipe was closed. */
  write(data: string | Uint8Array): Promise<void>;
}

export interface Shell {
  readonly env: Environment;
  readonly stdout: Outlet;
  readonly stderr: Outlet;
  readonly timing: Timing;
  /** All of standard input; fails with `usage` when there is more than `limitBytes`. */
  readStdin(limitBytes: number): Promise<Buffer>;
  /** Resolves at the first Ctrl-C; the second one ends the process. Only who asks takes Ctrl-C over. */
  interrupted(): Promise<void>;
}

export function processShell(env: Environment): Shell {
  return {
    env,
    stdout: outletOf(process.stdout, 'standard output'),
    stderr: outletOf(process.stderr, 'standard error'),
    timing: systemTiming,
    readStdin,
    interrupted: async () => {
      await once(process, 'SIGINT');
    },
  };
}

function outletOf(stream: NodeJS.WriteStream, name: string): Outlet {
  let isWatched = false;
  return {
    isTerminal: stream.isTTY === true,
    columns: stream.columns,
    write: (data) => {
      // The callback of `write` says what went wrong; without a listener the same error would end the process.
      if (!isWatched) stream.on('error', () => undefined);
      isWatched = true;
      return new Promise((resolve, reject) => {
        stream.write(data, (error) => (error ? reject(failedWrite(error, name)) : resolve()));
      });
    },
  };
}

function failedWrite(error: Error, name: string): Failure {
  const code = 'code' in error ? String(error.code) : error.message;
  if (code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED') return new Failure('readerGone', { title: 'pipe closed' });
  return new Failure('unable', { title: 'output', detail: `cannot write to ${name}: ${code}`, code: 'output' });
}

async function readStdin(limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    const data = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    bytes += data.length;
    if (bytes > limitBytes) throw wrongUsage(`standard input holds more than ${limitBytes} bytes`);
    chunks.push(data);
  }
  return Buffer.concat(chunks);
}
