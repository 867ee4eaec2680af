/** Capstan, as it is measured beside its peers: replicas as they ship, and a load over HTTP from another process. */
import { join } from 'node:path';
import { until } from '../lanes.mjs';

const LOAD = join(import.meta.dirname, '../load.mjs');
/** `startedAt` and `endedAt` are cut to milliseconds; on the average that takes half of one away. */
const CUT_MS = 0.5;

export class Capstan {
  name = 'capstan';
  #ground;
  #slots;
  #enqueuer;
  #rounds = 0;

  /** @param {import('../ground.mjs').Ground} ground */
  constructor(ground, slots) {
    this.#ground = ground;
    this.#slots = String(slots);
  }

  /** Milliseconds of `n` submits, of which `callers` are on their way at once. Nobody serves their queue. */
  async submits({ n, callers, keyed = false }) {
    return (await this.#load()).call('submits', { n, callers, keyed, queue: 'nobody' });
  }

  async batches({ n, size, callers }) {
    return (await this.#load()).call('batches', { n, size, callers, queue: 'nobody' });
  }

  /**
   * Milliseconds from the first claim to the last end of `n` queued runs, by replicas that drained some before. The queue
   * is filled by batches of `run`, or else by `fill`.
   */
  async drain({ n, workers, warmUp, run, fill, onReplica }) {
    this.#rounds += 1;
    const queue = `drain-${this.#rounds}`;
    const filler = await this.#load();
    const settings = { CAPSTAN_QUEUES: `${queue},warm-${queue}`, CAPSTAN_SLOTS: this.#slots };
    const batches = (count, into) =>
      filler.call('batches', { n: count, size: Math.min(count, 1_000), callers: 1, queue: into, run });
    const replicas = await Promise.all(Array.from({ length: workers }, () => this.#ground.replica(settings)));
    const { client } = replicas[0];
    if (warmUp > 0) await this.#drained(`warm-${queue}`, client, () => batches(warmUp, `warm-${queue}`));
    await onReplica?.(replicas[0]);
    await this.#drained(queue, client, () => (fill ? fill(this.#ground, queue, n) : batches(n, queue)));
    const { rows } = await this.#ground.sql.query(
      `select extract(epoch from max(ended_at) - min(claimed_at))::float8 * 1000 as took,
              count(*) filter (where state = 'succeeded')::integer as succeeded
       from runs where queue = $1`,
      [queue],
    );
    await Promise.all(replicas.map((replica) => replica.end()));
    if (rows[0].succeeded !== n) throw new Error(`${n - rows[0].succeeded} of ${n} runs did not succeed`);
    return rows[0].took;
  }

  /** Samples in ms, of runs one at a time on an idle system. */
  async latencies({ n, everyMs, elsewhere }) {
    const replica = await this.#ground.replica(elsewhere ? { CAPSTAN_SLOTS: '0' } : {});
    const other = elsewhere ? await this.#ground.replica({}) : undefined;
    const load = await this.#ground.load(LOAD, replica.url);
    const run = { kind: 'noop' };
    await load.call('runs', { n: 20, everyMs, run });
    const samples = await load.call('runs', { n, everyMs, run });
    await Promise.all([load.end(), replica.end(), other?.end()]);
    return {
      start: samples.map(({ startMs }) => startMs + CUT_MS),
      end: samples.map(({ endMs }) => endMs + CUT_MS),
      known: samples.map(({ knownMs }) => knownMs),
    };
  }

  /** Fills a queue that is paused meanwhile, and waits until all in it have ended. */
  async #drained(queue, client, fill) {
    await client.call('PUT', `/v1/queues/${queue}`, { paused: true, reason: 'filled' });
    await fill();
    await this.#ground.tidy();
    await client.call('PUT', `/v1/queues/${queue}`, { paused: false });
    const isOver = async () =>
      (await this.#ground.sql.query('select 1 from live_runs where queue = $1 limit 1', [queue])).rows.length === 0;
    await until('a queue is drained', isOver, { everyMs: 50 });
  }

  async #load() {
    if (this.#enqueuer === undefined) {
      const { url } = await this.#ground.replica({ CAPSTAN_SLOTS: '0' });
      this.#enqueuer = await this.#ground.load(LOAD, url);
    }
    return this.#enqueuer;
  }
}
