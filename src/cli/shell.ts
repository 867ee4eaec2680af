/**
 * The process around a command as a port: its streams, Ctrl-C and time.
 * Invariant: a write is over when the operating system took it, so nothing is lost at exit and a slow reader slows us.
 */
import { isatty } from 'node:tty';
import type { Environment } from '../platform/config/setting.js';
import { systemTiming, type Timing } from '../platform/time.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure, wrongUsage } from './failure.js';
import { FullScreen } from './full-screen.js';
import { printable } from './text.js';

export interface Outlet {
  readonly isTerminal: boolean;
  /** Width of the terminal. */
  readonly columns: number | undefined;
  /** What was written last ended without a newline; two terminals are one screen, whichever was written to. */
  readonly isLineOpen: boolean;
  /** Fails with `readerGone` when the other end of a pipe was closed. */
  write(data: string | Uint8Array): Promise<void>;
}

/** A line at the bottom of the screen; whatever is written next stands in its place. Never fails. */
export interface StatusLine {
  /** Replaces what is shown. Without a terminal, and behind a line that a tool left open, nothing is. */
  show(text: string): Promise<void>;
  clear(): Promise<void>;
}

export interface Shell {
  readonly env: Environment;
  readonly stdout: Outlet;
  readonly stderr: Outlet;
  readonly status: StatusLine;
  /** A person sits there: standard input and standard error are terminals. */
  readonly isInteractive: boolean;
  readonly timing: Timing;
  /** All of standard input; fails with `usage` when there is more than `limitBytes`. */
  readStdin(limitBytes: number): Promise<Buffer>;
  /** Asks on standard error; the line that is typed, without its end. For a person alone: see `isInteractive`. */
  ask(question: string): Promise<string>;
  /** The whole screen; `undefined` where standard input or output is no terminal. */
  fullScreen(): FullScreen | undefined;
  /** Resolves at the next Ctrl-C. From the first time on that somebody asks, one that nobody waits for ends the process. */
  interrupted(): Promise<void>;
}

export function processShell(env: Environment): Shell {
  const screen: Screen = { isOpen: false, hasStatus: false };
  const stderr = outletOf(process.stderr, 'standard error', screen);
  return {
    env,
    stdout: outletOf(process.stdout, 'standard output', screen),
    stderr,
    status: statusLine(process.stderr, screen),
    isInteractive: isatty(0) && isatty(2),
    timing: systemTiming,
    readStdin,
    ask: async (question) => {
      await stderr.write(question);
      return await lineTyped();
    },
    fullScreen: () => (isatty(0) && isatty(1) ? new FullScreen(process.stdin, process.stdout) : undefined),
    interrupted: interruptions(screen),
  };
}

const CLEAR_LINE = '\r\u001b[K';

const NEWLINE = 0x0a;

/** The listener stays: without one the next Ctrl-C would end the process while the first is still being answered. */
function interruptions(screen: Screen): () => Promise<void> {
  let waiting: (() => void)[] | undefined;
  const onSignal = () => {
    const told = waiting ?? [];
    waiting = [];
    // Whoever answered the last one may be stuck in a write.
    if (told.length === 0) {
      if (screen.hasStatus) process.stderr.write(CLEAR_LINE);
      process.exit(EXIT_CODES.interrupted.code);
    }
    for (const resolve of told) resolve();
  };
  return () => {
    if (waiting === undefined) process.on('SIGINT', onSignal);
    waiting ??= [];
    const own = waiting;
    return new Promise((resolve) => own.push(resolve));
  };
}

/** What is at the cursor. */
interface Screen {
  isOpen: boolean;
  hasStatus: boolean;
}

function statusLine(stream: NodeJS.WriteStream, screen: Screen): StatusLine {
  const draw = (text: string) => new Promise<void>((resolve) => stream.write(text, () => resolve()));
  return {
    show: async (text) => {
      if (!stream.isTTY || screen.isOpen) return;
      screen.hasStatus = true;
      // One that is wider than the screen would leave lines behind.
      await draw(`${CLEAR_LINE}${printable(text).slice(0, (stream.columns || 80) - 1)}`);
    },
    clear: async () => {
      if (!screen.hasStatus) return;
      screen.hasStatus = false;
      await draw(CLEAR_LINE);
    },
  };
}

function outletOf(stream: NodeJS.WriteStream, name: string, screen: Screen): Outlet {
  let isWatched = false;
  const line = stream.isTTY ? screen : { isOpen: false, hasStatus: false };
  return {
    isTerminal: stream.isTTY === true,
    columns: stream.columns,
    get isLineOpen() {
      return line.isOpen;
    },
    write: (data) => {
      if (data.length > 0) line.isOpen = data.at(-1) !== (typeof data === 'string' ? '\n' : NEWLINE);
      // The callback of `write` says what went wrong; without a listener the same error would end the process.
      if (!isWatched) stream.on('error', () => undefined);
      isWatched = true;
      if (line.hasStatus) stream.write(CLEAR_LINE);
      line.hasStatus = false;
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

/** What a person types up to the end of a line, or of the input. */
async function lineTyped(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.includes('\n')) break;
  }
  return text.split('\n')[0]?.trim() ?? '';
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
