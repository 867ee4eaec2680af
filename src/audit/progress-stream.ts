/** The answer to a long question as server-sent events: `progress` now and then, and `result` at the end. */
import type { Writable } from 'node:stream';

const PROGRESS_EVERY_MS = 250;
/** For proxies, and for callers that take silence for death: the question may stand in line behind another. */
const HEARTBEAT_MS = 15_000;

export class ProgressStream {
  private out: Writable | undefined;
  private toldAtMs = Number.NEGATIVE_INFINITY;
  private readonly heart = setInterval(() => this.write(': \n\n'), HEARTBEAT_MS);

  /** `begin` is called when there is something to say; until then a problem can be answered instead. */
  constructor(private readonly begin: () => Writable) {}

  get hasBegun(): boolean {
    return this.out !== undefined;
  }

  progress(progress: object): void {
    const now = performance.now();
    // Who reads slowly needs no history.
    if (now - this.toldAtMs < PROGRESS_EVERY_MS || this.out?.writableNeedDrain) return;
    this.toldAtMs = now;
    this.event('progress', progress);
  }

  result(result: object): void {
    this.event('result', result);
    this.out?.end();
  }

  /** To be called whatever came of it. An answer without a result is broken off. */
  close(): void {
    clearInterval(this.heart);
    if (!this.out?.writableEnded) this.out?.destroy();
  }

  private event(name: string, data: object): void {
    this.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  private write(text: string): void {
    this.out ??= this.begin();
    if (!this.out.destroyed) this.out.write(text);
  }
}
