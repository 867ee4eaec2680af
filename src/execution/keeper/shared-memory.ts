/**
 * What the main thread and the keeper tell each other without a message, for either of them may be standing still.
 * Invariant: once `closeGate` has returned, the keeper never again writes to the pipe of that life, whose descriptor
 * the operating system may give to somebody else.
 */

const WORDS = [
  'gate',
  'mainTicks',
  'extensionSeq',
  'extensionSentAt',
  'renewals',
  'renewalFailures',
  'renewalSentAt',
  'sinceOutage',
] as const;
type Word = (typeof WORDS)[number];

/** The gate's word is `order * 2`, plus 1 while a frame of that life is being written. */
const WRITING = 1n;
/** A non-blocking write takes microseconds; longer means that the keeper is dead in the middle of one. */
const GATE_LIMIT_MS = 1_000;

export class SharedMemory {
  private readonly words: BigInt64Array;

  constructor(readonly buffer: SharedArrayBuffer = new SharedArrayBuffer(WORDS.length * 8)) {
    this.words = new BigInt64Array(buffer);
  }

  // Main thread ------------------------------------------------------------------------------------------------------

  tickMain(): void {
    Atomics.add(this.words, at('mainTicks'), 1n);
  }

  /** Opens the gate for the life of this order; no other is open then. */
  openGate(order: number): void {
    this.moveGate(BigInt(order) * 2n);
  }

  /** Shuts out the life of this order and waits, some microseconds at most, for a frame that is being written. */
  closeGate(order: number): void {
    this.moveGate(BigInt(order) * 2n + 2n);
  }

  private moveGate(next: bigint): void {
    const giveUpAt = performance.now() + GATE_LIMIT_MS;
    for (;;) {
      const now = Atomics.load(this.words, at('gate'));
      const isWriting = (now & WRITING) !== 0n;
      if (isWriting && performance.now() < giveUpAt) {
        Atomics.wait(this.words, at('gate'), now, GATE_LIMIT_MS);
        continue;
      }
      if (Atomics.compareExchange(this.words, at('gate'), now, next) !== now) continue;
      this.store('extensionSeq', 0n);
      return;
    }
  }

  // Keeper -----------------------------------------------------------------------------------------------------------

  /** Runs `write` while this life's gate is open and held; false when it is shut. */
  throughGate(order: number, write: () => void): boolean {
    const open = BigInt(order) * 2n;
    if (Atomics.compareExchange(this.words, at('gate'), open, open + WRITING) !== open) return false;
    try {
      write();
    } finally {
      Atomics.compareExchange(this.words, at('gate'), open + WRITING, open);
      Atomics.notify(this.words, at('gate'));
    }
    return true;
  }

  /** Called inside the gate. */
  noteExtension(seq: number, sentAt: bigint): void {
    this.store('extensionSeq', BigInt(seq));
    this.store('extensionSentAt', sentAt);
  }

  /** `isBehindOutage`: for so long before it none got through that it is counted as the first. */
  noteRenewal(sentAt: bigint, isBehindOutage: boolean): void {
    this.store('renewalSentAt', sentAt);
    Atomics.add(this.words, at('renewals'), 1n);
    if (isBehindOutage) this.store('sinceOutage', 1n);
    else Atomics.add(this.words, at('sinceOutage'), 1n);
  }

  /** A try of which it isn't known that it got through. */
  noteFailure(): void {
    Atomics.add(this.words, at('renewalFailures'), 1n);
  }

  // Both -------------------------------------------------------------------------------------------------------------

  get mainTicks(): bigint {
    return Atomics.load(this.words, at('mainTicks'));
  }

  get renewals(): number {
    return Number(Atomics.load(this.words, at('renewals')));
  }

  get renewalFailures(): number {
    return Number(Atomics.load(this.words, at('renewalFailures')));
  }

  /** Renewals in a row, none of which had to wait for an outage to end. */
  get renewalsSinceOutage(): number {
    return Number(Atomics.load(this.words, at('sinceOutage')));
  }

  /** The newest extension of the life whose gate is open; 0 for none. */
  get extensionSeq(): number {
    return Number(Atomics.load(this.words, at('extensionSeq')));
  }

  /** When the last extension of any life was sent, ms on the machine's monotonic clock. */
  get extensionSentAtMs(): number | undefined {
    return this.instant('extensionSentAt');
  }

  /** When the last renewal that got through was sent, ms on the machine's monotonic clock. */
  get renewalSentAtMs(): number | undefined {
    return this.instant('renewalSentAt');
  }

  private instant(word: Word): number | undefined {
    const ns = Atomics.load(this.words, at(word));
    return ns === 0n ? undefined : Number(ns) / 1e6;
  }

  private store(word: Word, value: bigint): void {
    Atomics.store(this.words, at(word), value);
  }
}

function at(word: Word): number {
  return WORDS.indexOf(word);
}
