/**
 * The whole of a terminal for a while: frames are drawn over each other, keys are read one by one. Invariant: however the
 * process ends, short of SIGKILL, the screen, the cursor and the line discipline are as they were before.
 */

/** The other screen, so that what was on this one comes back; no wrapping: a line that is too long is cut off. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_TO_END_OF_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** Signals that would end the process without a word. */
const ENDING = { SIGTERM: 143, SIGHUP: 129 } as const;

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
    for (const [signal, code] of Object.entries(ENDING)) process.on(signal, () => process.exit(code));
    this.output.on('resize', this.wake);
    // Whoever closed the terminal reads no more.
    this.output.on('error', () => process.exit(ENDING.SIGHUP));
    this.input.setRawMode(true);
    this.input.on('data', this.take);
    this.input.resume();
    this.output.write(ENTER);
  }

  readonly leave = (): void => {
    if (!this.isEntered) return;
    this.isEntered = false;
    this.input.setRawMode(false);
    this.input.off('data', this.take).pause();
    this.output.off('resize', this.wake);
    this.output.write(LEAVE);
  };

  /** What doesn't fit is left out; the lines steer nothing but colors. */
  draw(lines: readonly string[]): void {
    const shown = lines.slice(0, this.rows).map((line) => `${line}${CLEAR_TO_END_OF_LINE}`);
    this.output.write(`${HOME}${shown.join('\r\n')}${CLEAR_BELOW}`);
  }

  /** The next key, or `undefined` when `signal` aborts or the size of the screen has changed. */
  async key(signal: AbortSignal): Promise<string | undefined> {
    if (this.keys.length === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.wakers.add(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    return this.keys.shift();
  }

  private readonly take = (data: Buffer): void => {
    this.keys.push(...data.toString('latin1'));
    this.wake();
  };

  private readonly wake = (): void => {
    for (const resolve of this.wakers) resolve();
    this.wakers.clear();
  };
}
