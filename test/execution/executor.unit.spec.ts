/** Every mode of an executor × what may come at each of its awaits. Supervisor and holder are ports; the real ones are
 *  proved in their own suites and in the main job. */
import { pino } from 'pino';
import { describe, expect, it, vi } from 'vitest';
import { Executor, type ExecutorParts } from '../../src/execution/executor.js';
import type { Launch, LaunchHandlers } from '../../src/execution/supervisor/launches.js';
import type { StopCause } from '../../src/execution/supervisor/plan.js';
import { encodeId } from '../../src/kernel/ids.js';
import { Bell } from '../../src/platform/bell.js';
import { readConfig } from '../../src/platform/config/config.js';
import type { RunEnd } from '../../src/runs/holder.service.js';
import type { Holding } from '../../src/runs/pulse.sql.js';
import type { ClaimedRun } from '../../src/runs/run.js';

const RUN: ClaimedRun = {
  runId: '01890a5d-ac96-774b-bcce-b302099a8057',
  fence: 1,
  organizationId: '01890a5d-ac96-774b-bcce-b302099a8058',
  started: false,
  kind: 'command',
  name: null,
  spec: { argv: ['true'], successCodes: [0] },
  timeoutMs: null,
  traceparent: null,
  queue: 'default',
  priority: 0,
  position: 1,
  waitedMs: 0,
};
const NAME = encodeId('run', RUN.runId);

const settle = async () => {
  for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** An executor whose surroundings answer when the test says so. */
function rig(
  over: { finish?: () => Promise<boolean>; appendOutput?: () => Promise<boolean>; start?: () => Promise<boolean> } = {},
) {
  const did: string[] = [];
  const ends: RunEnd['outcome'][] = [];
  const logged: unknown[] = [];
  let isDraining = false;
  const launched: { launch: Launch; handlers: LaunchHandlers }[] = [];
  const stops: StopCause[] = [];
  let answerStart: (granted: boolean) => void = () => undefined;
  let held: Holding[] = [];
  const config = readConfig({ PATH: '/bin' });
  if (!config.ok) throw new Error('the defaults must be valid');
  const claimable = new Bell();
  claimable.onRing(() => void did.push('ring'));
  const parts: ExecutorParts = {
    platform: {
      bells: { claimable },
      config: config.config,
      log: pino(
        { formatters: { level: (level) => ({ level }) } },
        { write: (line) => void logged.push(JSON.parse(line)) },
      ),
      timing: { monotonicMs: () => performance.now(), delay: settle, random: () => 0 },
    },
    holder: {
      start: () => {
        did.push('start');
        if (over.start) return over.start();
        return new Promise((resolve) => {
          answerStart = resolve;
        });
      },
      finish: async (_run, end) => {
        did.push(`finish ${end.outcome.state} ${end.outcome.code}`);
        ends.push(end.outcome);
        return over.finish ? over.finish() : end.outcome.state !== 'canceled' || stops.includes('cancel');
      },
      release: async (runs) => {
        did.push('release');
        return runs.map(({ runId }) => runId);
      },
      appendOutput: async () => (over.appendOutput ? over.appendOutput() : true),
      dropOutput: async () => true,
      appendReports: async () => true,
      holdings: async () => held,
      isDraining: async () => isDraining,
      stopRetrying: () => void did.push('stopRetrying'),
    },
    supervisor: {
      launch: (launch, handlers) => void launched.push({ launch, handlers }),
      grantCredit: () => undefined,
      stop: (_key, cause) => void stops.push(cause),
      kill: () => void did.push('kill'),
    },
    incarnation: 'life',
    metrics: { countStarted: () => undefined, work: { countLostRace: (write) => void did.push(`lost ${write}`) } },
    onStarted: () => void did.push('started'),
    onStartFailed: () => void did.push('start failed'),
    onFree: () => void did.push('free'),
  };
  const executor = new Executor(parts);
  const tool = (): LaunchHandlers => {
    const { handlers } = launched[0] ?? {};
    if (!handlers) throw new Error('no tool was asked for');
    return handlers;
  };
  const exit = (cause: 'self' | StopCause | 'deadline', exitCode = 0) =>
    tool().onEnded({ exitCode, signal: null, cause, leftovers: false, killedAfterMs: null, verdict: null, at: 0 });
  return {
    executor,
    did,
    ends,
    launched,
    logged,
    stops,
    tool,
    exit,
    start: async (granted: boolean) => {
      answerStart(granted);
      await settle();
    },
    isDrained: () => {
      isDraining = true;
    },
    holds: (holdings: Holding[]) => {
      held = holdings;
    },
  };
}

const holding = (state: 'claimed' | 'running', fence = 1): Holding => ({
  runId: RUN.runId,
  organizationId: RUN.organizationId,
  kind: 'command',
  fence,
  state,
});

describe('open', () => {
  it('asks for the tool only after the run reads running, and frees the slot only after its end is written', async () => {
    const { executor, did, launched, exit, start } = rig();
    executor.accept(RUN);
    await settle();
    expect(launched).toHaveLength(0);
    await start(true);
    expect(launched).toHaveLength(1);
    exit('self');
    await settle();
    expect(did).toEqual(['start', 'started', 'finish succeeded ok', 'free']);
  });

  it('S4-18 starts no tool when the start is refused, and gives the run back', async () => {
    const { executor, did, launched, logged, start } = rig();
    executor.accept(RUN);
    await start(false);
    expect(launched).toHaveLength(0);
    expect(did).toEqual(['start', 'finish canceled canceled', 'release', 'free']);
    expect(logged).toMatchObject([{ code: 'run_start_refused', run: NAME, level: 'warn' }]);
  });

  it('F006 a start that is refused because a person drained this worker is the order of things, and others are told', async () => {
    const { executor, did, isDrained, logged, start } = rig();
    isDrained();
    executor.accept(RUN);
    await start(false);
    expect(did).toEqual(['start', 'finish canceled canceled', 'release', 'ring', 'free']);
    expect(logged).toMatchObject([{ code: 'run_start_refused', run: NAME, level: 'info' }]);
  });

  it('a start that fails ends nothing: the run goes back, and whoever claims is told', async () => {
    const { executor, did, launched } = rig({ start: () => Promise.reject(new Error('no such column')) });
    executor.accept(RUN);
    await settle();
    expect(launched).toHaveLength(0);
    expect(did).toEqual(['start', 'start failed', 'release', 'free']);
  });

  it('ends a tool that a cancel stopped as canceled, and one that ended by itself before as what it was', async () => {
    for (const [cause, state] of [
      ['cancel', 'canceled'],
      ['self', 'succeeded'],
    ] as const) {
      const { executor, ends, exit, start, stops } = rig();
      executor.accept(RUN);
      await start(true);
      executor.cancel([RUN.runId]);
      expect(stops).toEqual(['cancel']);
      exit(cause);
      await settle();
      expect(ends.map((end) => end.state)).toEqual([state]);
    }
  });

  it('a cancel that overtakes the spawn ends the run canceled, not as if the supervisor were gone', async () => {
    const { executor, ends, start, tool } = rig();
    executor.accept(RUN);
    await start(true);
    executor.cancel([RUN.runId]);
    tool().onRefused('stopping');
    await settle();
    expect(ends.map((end) => end.code)).toEqual(['canceled']);
  });

  it('a supervisor that is gone, or whose deadline passed, ends the run interrupted with that reason', async () => {
    for (const [reason, code] of [
      ['stopping', 'supervisor_lost'],
      ['deadline', 'worker_lost'],
    ] as const) {
      const { executor, ends, start, tool } = rig();
      executor.accept(RUN);
      await start(true);
      tool().onRefused(reason);
      await settle();
      expect(ends).toMatchObject([{ state: 'interrupted', code, exitCode: null, signal: null }]);
    }
  });

  it('output that the database can never take is dropped, and the run still ends', async () => {
    const { executor, ends, exit, start, tool } = rig({
      appendOutput: () => Promise.reject(Object.assign(new Error('no'), { code: '22021' })),
    });
    executor.accept(RUN);
    await start(true);
    tool().onOutput({ key: 1, source: 1, at: 0, bytes: Buffer.from('x') });
    exit('self');
    await settle();
    expect(ends.map((end) => end.state)).toEqual(['succeeded']);
  });

  it.each(['28P01', '42501', '53100', 'ECONNREFUSED', undefined])(
    'output waits for as long as the database is in the way, also by a fault (%s) that somebody has to mend',
    async (code) => {
      let tries = 0;
      const { executor, ends, exit, start, tool } = rig({
        appendOutput: async () => {
          tries += 1;
          if (tries < 5) throw Object.assign(new Error('no'), { code });
          return true;
        },
      });
      executor.accept(RUN);
      await start(true);
      tool().onOutput({ key: 1, source: 1, at: 0, bytes: Buffer.from('x') });
      exit('self');
      await vi.waitFor(() => expect(ends.map((end) => end.state)).toEqual(['succeeded']));
      expect(tries).toBe(5);
    },
  );

  it('a tool whose output is no longer ours to store is stopped, and the refusal is logged', async () => {
    const { executor, logged, start, stops, tool } = rig({ appendOutput: async () => false });
    executor.accept(RUN);
    await start(true);
    tool().onOutput({ key: 1, source: 1, at: 0, bytes: Buffer.from('x') });
    await settle();
    expect(stops).toEqual(['lost']);
    expect(logged).toMatchObject([{ code: 'run_write_refused', run: NAME, what: 'output' }]);
  });

  it('S4-18 an end that is no longer ours to write is logged', async () => {
    const { executor, exit, logged, start } = rig({ finish: async () => false });
    executor.accept(RUN);
    await start(true);
    exit('self');
    await settle();
    expect(logged).toMatchObject([{ code: 'run_end_refused', run: NAME, state: 'succeeded' }]);
  });
});

describe('idle', () => {
  it('says that a tool still runs once its time is over, or at once when it must hurry', async () => {
    const { executor, exit, start } = rig();
    expect(await executor.idle(60_000)).toBe(true);
    executor.accept(RUN);
    await start(true);
    expect(await executor.idle(30)).toBe(false);
    expect(await executor.idle(60_000, AbortSignal.abort())).toBe(false);
    const idle = executor.idle(60_000);
    exit('self');
    expect(await idle).toBe(true);
  });
});

describe('draining', () => {
  it('lets a tool go on and writes its end', async () => {
    const { executor, did, exit, start, stops } = rig();
    executor.accept(RUN);
    await start(true);
    executor.drain();
    expect(executor.free).toBe(0);
    exit('self', 3);
    await settle();
    expect(stops).toEqual([]);
    expect(did).toContain('finish failed tool_failed');
  });

  it('gives back what is accepted now, without a start', async () => {
    const { executor, did } = rig();
    executor.drain();
    executor.accept(RUN);
    await settle();
    expect(did).toEqual(['release', 'ring', 'free']);
  });

  it('starts no tool whose start was granted only after everything was told to stop', async () => {
    const { executor, ends, launched, start } = rig();
    executor.accept(RUN);
    executor.stopAll('gracefully');
    await start(true);
    expect(launched).toHaveLength(0);
    expect(ends).toMatchObject([{ state: 'interrupted', code: 'replica_stopped' }]);
  });

  it('stops tools with their grace, or at once', async () => {
    const { executor, did, ends, exit, start, stops } = rig();
    executor.accept(RUN);
    await start(true);
    executor.stopAll('gracefully');
    expect([stops, did.includes('kill')]).toEqual([['drain'], false]);
    executor.stopAll('at once');
    expect(did).toContain('kill');
    exit('drain');
    await settle();
    expect(ends).toMatchObject([{ state: 'interrupted', code: 'replica_stopped' }]);
  });
});

describe('abandoned', () => {
  it('stops tools, writes nothing, and logs each end that it keeps to itself', async () => {
    const { executor, did, exit, logged, start, stops } = rig();
    executor.accept(RUN);
    await start(true);
    executor.abandon();
    exit('lost');
    await settle();
    expect(stops).toEqual(['lost']);
    expect(did.filter((what) => what.startsWith('finish'))).toEqual([]);
    expect(logged).toMatchObject([{ code: 'run_end_withheld', run: NAME }]);
    expect(executor.size).toBe(0);
  });
});

describe('memory and database compared', () => {
  it('what is claimed and unknown is given back, what is running and unknown ends interrupted', async () => {
    const { executor, did, holds } = rig();
    holds([holding('claimed')]);
    await executor.reconcile();
    holds([holding('running')]);
    await settle();
    await executor.reconcile();
    await settle();
    expect(did).toEqual(['release', 'finish interrupted internal']);
  });

  it('what is known and no longer ours has its tool stopped; what is ours is left alone', async () => {
    const { executor, holds, start, stops } = rig();
    executor.accept(RUN);
    await start(true);
    holds([holding('running')]);
    await executor.reconcile();
    expect(stops).toEqual([]);
    holds([holding('running', 2)]);
    await executor.reconcile();
    expect(stops).toEqual(['lost']);
  });

  it('does not wait for what it gives up: the database may be away', async () => {
    const { executor, did, holds } = rig({ finish: () => new Promise(() => undefined) });
    holds([holding('running')]);
    await executor.reconcile();
    await executor.reconcile();
    expect(did).toEqual(['finish interrupted internal']);
  });
});
