import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Timing } from '../../src/platform/time.js';
import { LoopMetrics } from '../../src/replica/loop.metrics.js';
import { LoopRunner } from '../../src/replica/loop-runner.js';
import { readExposition, valueIn } from '../exposition.js';

/** Pauses that end when the test says so, or when they are aborted. */
class SteppedTiming implements Timing {
  readonly pauses: number[] = [];
  private release: (() => void) | undefined;
  monotonicMs = () => 0;
  random = () => 0;
  delay(ms: number, signal?: AbortSignal): Promise<void> {
    this.pauses.push(ms);
    return new Promise((resolve) => {
      if (signal?.aborted) resolve();
      this.release = resolve;
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  }
  /** Lets the pause end. */
  pass(): void {
    this.release?.();
  }
}

function runnerOf(step: () => Promise<'idle' | 'more'>) {
  const timing = new SteppedTiming();
  const registry = new Registry();
  const metrics = new LoopMetrics(registry);
  const runner = new LoopRunner(
    { name: 'test', step },
    { intervalMs: () => 1_000, timing, log: pino({ level: 'silent' }), metrics },
  );
  const value = async (name: string, labels: Record<string, string>) =>
    valueIn(readExposition(await registry.metrics()), name, labels);
  const steps = (result: string) => value('capstan_loop_steps_total', { loop: 'test', result });
  const lastSuccess = () => value('capstan_loop_last_success_timestamp_seconds', { loop: 'test' });
  return { runner, timing, metrics, steps, lastSuccess };
}

afterEach(() => void vi.useRealTimers());

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('a loop', () => {
  it('steps again at once while there is more, then waits its interval', async () => {
    const answers: ('idle' | 'more')[] = ['more', 'more', 'idle'];
    let steps = 0;
    const { runner, timing } = runnerOf(async () => {
      steps += 1;
      return answers.shift() ?? 'idle';
    });
    runner.start();
    await settle();
    expect(steps).toBe(3);
    expect(timing.pauses).toEqual([1_000]);
    await runner.stop();
  });

  it('that is woken steps without waiting, also when it is woken during a step', async () => {
    let steps = 0;
    const { runner } = runnerOf(async () => {
      steps += 1;
      if (steps === 1) runner.wake();
      return 'idle';
    });
    runner.start();
    await settle();
    expect(steps).toBe(2);
    runner.wake();
    await settle();
    expect(steps).toBe(3);
    await runner.stop();
  });

  it('goes on after faults, with a growing pause that a wake-up does not cut short', async () => {
    let steps = 0;
    const { runner, timing } = runnerOf(async () => {
      steps += 1;
      throw new Error('broken');
    });
    runner.start();
    await settle();
    runner.wake();
    await settle();
    expect(steps).toBe(1);
    timing.pass();
    await settle();
    expect(steps).toBe(2);
    expect(timing.pauses[1]).toBeGreaterThan(timing.pauses[0] ?? 0);
    await runner.stop();
  });

  it('F130 that only fails shows: its last success stands still, from its start on, and its failures are counted', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 });
    const answers: (() => 'idle')[] = [];
    const { runner, timing, metrics, steps, lastSuccess } = runnerOf(async () => {
      const answer = answers.shift();
      if (!answer) throw new Error('broken');
      return answer();
    });
    runner.start();
    await settle();
    vi.setSystemTime(2_000_000);
    timing.pass();
    await settle();
    expect(await lastSuccess()).toBe(1_000);
    expect([await steps('idle'), await steps('more'), await steps('failed')]).toEqual([0, 0, 2]);
    answers.push(() => 'idle');
    timing.pass();
    await settle();
    expect(await lastSuccess()).toBe(2_000);
    vi.setSystemTime(3_000_000);
    metrics.begin('test');
    expect(await lastSuccess()).toBe(2_000);
    expect([await steps('idle'), await steps('failed')]).toEqual([1, 2]);
    await runner.stop();
  });

  it('stops only when the step that is running has ended', async () => {
    let finish: () => void = () => undefined;
    const { runner } = runnerOf(
      () =>
        new Promise((resolve) => {
          finish = () => resolve('idle');
        }),
    );
    runner.start();
    let stopped = false;
    const stopping = runner.stop().then(() => {
      stopped = true;
    });
    await settle();
    expect(stopped).toBe(false);
    finish();
    await stopping;
    expect(stopped).toBe(true);
  });
});
