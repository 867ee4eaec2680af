/**
 * What replicas tell each other: which of their bells rang, and nothing of any run. Whatever else arrives on the channel
 * is a stranger's and means nothing.
 */

/** Bells that are worth ringing elsewhere: another replica may claim the run, or holds the one to be canceled. */
export const WAKE_WORDS = ['claimable', 'canceled'] as const;
export type WakeWord = (typeof WAKE_WORDS)[number];

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

/** The payload that `from` sends. */
export function tellingOf(from: string, what: readonly WakeWord[]): string {
  return JSON.stringify({ from, what });
}

/** What a payload says to `self`: nothing when it is its own, or none of ours. */
export function heardIn(payload: string, self: string): readonly WakeWord[] {
  const message = parsed(payload);
  if (typeof message !== 'object' || message === null) return [];
  if (!('from' in message) || typeof message.from !== 'string' || message.from === self) return [];
  const what: unknown = 'what' in message ? message.what : undefined;
  return Array.isArray(what) ? WAKE_WORDS.filter((word) => what.includes(word)) : [];
}

/** Pause before the next connection, `failures` of them having failed in a row: 100, 200, 400 … ms, at most 1 s. */
export function reconnectPauseMs(failures: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
