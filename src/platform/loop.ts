/** The one contract of everything that runs in the background. */

export interface Loop {
  readonly name: string;
  /** One bounded piece of work. `more`: call again at once; `idle`: after the interval, or when woken. */
  step(signal: AbortSignal): Promise<'idle' | 'more'>;
}
