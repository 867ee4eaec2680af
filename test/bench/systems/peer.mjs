/** Another job queue, measured the same way: one process that enqueues, others that work, a database of its own. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../lanes.mjs';

const FOLDER = join(import.meta.dirname, '../peers');
const BATCH = 1_000;

export class Peer {
  name;
  #ground;
  #node;
  #url;
  #enqueuer;

  /** @param {import('../ground.mjs').Ground} ground */
  constructor(ground, name, node) {
    this.name = name;
    this.#ground = ground;
    this.#node = node;
  }

  async submits({ n, callers }) {
    return (await this.#enqueue()).call('submits', { n, callers });
  }

  async batches({ n, size, callers }) {
    return (await this.#enqueue()).call('batches', { n, size, callers });
  }

  async drain({ n, workers, warmUp }) {
    const enqueuer = await this.#enqueue();
    const processes = await Promise.all(Array.from({ length: workers }, () => this.#process()));
    await this.#drained(enqueuer, processes, warmUp);
    const took = await this.#drained(enqueuer, processes, n);
    await Promise.all(processes.map((process) => process.end()));
    return took;
  }

  async latencies({ n, everyMs }) {
    const enqueuer = await this.#enqueue();
    const worker = await this.#process();
    await worker.call('work', { settings: 'latency' });
    await pause(1_000);
    const warmUp = 20;
    await enqueuer.call('sends', { n: warmUp + n, everyMs });
    await until(`${this.name} has handled all`, () => handledBy([worker]) >= warmUp + n);
    const { samples } = await worker.call('stop');
    await worker.end();
    return { start: samples.slice(warmUp) };
  }

  /** Milliseconds from the first claim to the last end. */
  async #drained(enqueuer, processes, n) {
    await enqueuer.call('clear');
    await enqueuer.call('batches', { n, size: Math.min(n, BATCH), callers: 1 });
    await this.#ground.tidy(this.#url);
    for (const process of processes) process.forgetHandled();
    await Promise.all(processes.map((process) => process.call('work', { settings: 'drain' })));
    await until(`${this.name} has handled all`, () => handledBy(processes) >= n, { everyMs: 5 });
    const ended = await enqueuer.call('ended');
    const found = await Promise.all(processes.map((process) => process.call('stop')));
    const firstAtMs = ended.firstAtMs ?? Math.min(...found.map((each) => each.firstAtMs || Number.POSITIVE_INFINITY));
    return ended.lastAtMs - firstAtMs;
  }

  async #enqueue() {
    if (this.#enqueuer === undefined) {
      this.#url = await this.#ground.database(this.name);
      this.#enqueuer = await this.#process();
      await this.#enqueuer.call('prepare');
    }
    return this.#enqueuer;
  }

  #process() {
    return this.#ground.child(this.#node, join(FOLDER, `${this.name}.mjs`), { DATABASE_URL: this.#url });
  }
}

function handledBy(processes) {
  return processes.reduce((sum, process) => sum + process.handled, 0);
}
