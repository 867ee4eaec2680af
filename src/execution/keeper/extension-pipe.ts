/**
 * The keeper's end of the pipe on which a supervisor's deadline is extended. Writing is synchronous and never throws:
 * what can't be written extends nothing, and the tools are stopped on time.
 */
import { fstatSync, writeSync } from 'node:fs';
import { encodeExtension } from '../supervisor/keeper-frame.js';
import type { LifeOrder } from './keeper.js';
import type { SharedMemory } from './shared-memory.js';

export type ExtensionOutcome =
  | { readonly kind: 'written'; readonly seq: number }
  /** The life was ended meanwhile. */
  | { readonly kind: 'shut' }
  | { readonly kind: 'failed'; readonly error: string };

export class ExtensionPipe {
  private seq = 0;
  private isTorn = false;

  constructor(
    private readonly life: LifeOrder,
    private readonly memory: SharedMemory,
  ) {}

  /** Tells the supervisor that a renewal sent at `sentAt` (ns, `process.hrtime.bigint`) has succeeded. */
  extend(sentAt: bigint): ExtensionOutcome {
    let outcome: ExtensionOutcome = { kind: 'shut' };
    this.memory.throughGate(this.life.order, () => {
      outcome = this.write(sentAt);
    });
    return outcome;
  }

  private write(sentAt: bigint): ExtensionOutcome {
    if (this.isTorn) return { kind: 'failed', error: 'an earlier frame was cut short' };
    // The main thread closes its end by itself once the supervisor's is gone; the number may then be a client's socket.
    if (pipeIdentity(this.life.pipeFd) !== this.life.pipeIdentity)
      return { kind: 'failed', error: 'the pipe is closed' };
    const seq = this.seq + 1;
    const frame = encodeExtension({ incarnation: this.life.incarnation, seq, sentAtNs: sentAt });
    try {
      // Half a frame would shift all that follow it.
      this.isTorn = writeSync(this.life.pipeFd, frame) !== frame.length;
    } catch (error) {
      return { kind: 'failed', error: error instanceof Error ? error.message : String(error) };
    }
    if (this.isTorn) return { kind: 'failed', error: 'the frame was cut short' };
    this.seq = seq;
    this.memory.noteExtension(seq, sentAt);
    return { kind: 'written', seq };
  }
}

/** What an open descriptor refers to, for telling whether it still does; undefined when it is closed. */
export function pipeIdentity(fd: number): string | undefined {
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
