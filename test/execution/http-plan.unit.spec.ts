/** A run of kind `http` on its way to the supervisor and back: from its spec to a plan, from its end to an outcome. */
import { describe, expect, it } from 'vitest';
import { outcomeOf } from '../../src/execution/outcome.rules.js';
import { workOf } from '../../src/execution/plan.rules.js';
import type { EndCause, ToolEnd, Verdict } from '../../src/execution/supervisor/plan.js';
import type { ClaimedRun } from '../../src/runs/run.js';

const SPEC = {
  method: 'POST',
  url: 'https://example.com/',
  headers: { A: '1' },
  body: 'x',
  expectedStatus: [201],
  followRedirects: 3,
};

function runOf(spec: Record<string, unknown>, timeoutMs: number | null = null): ClaimedRun {
  const id = '01900000-0000-7000-8000-000000000001';
  const place = { queue: 'default', priority: 0, position: 1, waitedMs: 0 };
  return {
    runId: id,
    fence: 1,
    organizationId: id,
    started: false,
    kind: 'http',
    name: null,
    spec,
    timeoutMs,
    traceparent: null,
    ...place,
  };
}

describe('the plan of a request', () => {
  const surroundings = { path: '/bin', defaultTimeoutMs: undefined };

  it('is its spec', () => {
    expect(workOf(runOf(SPEC), surroundings)).toMatchObject({ type: 'tool', plan: { http: SPEC } });
  });

  it('always has a timeout: the run’s, or the worker’s, or a minute', () => {
    const timeoutOf = (timeoutMs: number | null, defaultTimeoutMs: number | undefined) => {
      const work = workOf(runOf(SPEC, timeoutMs), { ...surroundings, defaultTimeoutMs });
      return work.type === 'tool' ? work.plan.timeoutMs : undefined;
    };
    expect(timeoutOf(null, undefined)).toBe(60_000);
    expect(timeoutOf(null, 7_000)).toBe(7_000);
    expect(timeoutOf(90_000, 7_000)).toBe(90_000);
  });

  it.each([{}, { ...SPEC, url: 1 }, { ...SPEC, method: null }, { ...SPEC, expectedStatus: ['200'] }])(
    'is none for a spec of another version: %j',
    (spec) => {
      expect(workOf(runOf(spec), surroundings)).toMatchObject({ type: 'unfit' });
    },
  );
});

describe('the end of a request', () => {
  const end = (cause: EndCause, verdict: Verdict | null): ToolEnd => {
    return { exitCode: null, signal: null, leftovers: false, killedAfterMs: null, cause, verdict };
  };
  const NEITHER = { exitCode: null, signal: null, kind: null };

  it.each([
    ['ok', 'succeeded'],
    ['tool_failed', 'failed'],
    ['denied', 'failed'],
    ['internal', 'failed'],
  ] as const)('that judged itself %s is %s, in its own words', (code, state) => {
    const verdict = { ok: code === 'ok', code, detail: 'as it was' };
    expect(outcomeOf(end('self', verdict), [])).toEqual({ state, code, ...NEITHER, detail: 'as it was' });
  });

  it.each([
    ['timeout', 'timed_out', 'timeout'],
    ['cancel', 'canceled', 'canceled'],
    ['drain', 'interrupted', 'replica_stopped'],
    ['deadline', 'interrupted', 'worker_lost'],
    ['lost', 'interrupted', 'supervisor_lost'],
  ] as const)('that was stopped (%s) is %s', (cause, state, code) => {
    const outcome = outcomeOf(end(cause, null), []);
    expect(outcome).toMatchObject({ state, code, ...NEITHER });
    expect(outcome.detail).not.toMatch(/exit|undefined|null/);
  });
});
