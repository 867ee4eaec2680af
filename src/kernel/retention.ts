/** How long ended runs may be kept: what an organization may say, and the setting. */
import { parseDuration } from './duration.js';

export const SHORTEST_RETENTION = '1d';
export const LONGEST_RETENTION = '365d';

/** Milliseconds, or `undefined` when nobody may say so. */
export function parseRetention(text: string): number | undefined {
  const [ms, least = 0, most = 0] = [text, SHORTEST_RETENTION, LONGEST_RETENTION].map(parseDuration);
  return ms !== undefined && ms >= least && ms <= most ? ms : undefined;
}
