/** (d) The drain while very many runs wait, and after very many have ended. */
import { figureOfTimes, rate, series } from '../figures.mjs';
import { fillQueue } from '../filling.mjs';
import { timed } from '../lanes.mjs';
import { fillRuns } from '../many-runs.mjs';
import { Capstan } from '../systems/capstan.mjs';

export async function backlog(ground, { sizes, say }) {
  const { queued, ended, others } = sizes.backlog;
  const capstan = new Capstan(ground, sizes.slots);
  await ground.replica({ CAPSTAN_SLOTS: '0' });
  await ground.sql.query('set statement_timeout = 0');
  const figures = [];
  const drainOf = async (n, what, key) => {
    say(`${what}: ${n}`);
    const took = await capstan.drain({ n, workers: 1, warmUp: 4_000, fill: fillQueue });
    figures.push({ ...rate(`drain of ${n} queued runs${what}`, n, took), key });
  };
  for (const n of queued) await drainOf(n, '', `backlog${n}`);
  figures.push(...(await claimsOf(ground, queued, others)));
  if (ended > 0) {
    const { rows } = await ground.sql.query('select id from organizations limit 1');
    await fillRuns(ground.sql, ended, rows[0].id);
    await drainOf(queued[0], `, beside ${ended} ended ones`, 'backlogEnded');
  }
  const [first, last] = [figures[0], figures[queued.length - 1]];
  const value = last.value / first.value;
  const what = `drain of ${queued.at(-1)} queued beside that of ${queued[0]}`;
  return [...figures, { key: 'backlogGrowth', what, value, unit: 'times', n: 1 }];
}

/** Single claims, by who serves all queues, past runs that nobody may take. */
async function claimsOf(ground, sizes, others) {
  await fillQueue(ground, 'paused', others);
  await fillQueue(ground, 'later', others, '2100-01-01T00:00:00Z');
  await ground.sql.query(
    `insert into paused_queues (name, at, by, by_name, reason) values ('paused', now(), 'bench', 'bench', 'measured')`,
  );
  const figures = [];
  for (const queued of sizes) {
    await ground.sql.query(`delete from live_runs where queue = 'backlog'`);
    await fillQueue(ground, 'backlog', queued);
    await ground.sql.query('vacuum analyze live_runs');
    const claims = await ground.claims(['*'], 100);
    await series(5, claims);
    const took = await series(60, () => timed(claims));
    figures.push(figureOfTimes(`a claim of 100 by who serves all queues, ${queued} queued`, took));
  }
  await ground.sql.query(`delete from live_runs where holder is not null or queue = 'backlog'`);
  return figures;
}
