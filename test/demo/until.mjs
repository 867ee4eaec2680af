/** Waiting for what is to come. */
import { setTimeout as pause } from 'node:timers/promises';

const LOOK_EVERY_MS = 200;

/** The first answer of `ask` that is neither undefined nor false; rejects when it takes too long, or `signal` aborts. */
export async function until(what, ask, { signal, withinMs = 60_000 }) {
  const end = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > end) throw new Error(`waited ${withinMs / 1000} s in vain: ${what}`);
    await pause(LOOK_EVERY_MS, undefined, { signal });
  }
}
