/** The trace that a submit came with, on its way to the tool. */
import { expect, it } from 'vitest';
import { workOf } from '../../src/execution/plan.rules.js';
import type { ClaimedRun } from '../../src/runs/run.js';

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const OTHER = '00-ffffffffffffffffffffffffffffffff-b7ad6b7169203331-00';
const ID = '01900000-0000-7000-8000-000000000001';
const SPECS = {
  command: { argv: ['true'] },
  script: { interpreter: 'sh', content: '' },
  http: { method: 'GET', url: 'https://example.com/', expectedStatus: null },
};

function planOf(kind: keyof typeof SPECS, traceparent: string | null, more: Record<string, unknown> = {}) {
  const place = { queue: 'default', priority: 0, position: 1, waitedMs: 0 };
  const spec = { ...SPECS[kind], ...more };
  const run: ClaimedRun = {
    runId: ID,
    fence: 1,
    organizationId: ID,
    started: false,
    kind,
    name: null,
    spec,
    timeoutMs: null,
    traceparent,
    ...place,
  };
  const work = workOf(run, { path: '/bin', defaultTimeoutMs: undefined });
  if (work.type !== 'tool') throw new Error('the run is fit to be executed');
  return work.plan;
}

const given = (...of: Parameters<typeof planOf>): unknown => {
  const plan = planOf(...of);
  return 'http' in plan ? plan.http.headers : plan.env.TRACEPARENT;
};

it.each(['command', 'script'] as const)('a %s gets it in its environment, unless its run names one itself', (kind) => {
  expect(given(kind, TRACE)).toBe(TRACE);
  expect(given(kind, null)).toBeUndefined();
  expect(given(kind, TRACE, { env: { TRACEPARENT: OTHER } })).toBe(OTHER);
  expect(given(kind, TRACE, { env: { TRACEPARENT: '' } })).toBe('');
});

it('a request gets it as a header, unless its run names one itself, however it is spelled', () => {
  expect(given('http', TRACE, { headers: { A: '1' } })).toEqual({ A: '1', traceparent: TRACE });
  expect(given('http', null, { headers: { A: '1' } })).toEqual({ A: '1' });
  expect(given('http', TRACE, { headers: { TraceParent: OTHER } })).toEqual({ TraceParent: OTHER });
});

it.each(['', 'x', TRACE.toUpperCase(), `${TRACE}-more`, `ff${TRACE.slice(2)}`, `${TRACE}\n`])(
  'what is none is handed to nobody: %j',
  (traceparent) => {
    for (const kind of ['command', 'script'] as const) expect(given(kind, traceparent)).toBeUndefined();
    expect(given('http', traceparent)).toEqual({});
  },
);
