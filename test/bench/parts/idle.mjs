/** (e) What a replica takes that has nothing to do. */
import { setTimeout as pause } from 'node:timers/promises';
import { MIB } from '../figures.mjs';
import { cpuSecondsOf, residentBytes, treeOf } from '../processes.mjs';

const SETTLES_MS = 10_000;

export async function idle(ground, { sizes }) {
  const { pid } = await ground.replica();
  const { seconds } = sizes.idle;
  // Through its start, and until the server has counted that.
  await pause(SETTLES_MS);
  const tree = await treeOf(pid);
  const before = { cpu: await cpuSecondsOf(tree), statements: await statements(ground) };
  await pause(seconds * 1_000);
  const cpu = (await cpuSecondsOf(tree)) - before.cpu;
  const n = (await statements(ground)) - before.statements - 1;
  const bytes = await Promise.all(tree.map(residentBytes));
  return [
    { key: 'idleStatements', what: 'statements of an idle replica', value: n / seconds, unit: 'per second', n },
    { key: 'idleCpu', what: 'its CPU, with all its processes', value: (100 * cpu) / seconds, unit: '%', n: seconds },
    { key: 'idleMemory', what: 'its memory', value: bytes[0] / MIB, unit: 'MiB', n: 1 },
    {
      what: 'the memory of what it started',
      value: bytes.slice(1).reduce((sum, each) => sum + each, 0) / MIB,
      unit: 'MiB',
      n: tree.length - 1,
    },
  ];
}

/** Each statement of the product is a transaction of its own; this session's are among them. */
async function statements({ sql }) {
  const { rows } = await sql.query(
    `select (xact_commit + xact_rollback)::integer as n from pg_stat_database where datname = current_database()`,
  );
  return rows[0].n;
}
