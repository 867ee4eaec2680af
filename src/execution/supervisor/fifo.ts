/**
 * Real pipes for tools. What Node calls a pipe is a socket pair, which cannot be opened again by name, so that
 * `echo x > /dev/stderr` in a script would fail with ENXIO. A named pipe that is opened at both ends and unlinked is a
 * pipe; they are made in batches because `mkfifo` costs a process (1 ms, for one as for 64). Not for stdin: a named
 * pipe without a writer blocks whoever opens it again.
 */
import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, unlink, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { findSystemProgram } from './program.js';

const BATCH = 64;
const LOW_WATER = 16;

/** Makes named pipes, readable and writable for this user only. */
export function makeFifos(paths: readonly string[]): Promise<void> {
  const program = findSystemProgram('mkfifo');
  if (program === null) return Promise.reject(new Error('mkfifo not found: it comes with coreutils and busybox'));
  return new Promise((resolve, reject) => {
    execFile(program, ['-m', '600', ...paths], { env: {} }, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** A fresh pipe under a name that is nobody else's. */
export interface NamedPipe {
  readonly path: string;
  /** Its name is in memory: taking it away waits for no disk. */
  readonly isInMemory: boolean;
}

/** For stdout and stderr. */
export type ToolPipes = readonly [NamedPipe, NamedPipe];

/** Both ends of a pipe whose name is gone. */
export interface PipeEnds {
  readonly readFd: number;
  readonly writeFd: number;
}

/** The reading end is ours (non-blocking), the writing end the tool's. */
export function openForOutput({ path, isInMemory }: NamedPipe): PipeEnds {
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const writeFd = openSync(path, constants.O_WRONLY);
    // On a disk that others flush, taking a name away can take milliseconds.
    if (isInMemory) unlinkSync(path);
    else unlink(path, () => {});
    return { readFd, writeFd };
  } catch (error) {
    closeSync(readFd);
    throw error;
  }
}

/** Fresh pipes in one folder, made ahead of need. */
export class FifoPool {
  readonly #folder: string;
  readonly #isInMemory: boolean;
  readonly #ready: NamedPipe[] = [];
  #made = 0;
  #refill: Promise<void> | null = null;

  constructor(folder: string, isInMemory: boolean) {
    this.#folder = folder;
    this.#isInMemory = isInMemory;
  }

  /** Rejects when pipes cannot be made (no space, no process). */
  async take(): Promise<ToolPipes> {
    for (;;) {
      const [out, err] = this.#ready;
      if (out !== undefined && err !== undefined) {
        this.#ready.splice(0, 2);
        // A failure here shows again in the take that needs the pipes.
        if (this.#ready.length < LOW_WATER) this.#fill().catch(() => {});
        return [out, err];
      }
      await this.#fill();
    }
  }

  /** For those that were taken and not opened. */
  giveBack(pipes: ToolPipes): void {
    this.#ready.push(...pipes);
  }

  #fill(): Promise<void> {
    this.#refill ??= this.#makeBatch().finally(() => {
      this.#refill = null;
    });
    return this.#refill;
  }

  async #makeBatch(): Promise<void> {
    const paths = Array.from({ length: BATCH }, (_, index) => join(this.#folder, `p${this.#made + index}`));
    this.#made += BATCH;
    await makeFifos(paths);
    this.#ready.push(...paths.map((path) => ({ path, isInMemory: this.#isInMemory })));
  }
}
