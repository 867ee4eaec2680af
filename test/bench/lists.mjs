/** How long lists take with very many ended runs, over HTTP, filter by filter. */
import { figureOfTimes, series } from './figures.mjs';
import { timed } from './lanes.mjs';
import { fillRuns, LISTS } from './many-runs.mjs';

/** @param {import('./ground.mjs').Ground} ground */
export async function lists(ground, { sizes: { isQuick } }) {
  const { client } = await ground.replica({ CAPSTAN_SLOTS: '0' });
  const { rows } = await ground.sql.query('select id from organizations limit 1');
  const n = isQuick ? 300_000 : 5_000_000;
  await ground.sql.query(`set statement_timeout = 0`);
  await fillRuns(ground.sql, n, rows[0].id);
  const half = encodeURIComponent(new Date(Date.now() - (n / 2) * 6_000).toISOString());
  const figures = [];
  for (const [title, query] of [...LISTS, ['before half of them', `createdBefore=${half}&queue=deploys`]]) {
    const ask = () => timed(() => client.call('GET', `/v1/runs?limit=50&${query}`));
    await series(3, ask);
    figures.push(figureOfTimes(`${title}: ${query || 'no filter'}`, await series(isQuick ? 10 : 40, ask)));
  }
  for (const path of ['/v1/queues', '/v1/workers', '/v1/audit']) {
    const ask = () => timed(() => client.call('GET', path));
    figures.push(figureOfTimes(path, await series(isQuick ? 10 : 40, ask)));
  }
  return figures;
}
