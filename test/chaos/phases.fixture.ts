/**
 * One scene for a `kill -9` in each phase of a run: every phase has a process and a queue of its own, so that all of
 * them take one lease. Where a phase is short, the database holds up the statement that would end it.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { decodeId } from '../../src/kernel/ids.js';
import { spawnCapstan, until } from '../server.js';
import { Stage, TOKEN } from './stage.fixture.js';

const SURVIVOR = 'survivor';
/** Killed, and never started again. */
export const KILLED = ['claimed', 'defaults', 'finishing', 'finished', 'canceling', 'releasing'] as const;
export type Phase = (typeof KILLED)[number];
const PAIR = ['pair1', 'pair2'] as const;
export const PAIR_RUNS = 20;

const LONG_S = 600;
const RELEASE_GATE = 1;
const REGISTER_GATE = 2;
/** Shut within the statement's bound on a lock, with room for the kill. */
const FRESH_MS = 1_000;

/** Settings whose defaults are promised things of. */
const DEFAULTS = { CAPSTAN_LEASE_TTL: '30s', CAPSTAN_LEASE_RENEW: '5s', CAPSTAN_KILL_GRACE: '10s' };

const GATES = `
  create table held (queue text primary key);
  insert into held values ('claimed'), ('releasing'), ('finishing');
  grant select on held to public;
  create function refuse() returns trigger language plpgsql as $$ begin
    if exists (select from held where queue = old.queue) then
      raise exception 'not yet' using errcode = 'serialization_failure';
    end if;
    return coalesce(new, old);
  end $$;
  create trigger hold_start before update on live_runs for each row
    when (old.queue in ('claimed', 'releasing') and old.state = 'claimed' and new.state = 'running')
    execute function refuse();
  create trigger hold_end before delete on live_runs for each row
    when (old.queue = 'finishing' and old.state = 'running') execute function refuse();
  create function wait_at_gate() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock(tg_argv[0]::bigint);
    return new;
  end $$;
  create trigger hold_release before update on live_runs for each row
    when (old.queue = 'releasing' and old.state = 'claimed' and new.state = 'pending')
    execute function wait_at_gate(${RELEASE_GATE});
  create trigger hold_register before insert on workers for each row
    when (new.name = 'newborn') execute function wait_at_gate(${REGISTER_GATE})`;

/** What was submitted for each phase. */
export interface Cast {
  readonly stage: Stage;
  readonly runs: Readonly<Record<Phase, string>>;
  readonly pair: readonly string[];
}

export async function openScene(): Promise<Cast> {
  const stage = await Stage.open([SURVIVOR], { env: { CAPSTAN_JANITOR_INTERVAL: '5s', CAPSTAN_QUEUES: 'none' } });
  try {
    return await fill(stage);
  } catch (error) {
    await stage.close();
    throw error;
  }
}

async function fill(stage: Stage): Promise<Cast> {
  await stage.db.query(GATES);
  const killed = KILLED.map((name) =>
    stage.add(name, {
      env: {
        CAPSTAN_QUEUES: name,
        ...(name === 'defaults' ? DEFAULTS : {}),
        // Longer than the kill takes to come after the cancel has reached the tool.
        ...(name === 'canceling' ? { CAPSTAN_KILL_GRACE: '5s' } : {}),
      },
    }),
  );
  await Promise.all([...killed, ...PAIR.map((name) => startOfPair(stage, name, 'pair'))]);
  const submit = (queue: string, argv: readonly string[]) => stage.submit(argv, { queue }, [stage.get(SURVIVOR)]);
  const long = stage.effects.tool(LONG_S);
  const runs = {
    claimed: await submit('claimed', stage.effects.tool(1)),
    defaults: await submit('defaults', long),
    finishing: await submit('finishing', stage.effects.tool(1)),
    finished: await submit('finished', untilThere(fileOf(stage, 'go'))),
    canceling: await submit('canceling', heedless(fileOf(stage, 'told'))),
    releasing: await submit('releasing', stage.effects.tool(1)),
  };
  const pair: string[] = [];
  for (let i = 0; i < PAIR_RUNS; i += 1) pair.push(await submit('pair', long));
  return { stage, runs, pair };
}

/** Kills everybody in its phase, and starts the pair again, both at once. */
export async function killInPhase({ stage, runs }: Cast): Promise<void> {
  await stage.untilRunning(PAIR_RUNS + 4, 60_000);
  const { db } = stage;
  const gates = new pg.Client(db.directUrl);
  await gates.connect();
  await gates.query('select pg_advisory_lock($1), pg_advisory_lock($2)', [RELEASE_GATE, REGISTER_GATE]);
  try {
    await until('the claimed runs wait for their starts', () => has(stage, 'claimed', 'run_start_retried'));
    await until('the end of a run waits', () => has(stage, 'finishing', 'run_end_retried'));
    await killWhileCanceling(stage, runs.canceling);
    await killWhileReleasing(stage, gates);
    await killWhileRegistering(stage, gates);
    await killWhileFinishing(stage, gates, runs.finished);
    await Promise.all(['claimed', 'defaults', 'finishing', ...PAIR].map((name) => stage.kill(name)));
    await db.query('delete from held');
  } finally {
    await gates.end();
  }
  // Together again, and heirs of what comes back to its queue.
  await Promise.all(PAIR.map((name) => startOfPair(stage, name, 'pair,claimed,releasing')));
}

function startOfPair(stage: Stage, name: string, queues: string) {
  return stage.add(name, { env: { CAPSTAN_QUEUES: queues, CAPSTAN_SLOTS: String(PAIR_RUNS / 2) } });
}

async function killWhileCanceling(stage: Stage, id: string): Promise<void> {
  const answer = await stage.call(stage.get(SURVIVOR), 'POST', `/v1/runs/${id}/cancel`);
  if (answer.status !== 202) throw new Error(`the cancel was answered with ${answer.status}`);
  await until('the tool was told to stop', () => existsSync(fileOf(stage, 'told')));
  await stage.kill('canceling');
}

/** Its process is told to stop and gives back what it has not started; it and its statement die in the middle. */
async function killWhileReleasing(stage: Stage, gates: pg.Client): Promise<void> {
  stage.get('releasing').server.child.kill('SIGTERM');
  const pid = await waiter(stage, '%run.released%');
  await stage.kill('releasing');
  await gates.query('select pg_terminate_backend($1)', [pid]);
  await gates.query('select pg_advisory_unlock($1)', [RELEASE_GATE]);
}

/** Its statement is carried out when the process that sent it is gone. */
async function killWhileRegistering(stage: Stage, gates: pg.Client): Promise<void> {
  const child = await spawnCapstan(['worker'], {
    DATABASE_URL: stage.db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_NAME: 'newborn',
    CAPSTAN_LEASE_TTL: '15s',
    CAPSTAN_LEASE_RENEW: '2s',
    CAPSTAN_KILL_GRACE: '1s',
    CAPSTAN_QUEUES: 'none',
  });
  await waiter(stage, '%insert into workers%');
  child.kill('SIGKILL');
  await gates.query('select pg_advisory_unlock($1)', [REGISTER_GATE]);
}

/** The end that it wrote is carried out when the process that sent it is gone. */
async function killWhileFinishing(stage: Stage, gates: pg.Client, id: string): Promise<void> {
  await gates.query('begin');
  await gates.query('select 1 from live_runs where run_id = $1 for update', [decodeId('run', id)]);
  await writeFile(fileOf(stage, 'go'), '');
  await waiter(stage, '%outputDigest%');
  await stage.kill('finished');
  await gates.query('commit');
}

/** The server's process that waits for a lock in a statement like this, and has only begun to. */
async function waiter({ db }: Stage, statement: string): Promise<number> {
  return until(
    `a statement like ${statement} waits`,
    async () => {
      const [row] = await db.query<{ pid: number }>(
        `select pid from pg_stat_activity
       where wait_event_type = 'Lock' and query like $1 and application_name like 'capstan%'
         and clock_timestamp() - query_start < $2 * interval '1 millisecond'`,
        [statement, FRESH_MS],
      );
      return row?.pid;
    },
    60_000,
  );
}

function has(stage: Stage, name: string, code: string): boolean {
  return stage.get(name).server.log().includes(`"${code}"`);
}

function fileOf(stage: Stage, name: string): string {
  return join(stage.db.scratch, `phase-${name}`);
}

/** A tool that ends when `file` is there. */
function untilThere(file: string): string[] {
  return ['sh', '-c', `until [ -e ${file} ]; do sleep 0.05; done`];
}

/** A tool that only says in `file` that it was told to stop. */
function heedless(file: string): string[] {
  return ['sh', '-c', `trap 'touch ${file}' TERM; while :; do sleep 0.1; done`];
}
