/** Whether the database can be reached, over all lives: one report when renewals start to fail, one when they're back. */
import type { FromKeeper } from './keeper.js';
import { nowMs } from './monotonic.js';

const LONGEST_TEXT = 500;
const TOO_MANY_CONNECTIONS = '53300';

export class Outage {
  private sinceMs: number | undefined;

  constructor(private readonly report: (message: FromKeeper) => void) {}

  noteFailure(error: unknown): void {
    if (isNoRoom(error)) this.report({ type: 'refused' });
    if (this.sinceMs !== undefined) return;
    this.sinceMs = nowMs();
    this.report({ type: 'failing', sinceMs: Date.now(), error: errorText(error) });
  }

  noteSuccess(): void {
    if (this.sinceMs === undefined) return;
    this.report({ type: 'recovered', downMs: Math.round(nowMs() - this.sinceMs) });
    this.sinceMs = undefined;
  }
}

/** The server, its database or the role may have no more connections. */
function isNoRoom(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === TOO_MANY_CONNECTIONS;
}

/** A refused connection to a name with several addresses says nothing itself; its parts do. */
function errorText(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(errorText).join('; ');
  return (error instanceof Error ? error.message : String(error)).slice(0, LONGEST_TEXT);
}
