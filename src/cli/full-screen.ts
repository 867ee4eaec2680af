/**
 * The whole of a terminal for a while: frames are drawn over each other, keys are read one by one. Invariant: when the
 * process ends, by itself or by a signal that people end one with, but for SIGKILL, the screen, the cursor and the line
 * discipline are as they were before.
 */

/** The other screen, so that what was on this one comes back; no wrapping: a line that is too long is cut off. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_TO_END_OF_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** Signals that would end the process without a word. */
const ENDING = ['SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
const HUNG_UP = 129;

export class FullScreen {
  private isEntered = false;
  private readonly wakers = new Set<() => void>();
  private readonly keys: string[] = [];

  constructor(
    private readonly input: NodeJS.ReadStream,
    private readonly output: NodeJS.WriteStream,
  ) {}

  get columns(): number {
    return this.output.columns || 80;
  }

  get rows(): number {
    return this.output.rows || 24;
  }

  enter(): void {
    this.isEntered = true;
    process.on('exit', this.leave);
    for (const signal of ENDING) process.on(signal, this.end);
    this.output.on('resize', this.wake);
    // Whoever closed the terminal reads and types no more.
    for (const stream of [this.input, this.output]) stream.on('error', () => process.exit(HUNG_UP));
    this.input.setRawMode(true);
    this.input.on('data', this.take);
    this.input.resume();
    this.output.write(ENTER);
  }

  readonly leave = (): void => {
    if (!this.isEntered) return;
    this.isEntered = false;
    // Of a terminal that is gone the mode can't be set; what shows comes first.
    this.output.write(LEAVE);
    this.output.off('resize', this.wake);
    this.input.off('data', this.take).pause();
    for (const signal of ENDING) process.off(signal, this.end);
    process.off('exit', this.leave);
    this.input.setRawMode(false);
  };

  /** What doesn't fit is left out; the lines steer nothing but colors. Nothing is drawn on a screen that was given back. */
  draw(lines: readonly string[]): void {
    if (!this.isEntered) return;
    const shown = lines.slice(0, this.rows).map((line) => `${line}${CLEAR_TO_END_OF_LINE}`);
    this.output.write(`${HOME}${shown.join('\r\n')}${CLEAR_BELOW}`);
  }

  /** The next key, or `undefined` when `signal` aborts or the size of the screen has changed. */
  async key(signal: AbortSignal): Promise<string | undefined> {
    if (this.keys.length === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.wakers.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.wakers.add(wake);
        signal.addEventListener('abort', wake);
      });
    }
    return this.keys.shift();
  }

  private readonly end = (_: NodeJS.Signals, number: number) => process.exit(128 + number);

  private readonly take = (data: Buffer): void => {
    this.keys.push(...data.toString('latin1'));
    this.wake();
  };

  private readonly wake = (): void => {
    for (const wake of this.wakers) wake();
  };
}
