/**
 * What is measured, one function a part, each with replicas of its own, which are stopped after it. A part gives figures;
 * `msPerItem` is what one item takes, so that it can be told in commits of the same machine's PostgreSQL.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { inParallel } from './client.mjs';
import { figureOfTimes, median, series, timed } from './figures.mjs';
import { lists } from './lists.mjs';
import { watchMemory } from './memory.mjs';

/** A replica that only serves the API. */
const API_ONLY = { CAPSTAN_SLOTS: '0' };
const PARALLEL = 64;
const OUTPUT_BYTES = 100_000_000;
const MIB = 1_048_576;

function rate(what, n, tookMs) {
  return { what, value: (n * 1_000) / tookMs, unit: 'per second', n, msPerItem: tookMs / n };
}

/** What the machine and its PostgreSQL give by themselves: everything else is to be seen beside these. */
export async function yardsticks({ sql }, { quick }) {
  const n = quick ? 100 : 500;
  await sql.query('create table bench_yardstick (id bigint generated always as identity, note text)');
  const select = await series(n, () => timed(() => sql.query('select 1')));
  const insert = await series(n, () => timed(() => sql.query(`insert into bench_yardstick (note) values ('x')`)));
  await sql.query('drop table bench_yardstick');
  return [
    figureOfTimes('`select 1`, a bare round trip', select),
    figureOfTimes('a bare insert, committed to disk', insert),
  ];
}

async function submit(ground, { quick }) {
  const replica = await ground.replica(API_ONLY, PARALLEL);
  const { client } = replica;
  const send = () => client.submit({ kind: 'noop', queue: 'nobody' });
  await series(20, send);
  const one = await series(quick ? 50 : 1_000, () => timed(send));
  const n = quick ? 500 : 10_000;
  const all = await timed(() => inParallel(n, PARALLEL, send));
  return [figureOfTimes('submit, one after another', one), rate(`submits, ${PARALLEL} at a time`, n, all)];
}

/** Fills a queue while nobody serves it, then lets one replica drain it; by the database's own clock. */
async function drainOf(ground, name, n, slots, run) {
  const filler = await ground.replica(API_ONLY, PARALLEL);
  await inParallel(n, PARALLEL, () => filler.client.submit({ ...run, queue: name }));
  await ground.replica({ CAPSTAN_QUEUES: name, CAPSTAN_SLOTS: String(slots) });
  const left = async () => {
    const { rows } = await ground.sql.query('select count(*)::integer as n from live_runs where queue = $1', [name]);
    return rows[0].n;
  };
  while ((await left()) > 0) await pause(250);
  const { rows } = await ground.sql.query(
    `select extract(epoch from max(ended_at) - min(claimed_at)) * 1000 as took,
            count(*) filter (where state = 'succeeded')::integer as succeeded
     from runs where queue = $1`,
    [name],
  );
  if (rows[0].succeeded !== n) throw new Error(`${n - rows[0].succeeded} of ${n} runs did not succeed`);
  return Number(rows[0].took);
}

async function drain(ground, { quick }) {
  const n = quick ? 2_000 : 20_000;
  const took = await drainOf(ground, 'drain', n, 200, { kind: 'noop' });
  return [rate('drain of waiting `noop` runs, 200 slots', n, took)];
}

async function command(ground, { quick }) {
  const n = quick ? 100 : 1_000;
  const took = await drainOf(ground, 'command', n, 8, { kind: 'command', spec: { argv: ['true'] } });
  return [rate('`true` as a process, 8 slots', n, took)];
}

async function start(ground, { quick }) {
  const replica = await ground.replica();
  const run = { kind: 'command', spec: { argv: ['true'] } };
  await replica.client.runToEnd(run);
  const samples = await series(quick ? 20 : 200, async () => {
    // Until everything about the run before has settled.
    await pause(20);
    const { createdAt, startedAt } = await replica.client.runToEnd(run);
    return Date.parse(startedAt) - Date.parse(createdAt);
  });
  return [figureOfTimes('submit to start of a command, idle replica', samples)];
}

async function wait(ground, { quick }) {
  const replica = await ground.replica();
  const once = () => timed(() => replica.client.runToEnd({ kind: 'noop' }));
  await series(5, once);
  const samples = await series(quick ? 50 : 500, once);
  return [figureOfTimes('`noop` with `Prefer: wait`, request to answer', samples)];
}

async function http(ground, { quick }) {
  const server = createServer((_, answer) => answer.end('{"ok":true}')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const replica = await ground.replica();
  try {
    const run = { kind: 'http', spec: { method: 'GET', url: `http://127.0.0.1:${server.address().port}/` } };
    const request = () => timed(() => replica.client.runToEnd(run));
    await series(5, request);
    return [
      figureOfTimes('`http` run to a server beside it, request to answer', await series(quick ? 50 : 500, request)),
    ];
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function output(ground, { quick }) {
  const replica = await ground.replica();
  await replica.client.runToEnd({ kind: 'command', spec: { argv: ['true'] } });
  const bytes = quick ? OUTPUT_BYTES / 5 : OUTPUT_BYTES;
  const memory = await watchMemory(replica.pid);
  const argv = ['sh', '-c', `yes 'a line of output as a tool writes it' | head -c ${bytes}`];
  const { startedAt, endedAt } = await replica.client.runToEnd({ kind: 'command', spec: { argv } });
  const grownBytes = memory.stop();
  const took = Date.parse(endedAt) - Date.parse(startedAt);
  const mb = bytes / 1_000_000;
  return [
    { what: `output of one run, ${mb} MB`, value: (mb * 1_000) / took, unit: 'MB per second', n: 1 },
    { what: 'memory of the replica meanwhile, above idle', value: grownBytes / MIB, unit: 'MiB', n: memory.samples },
  ];
}

/** The tool writes what time it is; a viewer at another replica sees how long ago that was. */
async function viewer(ground, { quick }) {
  const n = quick ? 20 : 100;
  const runner = await ground.replica({ CAPSTAN_NAME: 'runner' });
  const other = await ground.replica({ ...API_ONLY, CAPSTAN_NAME: 'viewer' });
  const script = `let n = ${n}; const t = setInterval(() => { console.log(Date.now()); if (--n === 0) clearInterval(t); }, 100)`;
  const made = await runner.client.submit({ kind: 'command', spec: { argv: [process.execPath, '-e', script] } });
  const samples = [];
  let text = '';
  for await (const { event, data } of other.client.stream(made.id)) {
    const seenAtMs = Date.now();
    if (event === 'end') break;
    if (event !== 'output') continue;
    const lines = (text + Buffer.from(JSON.parse(data).data, 'base64').toString('latin1')).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) samples.push(seenAtMs - Number(line));
  }
  if (samples.length !== n) throw new Error(`the viewer saw ${samples.length} of ${n} lines`);
  const { msPerItem: _, ...figure } = figureOfTimes('a line, written to seen, by a viewer at another replica', samples);
  return [figure];
}

/** A chain with nothing in it but what is appended here: by the same function as everything, a thousand at a time. */
async function fillChain({ sql }, chain, n) {
  for (let done = 0; done < n; done += 1_000) {
    await sql.query(
      `select count(*) from audit_append(array_fill($1::text, array[1000]),
         (select array_agg(jsonb_build_object(
            'action', 'bench.made', 'object', 'run_01h455vb4pex5vsknk084sn02q', 'principal', 'tok_01h455vb4pex5vsknk084sn02q',
            'principalName', 'bench', 'kind', 'noop', 'queue', 'default', 'origin', 'api',
            'specDigest', 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 'n', $2 + i))
          from generate_series(1, 1000) as i),
         array_fill('01890a5d-ac96-774b-bcce-b302099a8057'::uuid, array[1000]))`,
      [chain, done],
    );
  }
}

async function audit(ground, { quick }) {
  const key = Buffer.alloc(32, 7).toString('base64');
  const { client, pid } = await ground.replica({ ...API_ONLY, CAPSTAN_AUDIT_KEY: key });
  const { chain } = await client.call('GET', '/v1/audit/verify');
  const n = quick ? 50_000 : 1_000_000;
  const filling = await timed(() => fillChain(ground, chain, n));
  await ground.sql.query('vacuum analyze audit_entries');
  const memory = await watchMemory(pid);
  const verify = async () => {
    const { ok, entries } = await client.call('GET', '/v1/audit/verify');
    if (!ok || entries < n) throw new Error(`the chain does not verify: ${entries} of ${n} entries hold`);
  };
  const took = median(await series(quick ? 2 : 5, () => timed(verify)));
  const grownBytes = memory.stop();
  const pages = async (query) => series(quick ? 5 : 50, () => timed(() => client.call('GET', `/v1/audit?${query}`)));
  const [newest, byAction] = [await pages('limit=50'), await pages('limit=50&action=bench.made')];
  const nothing = await series(quick ? 2 : 5, () => timed(() => client.call('GET', '/v1/audit?principal=nobody')));
  const bundle = await series(quick ? 2 : 5, () => timed(() => client.call('GET', '/v1/audit/bundle')));
  return [
    rate('entries appended, 1,000 a statement', n, filling),
    rate('entries verified over HTTP', n, took),
    { what: 'memory of the replica meanwhile, above idle', value: grownBytes / MIB, unit: 'MiB', n: memory.samples },
    figureOfTimes('a page of 50 entries', newest),
    figureOfTimes('a page of 50 entries of an action', byAction),
    figureOfTimes('a page of a principal that did nothing: as far as it looks', nothing),
    figureOfTimes('a signed bundle of the newest 10,000 entries', bundle),
  ];
}

/** Runs that wait in a queue, put there past the API. */
async function fillQueue({ sql }, queue, n, notBefore = null) {
  await sql.query(
    `with made as (
       insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at, not_before)
       select id, (select id from organizations limit 1), 'noop', $1, 0, '{}', '{}', 'sha256:none', 'api',
              '{"type":"system","id":"bench","name":"bench"}', id, now(), $3
       from (select gen_random_uuid() as id from generate_series(1, $2)) as new
       returning id, organization_id, created_at, queue, priority, not_before
     )
     insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, not_before)
     select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, priority, not_before
     from made`,
    [queue, n, notBefore],
  );
}

async function backlog(ground, { quick }) {
  const scale = quick ? 0.1 : 1;
  await ground.replica(API_ONLY);
  await fillQueue(ground, 'paused', 100_000 * scale);
  await fillQueue(ground, 'later', 100_000 * scale, '2100-01-01T00:00:00Z');
  await ground.sql.query(
    `insert into paused_queues (name, at, by, by_name, reason) values ('paused', now(), 'bench', 'bench', 'measured')`,
  );
  const figures = [];
  for (const queued of [10_000, 1_000_000 * scale]) {
    await ground.sql.query(`delete from live_runs where queue = 'backlog'`);
    await fillQueue(ground, 'backlog', queued);
    await ground.sql.query('vacuum analyze live_runs');
    const claims = await ground.claims(['*'], 100);
    await series(5, claims);
    const took = await series(60, () => timed(claims));
    figures.push(figureOfTimes(`a claim of 100 by who serves all queues, ${queued} queued`, took));
  }
  await ground.sql.query(`delete from live_runs where holder is not null`);
  return [...figures, ...(await drainUnderSnapshot(ground, quick ? 15 : 60))];
}

/** A replica drains a backlog while a session elsewhere keeps the database from forgetting what was claimed. */
async function drainUnderSnapshot(ground, seconds) {
  const left = async () => {
    const { rows } = await ground.sql.query(`select count(*)::integer as n from live_runs where queue = 'backlog'`);
    return rows[0].n;
  };
  const session = await ground.session();
  await session.query('begin isolation level repeatable read');
  await session.query('select count(*) from live_runs');
  await ground.replica({ CAPSTAN_QUEUES: 'backlog', CAPSTAN_SLOTS: '200' });
  const samples = [];
  let before = await left();
  for (let tenth = 0; tenth < 10; tenth += 1) {
    await pause(seconds * 100);
    const now = await left();
    samples.push((before - now) / (seconds / 10));
    before = now;
  }
  await session.query('rollback');
  const early = median(samples.slice(1, 4));
  const late = median(samples.slice(-3));
  const n = seconds * 10;
  return [
    {
      what: `runs drained per second, a snapshot held open elsewhere, first third of ${seconds} s`,
      value: early,
      unit: 'per second',
      n,
    },
    { what: 'the same, last third', value: late, unit: 'per second', n },
    { what: 'last third beside the first', value: late / early, unit: 'times', n },
  ];
}

/** From the submit at one replica to the start at another that has nothing to do, by the database's clock. */
async function wake(ground, { quick }) {
  const submits = await ground.replica(API_ONLY);
  await ground.replica({ CAPSTAN_QUEUES: 'woken' });
  const once = async (queue) => {
    const { createdAt, startedAt } = await submits.client.runToEnd({
      kind: 'command',
      spec: { argv: ['true'] },
      queue,
    });
    return Date.parse(startedAt) - Date.parse(createdAt);
  };
  await series(5, () => once('woken'));
  const samples = await series(quick ? 20 : 200, async () => {
    await pause(50 + Math.random() * 100);
    return once('woken');
  });
  return [figureOfTimes('submit at one replica to start at another, idle one', samples)];
}

/** What the loops of a replica that has nothing to do ask of the database; renewals and probes go past these pools. */
async function idle(ground, { quick }) {
  const { client } = await ground.replica();
  const seconds = quick ? 20 : 120;
  await pause(5_000);
  const before = await statements(client);
  await pause(seconds * 1_000);
  const n = (await statements(client)) - before;
  return [{ what: 'statements of the loops of an idle replica', value: n / seconds, unit: 'per second', n }];
}

async function statements(client) {
  const text = await client.text('GET', '/metrics');
  const counts = [...text.matchAll(/^capstan_db_statement_seconds_count\{pool="(work|submit|output)"\} (\d+)$/gm)];
  return counts.reduce((sum, [, , count]) => sum + Number(count), 0);
}

/** In the order of measuring: what fills the tables comes last. */
export const PARTS = Object.freeze({
  idle,
  start,
  wake,
  wait,
  http,
  viewer,
  output,
  command,
  submit,
  drain,
  audit,
  backlog,
});

/** What takes minutes to prepare: measured only when it is named. */
export const LONG_PARTS = Object.freeze({ lists });
