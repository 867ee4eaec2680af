/** (h) The chain: how fast it grows, and how fast it is read and verified. */
import { figureOfTimes, MIB, median, rate, series } from '../figures.mjs';
import { fillChain } from '../filling.mjs';
import { timed } from '../lanes.mjs';
import { watchMemory } from '../processes.mjs';

export async function audit(ground, { sizes }) {
  const key = Buffer.alloc(32, 7).toString('base64');
  const { client, pid } = await ground.replica({ CAPSTAN_SLOTS: '0', CAPSTAN_AUDIT_KEY: key });
  const { chain } = await client.call('GET', '/v1/audit/verify');
  const n = sizes.audit.entries;
  const filling = await timed(() => fillChain(ground, chain, n));
  await ground.sql.query('vacuum analyze audit_entries');
  const memory = await watchMemory(pid);
  const verify = async () => {
    const { ok, entries } = await client.call('GET', '/v1/audit/verify');
    if (!ok || entries < n) throw new Error(`the chain does not verify: ${entries} of ${n} entries hold`);
  };
  const [many, few] = sizes.isQuick ? [5, 2] : [50, 5];
  const took = median(await series(few, () => timed(verify)));
  const grownBytes = memory.stop();
  const times = (count, path) => series(count, () => timed(() => client.call('GET', path)));
  return [
    rate('entries appended, 1,000 a statement', n, filling),
    rate('entries verified over HTTP', n, took),
    { what: 'memory of the replica meanwhile, above idle', value: grownBytes / MIB, unit: 'MiB', n: memory.samples },
    figureOfTimes('a page of 50 entries', await times(many, '/v1/audit?limit=50')),
    figureOfTimes('a page of 50 entries of an action', await times(many, '/v1/audit?limit=50&action=bench.made')),
    figureOfTimes(
      'a page of a principal that did nothing: as far as it looks',
      await times(few, '/v1/audit?principal=nobody'),
    ),
    figureOfTimes('a signed bundle of the newest 10,000 entries', await times(few, '/v1/audit/bundle')),
  ];
}
