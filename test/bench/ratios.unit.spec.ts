/** What becomes of figures: ratios by which more is better for Capstan, and peers that were badly set up. */
import { expect, it } from 'vitest';

const { ratiosOf } = await import(new URL('./ratios.mjs', import.meta.url).href);
const { badlySetUp } = await import(new URL('./peers.mjs', import.meta.url).href);

/** Capstan is twice as good in everything. */
const FIGURES = [
  ...['submit', 'submitKeyed', 'batch', 'batch4', 'drain', 'drain2'].flatMap((key) => [
    { system: 'capstan', key, value: 4_000 },
    { system: 'graphile', key, value: 2_000 },
    { system: 'pgboss', key, value: 2_000 },
  ]),
  { system: 'capstan', key: 'latency', value: 2 },
  { system: 'capstan', key: 'latencyElsewhere', value: 2 },
  { system: 'graphile', key: 'latency', value: 4 },
  { system: 'pgboss', key: 'latency', value: 4 },
];

it('gives ratios of which more is better for Capstan, of rates and of latencies', () => {
  const { ratios, otherRatios } = ratiosOf(FIGURES);
  expect(ratios).toEqual({
    drainVsGraphile: 2,
    drainVsPgBoss: 2,
    submitVsGraphile: 2,
    submitVsPgBoss: 2,
    batchVsGraphile: 2,
    batchVsPgBoss: 2,
    latencyVsGraphile: 2,
  });
  expect(new Set(Object.values(otherRatios))).toEqual(new Set([2]));
  expect(otherRatios).toHaveProperty('drain2VsGraphile');
});

it('leaves out the ratios of what was not measured', () => {
  expect(ratiosOf(FIGURES.filter(({ system, key }) => system !== 'pgboss' && key === 'drain')).ratios).toEqual({
    drainVsGraphile: 2,
  });
});

it('refuses a peer below 0.7 of its known figure, by its name, of rates and of latencies', () => {
  const rate = { system: 'graphile', what: 'drain', unit: 'per second', known: 1_000 };
  const latency = { system: 'pgboss', what: 'start', unit: 'ms', known: 7 };
  const well = [
    { ...rate, value: 700 },
    { ...latency, value: 10 },
    { what: 'of our own', value: 1 },
  ];
  expect(badlySetUp(well, 0.2)).toEqual([]);
  expect(badlySetUp([{ ...rate, value: 690 }], 0.2)).toEqual([
    expect.stringMatching(/^graphile-worker: drain: 690 .* 0\.69 /),
  ]);
  expect(badlySetUp([{ ...latency, value: 10.2 }], 0.2)).toEqual([
    expect.stringMatching(/^pg-boss: start: 10\.2 ms .* 0\.69 /),
  ]);
});
