/** Faults at random moments: a short round in CI, as long as one likes with `npm run chaos -- --minutes N`. */
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Balancer, startBalancer } from './balancer.fixture.js';
import { CLEAN } from './effects.fixture.js';
import { Soak, type Summary } from './soak.fixture.js';
import { Stage } from './stage.fixture.js';

const { CHAOS_MINUTES, CHAOS_SEED, CHAOS_SUMMARY } = process.env;
const isLong = CHAOS_MINUTES !== undefined;
const minutes = Number(CHAOS_MINUTES ?? '0.75');

/** As Capstan comes, for a soak; CI's round is shorter than the usual lease. */
const DEFAULTS = {
  CAPSTAN_LEASE_TTL: '30s',
  CAPSTAN_LEASE_RENEW: '5s',
  CAPSTAN_JANITOR_INTERVAL: '5s',
  CAPSTAN_KILL_GRACE: '10s',
  CAPSTAN_DRAIN_TIMEOUT: '30s',
};

async function soak(): Promise<Summary> {
  const stage = await Stage.open(['r1', 'r2', 'r3'], { env: isLong ? DEFAULTS : {} });
  const balancers: Balancer[] = [];
  try {
    const ports = stage.all().map(({ port }) => port);
    balancers.push(await startBalancer('nginx', ports, { repeatsPosts: true }));
    balancers.push(await startBalancer('haproxy', ports));
    const options = {
      seed: Number(CHAOS_SEED ?? Date.now() % 2 ** 31),
      minutes,
      faultEveryMs: isLong ? 10_000 : 4_000,
      longestFaultMs: isLong ? 50_000 : 20_000,
      backlog: 24,
    };
    const onProgress = (line: string) => process.stderr.write(`${line}\n`);
    return await new Soak(stage, balancers, { ...options, ...(isLong ? { onProgress } : {}) }).run();
  } finally {
    for (const balancer of balancers) await balancer.close();
    await stage.close();
  }
}

it('F006 F008 F020 F025 F029 S3-01 S3-22 S4-51 S4-61 whatever strikes at whatever moment: nothing runs twice, is lost, or goes on after its end', {
  timeout: minutes * 60_000 + 300_000,
}, async () => {
  const summary = await soak();
  if (CHAOS_SUMMARY !== undefined) writeFileSync(CHAOS_SUMMARY, JSON.stringify(summary));
  expect(summary, JSON.stringify(summary)).toMatchObject({ ...CLEAN, forgotten: [], contradictions: [] });
  expect(summary.runs).toBeGreaterThan(0);
});
