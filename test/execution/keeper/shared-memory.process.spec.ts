/** The gate in front of the pipe, and the count of renewals since a loss, used by two threads at once. */
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { SharedMemory } from '../../../src/execution/keeper/shared-memory.js';
import { compiledSource } from '../../compiled.js';
import { until } from './keeper.fixture.js';

/** Writes through the gate of whatever life is open, as fast as it can; a write is two steps with time between them. */
const WRITER = (module: string) => `
  import { workerData } from 'node:worker_threads';
  const { SharedMemory } = await import(${JSON.stringify(module)});
  const memory = new SharedMemory(workerData.buffer);
  const [STEPS, ORDER] = [0, 1];
  while (Atomics.load(workerData.words, ORDER) >= 0) {
    memory.throughGate(Atomics.load(workerData.words, ORDER), () => {
      Atomics.add(workerData.words, STEPS, 1);
      for (let i = 0; i < 2000; i += 1) Atomics.load(workerData.words, STEPS);
      Atomics.add(workerData.words, STEPS, 1);
    });
  }`;

describe('the gate', () => {
  it('once closeGate has returned, no write of that life is under way and none comes', async () => {
    const memory = new SharedMemory();
    const words = new Int32Array(new SharedArrayBuffer(8));
    const source = WRITER(pathToFileURL(join(await compiledSource(), 'execution/keeper/shared-memory.js')).href);
    const writer = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
      workerData: { buffer: memory.buffer, words },
    });
    const steps = () => Atomics.load(words, 0);
    memory.openGate(1);
    Atomics.store(words, 1, 1);
    await until('the writer writes', () => steps() > 0);
    let closedInTheMiddle = 0;
    for (let order = 1; order <= 100; order += 1) {
      memory.openGate(order);
      Atomics.store(words, 1, order);
      const before = steps();
      for (let i = 0; i < 1e7 && steps() === before; i += 1);
      if (steps() % 2 === 1) closedInTheMiddle += 1;
      memory.closeGate(order);
      const after = steps();
      expect(after % 2, 'a write was cut in two').toBe(0);
      for (let i = 0; i < 20_000; i += 1) steps();
      expect(steps(), 'a write came after the gate was closed').toBe(after);
    }
    expect(closedInTheMiddle).toBeGreaterThan(30);
    Atomics.store(words, 1, -1);
    await once(writer, 'exit');
  });
});

describe('renewals since an outage', () => {
  it('are counted anew from the first behind it', () => {
    const memory = new SharedMemory();
    memory.noteRenewal(1n, true);
    memory.noteRenewal(2n, false);
    expect(memory.renewalsSinceOutage).toBe(2);
    memory.noteRenewal(3n, true);
    expect(memory.renewalsSinceOutage).toBe(1);
    expect(memory.renewals).toBe(3);
  });
});
