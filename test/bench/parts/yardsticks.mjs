/** What the machine, its PostgreSQL and Fastify give by themselves: everything else is to be seen beside these. */
import { join } from 'node:path';
import { figureOfTimes, rate, series } from '../figures.mjs';
import { timed } from '../lanes.mjs';

const BARE = join(import.meta.dirname, '../bare-fastify.mjs');
const LOAD = join(import.meta.dirname, '../load.mjs');
const CALLERS = 64;
const ROWS = 200_000;
const CLAIMED_AT_ONCE = 100;
const CLAIMERS = 2;

/** A round trip, and a commit: the second is what others are counted in. */
export async function yardsticks({ sql }, { isQuick }) {
  const n = isQuick ? 100 : 500;
  await sql.query('create table bench_yardstick (id bigint generated always as identity, note text)');
  const select = await series(n, () => timed(() => sql.query('select 1')));
  const insert = await series(n, () => timed(() => sql.query(`insert into bench_yardstick (note) values ('x')`)));
  await sql.query('drop table bench_yardstick');
  return [
    figureOfTimes('`select 1`, a bare round trip', select),
    figureOfTimes('a bare insert, committed to disk', insert),
  ];
}

/** What a part can reach at best on this machine. */
export async function limits(ground, { sizes }) {
  return [await fastify(ground, sizes.isQuick ? 5_000 : 30_000), ...(await claims(ground))];
}

/** A server that takes the same body as a submit and does nothing. */
async function fastify(ground, n) {
  const server = await ground.child(process.execPath, BARE, {});
  const load = await ground.load(LOAD, await server.call('listen'));
  const submits = () => load.call('submits', { n, callers: CALLERS, queue: 'nobody', keyed: false });
  await submits();
  const took = await submits();
  await Promise.all([load.end(), server.end()]);
  return rate(`requests to a Fastify that does nothing, ${CALLERS} callers`, n, took);
}

/** Rows that are taken, with the least that a queue needs, by sessions of their own; each statement is a commit. */
async function claims(ground) {
  await ground.sql.query('create table bench_claims (id bigint primary key, holder integer)');
  await ground.sql.query('create index on bench_claims (id) where holder is null');
  await ground.sql.query('insert into bench_claims select n from generate_series(1, $1) as n', [ROWS]);
  await ground.tidy();
  const claimer = async (holder) => {
    const session = await ground.session();
    let last = 0;
    for (;;) {
      const { rows } = await session.query({
        name: 'claim',
        text: `with free as (
                 select id from bench_claims where holder is null and id > $3 order by id
                 for update skip locked limit $2
               ), taken as (
                 update bench_claims c set holder = $1 from free where c.id = free.id returning c.id
               )
               select max(id) as last from taken`,
        values: [holder, CLAIMED_AT_ONCE, last],
      });
      if (rows[0].last === null) return;
      last = rows[0].last;
    }
  };
  const took = await timed(() => Promise.all(Array.from({ length: CLAIMERS }, (_, i) => claimer(i))));
  await ground.sql.query('drop table bench_claims');
  return [rate(`rows claimed in bare SQL, ${CLAIMED_AT_ONCE} a statement, ${CLAIMERS} claimers`, ROWS, took)];
}
