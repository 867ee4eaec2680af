/** What a program that wants its runs does: whoever doesn't answer, the next replica is asked, with the same key. */
import { setTimeout as pause } from 'node:timers/promises';

const ANSWERS_WITHIN_MS = 2_500;
const LOOK_WITHIN_MS = 15_000;

export class Client {
  #fleet;
  #signal;
  /** Everything that was submitted, by key. @type {Map<string, { id: string, at: string, silent: string[] }>} */
  submitted = new Map();

  constructor(fleet, signal) {
    this.#fleet = fleet;
    this.#signal = signal;
  }

  /** Submits at the replica `at`, or where there is no answer at the next, until one has taken it. */
  async submit(at, key, run) {
    const names = [...this.#fleet.replicas.keys()];
    const silent = [];
    for (let turn = names.indexOf(at); ; turn += 1) {
      const name = names[turn % names.length];
      try {
        const { id } = await this.#call(name, 'POST', '/v1/runs', ANSWERS_WITHIN_MS, run, key);
        this.submitted.set(key, { id, at: name, silent });
        return;
      } catch (error) {
        this.#signal.throwIfAborted();
        if (error instanceof Refused || silent.length > 20) throw error;
        silent.push(name);
        await pause(50, undefined, { signal: this.#signal });
      }
    }
  }

  /** All runs and the workers' lives, newest first, as r1 has them: nobody touches r1. */
  async look() {
    const [runs, workers] = await Promise.all(
      ['/v1/runs', '/v1/workers'].map((path) => this.#call('r1', 'GET', `${path}?limit=200`, LOOK_WITHIN_MS)),
    );
    return { runs: runs.items, workers: workers.items };
  }

  async #call(name, method, path, withinMs, body, key) {
    const patience = new AbortController();
    const giveUp = () => patience.abort();
    const timer = setTimeout(giveUp, withinMs);
    this.#signal.addEventListener('abort', giveUp);
    try {
      const answer = await fetch(this.#fleet.replicas.get(name).url + path, {
        method,
        headers: {
          authorization: `Bearer ${this.#fleet.token}`,
          ...(body && { 'content-type': 'application/json', 'idempotency-key': key }),
        },
        body: body && JSON.stringify(body),
        signal: patience.signal,
      });
      const text = await answer.text();
      if (answer.ok) return JSON.parse(text);
      const error = `${method} ${path} at ${name}: ${answer.status} ${text.slice(0, 300)}`;
      throw answer.status >= 500 ? new Error(error) : new Refused(error);
    } finally {
      clearTimeout(timer);
      this.#signal.removeEventListener('abort', giveUp);
    }
  }
}

class Refused extends Error {}
