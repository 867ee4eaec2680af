/** (i) A replica is killed while its commands run, and another is there. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inParallel, until } from '../lanes.mjs';
import { isAlive, treeOf } from '../processes.mjs';

const RUNS = 50;
const QUEUE = 'recovery';
const GIVES_UP_MS = 300_000;

export async function recovery(ground) {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-bench-effects-'));
  try {
    return await killed(ground, join(folder, 'effects'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function killed(ground, effects) {
  const settings = { CAPSTAN_QUEUES: QUEUE, CAPSTAN_SLOTS: String(RUNS) };
  // Ready to take over, but frozen until the other has taken everything.
  const other = await ground.replica({ ...settings, CAPSTAN_NAME: 'other' });
  process.kill(other.pid, 'SIGSTOP');
  const victim = await ground.replica({ ...settings, CAPSTAN_NAME: 'victim' }, RUNS);
  const tree = await treeOf(victim.pid);
  await inParallel(RUNS, RUNS, (i) => {
    const argv = ['sh', '-c', `echo ${i} >> ${effects}; sleep 5`];
    return victim.client.submit({ kind: 'command', queue: QUEUE, spec: { argv } });
  });
  await until('all commands run', async () => (await linesOf(effects)).length >= RUNS);
  process.kill(other.pid, 'SIGCONT');
  process.kill(victim.pid, 'SIGKILL');
  const killedAt = performance.now();
  const limits = { everyMs: 50, withinMs: GIVES_UP_MS };
  await until('all are ended or requeued', async () => (await countsOf(ground)).decided === RUNS, limits);
  const took = performance.now() - killedAt;
  await until('all have ended', async () => (await countsOf(ground)).ended === RUNS, limits);
  const lines = await linesOf(effects);
  const times = Array.from({ length: RUNS }, (_, i) => lines.filter((line) => line === String(i)).length);
  const states = await statesOf(ground);
  await other.end();
  await until(
    'what the killed replica started is gone',
    async () => {
      return !(await Promise.all(tree.map(isAlive))).includes(true);
    },
    limits,
  );
  return [
    {
      key: 'recovery',
      what: `${RUNS} runs of a killed replica ended or requeued`,
      value: took / 1_000,
      unit: 's',
      n: RUNS,
    },
    { what: 'most often that one was executed', value: Math.max(...times), unit: 'times', n: RUNS },
    ...states.map(({ state, n }) => ({ what: `ended ${state}`, value: n, unit: 'runs', n: RUNS })),
    { system: 'pgboss', what: 'known: all done, with heartbeats', value: 64, unit: 's', n: RUNS },
    { system: 'pgboss', what: 'known: all done, as it comes; twice each', value: 904, unit: 's', n: RUNS },
    { system: 'graphile', what: 'known: all done, its lock being fixed', value: 14_400, unit: 's', n: RUNS },
  ];
}

async function linesOf(file) {
  return (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
}

async function countsOf({ sql }) {
  const { rows } = await sql.query(
    `select count(*) filter (where r.state is not null)::integer as ended,
            count(*) filter (where r.state is not null or l.state = 'pending')::integer as decided
     from runs r left join live_runs l on l.run_id = r.id where r.queue = $1`,
    [QUEUE],
  );
  return rows[0];
}

async function statesOf({ sql }) {
  const { rows } = await sql.query(
    `select state || ' (' || end_code || ')' as state, count(*)::integer as n from runs
     where queue = $1 and state is not null group by 1 order by 1`,
    [QUEUE],
  );
  return rows;
}
