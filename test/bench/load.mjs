/** The load on a replica, from a process of its own: submits, batches, and runs one at a time. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { inParallel, nowMs, timed } from './lanes.mjs';
import { serveOperations } from './operations.mjs';
import { Wire } from './wire.mjs';

const { BENCH_URL = '', BENCH_TOKEN = '' } = process.env;
const wires = [];

async function opened(n) {
  while (wires.length < n) wires.push(await Wire.open(BENCH_URL, BENCH_TOKEN));
  return wires.slice(0, n);
}

/** Calls `send` with a free connection, `callers` at a time. */
async function onWires(n, callers, send) {
  const free = await opened(callers);
  return timed(() =>
    inParallel(n, callers, async () => {
      const wire = free.pop();
      await send(wire);
      free.push(wire);
    }),
  );
}

serveOperations({
  submits({ n, callers, queue, keyed }) {
    const body = JSON.stringify({ kind: 'noop', queue });
    const key = () => (keyed ? `idempotency-key: ${randomUUID()}\r\n` : '');
    return onWires(n, callers, (wire) => wire.post('/v1/runs', body, key()));
  },

  batches({ n, size, callers, queue, run = { kind: 'noop' } }) {
    const body = JSON.stringify({ runs: Array.from({ length: size }, () => ({ ...run, queue })) });
    return onWires(Math.ceil(n / size), callers, async (wire) => {
      const answer = await wire.post('/v1/runs/batch', body);
      const made = answer.split('"status":201').length - 1;
      if (made !== size) throw new Error(`${size - made} of ${size} runs of a batch were refused`);
    });
  },

  /** One at a time, each to its end; when it was sent, when it started and ended by the database's clock, when we knew. */
  async runs({ n, everyMs, run }) {
    const [wire] = await opened(1);
    const body = JSON.stringify(run);
    const samples = [];
    for (let i = 0; i < n; i += 1) {
      const sentAtMs = nowMs();
      const made = JSON.parse(await wire.post('/v1/runs', body, 'prefer: wait=30\r\n'));
      const knownAtMs = nowMs();
      if (made.state !== 'succeeded') throw new Error(`a run is ${made.state}`);
      samples.push({
        startMs: Date.parse(made.startedAt) - sentAtMs,
        endMs: Date.parse(made.endedAt) - sentAtMs,
        knownMs: knownAtMs - sentAtMs,
      });
      await pause(everyMs * (0.5 + Math.random()));
    }
    return samples;
  },
});
