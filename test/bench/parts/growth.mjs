/** (h) What runs leave behind, and the drain while a session elsewhere keeps the database from forgetting. */
import { MIB, rate } from '../figures.mjs';
import { watchMemory } from '../processes.mjs';
import { Capstan } from '../systems/capstan.mjs';

const LARGEST = 6;

/** Runs through the API, from their submit to their end, by a replica that also takes the submits. */
export async function growth(ground, { sizes }) {
  const { n } = sizes.growth;
  const capstan = new Capstan(ground, sizes.slots);
  const memory = { peakBytes: 0, samples: 0 };
  const onReplica = async ({ pid }) => {
    memory.watch = await watchMemory(pid);
  };
  const took = await capstan.drain({ n, workers: 1, warmUp: 0, onReplica });
  memory.watch.stop();
  const { rows } = await ground.sql.query(
    `select relname as name, pg_total_relation_size(relid)::float8 as bytes, n_dead_tup::integer as dead
     from pg_stat_user_tables order by 2 desc limit $1`,
    [LARGEST],
  );
  return [
    { ...rate('runs drained', n, took), key: 'growthDrain' },
    { key: 'loadMemory', what: 'peak memory of the replica', value: memory.watch.peakBytes / MIB, unit: 'MiB', n: 1 },
    ...rows.flatMap(({ name, bytes, dead }) => [
      { what: `${name}, with its indexes`, value: bytes / n, unit: 'bytes per run', n },
      { what: `${name}, dead rows`, value: dead, unit: 'rows', n },
    ]),
  ];
}

/** Of two drains in a row of the same size: one undisturbed, one with a snapshot open the whole time. */
export async function snapshot(ground, { sizes, rounds }) {
  const { n } = sizes.snapshot;
  const capstan = new Capstan(ground, sizes.slots);
  const drain = () => capstan.drain({ n, workers: 1, warmUp: 0 });
  const shares = [];
  let [alone, beside] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    alone = await drain();
    const session = await ground.session();
    await session.query('begin isolation level repeatable read');
    await session.query('select count(*) from live_runs');
    beside = await drain();
    await session.query('rollback');
    shares.push(alone / beside);
  }
  const value = shares.toSorted((a, b) => a - b)[Math.floor(shares.length / 2)];
  return [
    rate('drain, undisturbed', n, alone),
    rate('drain, a snapshot open elsewhere the whole time', n, beside),
    {
      key: 'snapshotShare',
      what: 'the second beside the first',
      value,
      unit: 'times',
      n: rounds,
      rounds: shares,
      min: Math.min(...shares),
      max: Math.max(...shares),
    },
  ];
}
