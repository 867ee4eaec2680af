/**
 * One scene for all ways of losing a replica: each member suffers a fault of its own, all at the same moment, so that the
 * whole of it takes one lease. Each has runs whose tools work, runs that end by themselves while it is away, and runs
 * that it claimed and could not start.
 */
import { encodeId } from '../../src/kernel/ids.js';
import { isAlive, until } from '../server.js';
import type { EndedRun, Trace } from './effects.fixture.js';
import { scaled } from './scale.js';
import { type Member, Stage } from './stage.fixture.js';

/** Faults after which others settle what the member held. */
export const LOST = ['killed', 'stalled', 'half-open', 'refused', 'frozen'] as const;
export const MEMBERS = [...LOST, 'supervisor-stopped', 'blocked'] as const;
export type Name = (typeof MEMBERS)[number];

/** They come back and find their runs settled. */
const AWAY = ['stalled', 'half-open', 'refused'] as const;

const SURVIVOR = 'survivor';
const TOOLS = 10;
const BLOCKED_MS = scaled(20, 60) * 1000;
/** Longer than anything that is done to them. */
const LONG_S = 600;
/** Several leases. */
const STEADY_S = scaled(32, 60);
/** The start of such a run fails in the database until somebody else has claimed it. */
const HELD_PRIORITY = 7;

const HOLD_STARTS = `
  create function hold_start() returns trigger language plpgsql as $$ begin
    raise exception 'not yet' using errcode = 'serialization_failure';
  end $$;
  create trigger hold_start before update on live_runs for each row
    when (old.state = 'claimed' and new.state = 'running' and new.priority = ${HELD_PRIORITY} and new.fence = 1)
    execute function hold_start()`;

/** Notes each statement that would change something, whether it does or not, and by which connection it came. */
const HEAR_ALL = `
  create table heard (who text, what text, port integer, at timestamptz default clock_timestamp());
  grant insert on heard to public;
  create function hear() returns trigger language plpgsql as $$ begin
    insert into heard values
      (current_setting('application_name'), tg_table_name || ' ' || lower(tg_op), inet_client_port());
    return null;
  end $$;
  create trigger hear after update on workers for each statement execute function hear();
  create trigger hear after update or delete on live_runs for each statement execute function hear();
  create trigger hear after insert on run_output for each statement execute function hear();
  create trigger hear after insert on run_events for each statement execute function hear()`;

/** Blocks the main thread, and it alone, when the process gets SIGUSR2. */
const BLOCKER = `
  import { isMainThread } from 'node:worker_threads';
  const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${BLOCKED_MS});
  if (isMainThread) process.on('SIGUSR2', block);`;

/** What the store has of a run that has ended. */
export interface Facts extends EndedRun {
  readonly worker: string;
  readonly workerId: string;
  readonly outputBytes: number;
  readonly events: number;
  readonly startedAtMs: number;
}

/** One life of a member, as the store has it. */
interface LifeRow {
  readonly id: string;
  readonly state: string;
}

/** What happened to one member in one round. */
export interface Story {
  readonly faultAtMs: number;
  /** Its tools worked when the fault came. */
  readonly lost: readonly string[];
  /** Claimed and not started when the fault came. */
  readonly held: readonly string[];
  /** How its runs had ended before the fault was over, and how they read in the end. */
  readonly endsBefore: readonly Facts[];
  readonly endsAfter: readonly Facts[];
  readonly oldLife: LifeRow;
  /** What it was given when the fault was over. */
  readonly fresh: Facts;
  /** Lines of its log since the fault, so far. */
  log(): Record<string, unknown>[];
  /** When it was let go on. */
  readonly healedAtMs: number;
}

export interface Round {
  readonly stories: ReadonlyMap<Name, Story>;
  /** What the one that was half open had sent in vain and the database heard afterwards, after all. */
  readonly heardLate: readonly string[];
  /** Lease ends of the member whose main thread was blocked, as read every half second. */
  readonly leases: readonly number[];
  /** Runs of several leases' length on a replica that nothing was done to, and one whose time came meanwhile. */
  readonly steady: readonly Facts[];
  readonly delayed: Facts;
  readonly notBeforeMs: number;
  readonly traces: ReadonlyMap<string, Trace>;
}

const envOf = (name: Name): Record<string, string> => ({
  CAPSTAN_QUEUES: name,
  CAPSTAN_SLOTS: '40',
  ...(name === 'blocked' && { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(BLOCKER)}` }),
});

/** The whole fleet, and nothing happening yet. */
export async function openScene(): Promise<Stage> {
  const stage = await Stage.open([SURVIVOR]);
  try {
    await stage.db.query(HOLD_STARTS);
    await stage.db.query(HEAR_ALL);
    await Promise.all(MEMBERS.map((name) => stage.add(name, { env: envOf(name) })));
    return stage;
  } catch (error) {
    await stage.close();
    throw error;
  }
}

/** Plays all faults once. The fleet is whole again afterwards. */
export async function playRound(stage: Stage): Promise<Round> {
  const scene = new Scene(stage);
  try {
    await scene.prepare();
    await scene.strike();
    const leases = scene.sampleLeases();
    await scene.untilSettled();
    await scene.heal();
    return await scene.tell(await leases);
  } finally {
    scene.letGoOn();
  }
}

class Scene {
  private readonly lost = new Map<Name, string[]>();
  private readonly held = new Map<Name, string[]>();
  private readonly faultAtMs = new Map<Name, number>();
  private readonly healedAtMs = new Map<Name, number>();
  private readonly logged = new Map<Name, number>();
  private readonly oldLives = new Map<Name, string>();
  private readonly endsBefore = new Map<Name, Facts[]>();
  private readonly struck = new Map<Name, Member>();
  private steady: string[] = [];
  private delayed = '';
  private notBeforeMs = 0;
  private frozenSupervisor = 0;
  private stoppedSupervisor = 0;
  private frozenTools: readonly number[] = [];
  private dying: readonly number[] = [];
  private silentPorts: readonly number[] = [];

  constructor(private readonly stage: Stage) {}

  /** Brings every member's runs to where the faults should meet them. */
  async prepare(): Promise<void> {
    const { stage } = this;
    const { effects } = stage;
    for (const name of MEMBERS) {
      // What is blocked goes on: its tools end while it is and after.
      const seconds = (i: number) => (name === 'blocked' ? (BLOCKED_MS / 1000) * (i % 2 === 0 ? 0.6 : 1.2) : LONG_S);
      const tools = Array.from({ length: TOOLS }, (_, i) =>
        this.submit(effects.tool(seconds(i), i % 3 === 0 ? 'stubborn' : 'polite', i > 1 ? 'says' : undefined), name),
      );
      this.lost.set(name, await Promise.all(tools));
    }
    this.notBeforeMs = (await this.databaseMs()) + 12_000;
    const notBefore = new Date(this.notBeforeMs).toISOString();
    this.delayed = await this.submit(effects.tool(0), 'default', { notBefore });
    this.steady = await Promise.all([0, 1].map(() => this.submit(effects.tool(STEADY_S), 'default')));
    await this.untilAll('running', [...[...this.lost.values()].flat(), ...this.steady]);
    await Promise.all(
      LOST.map(async (name) => {
        const argv = effects.tool(0.1);
        const held = await Promise.all([0, 1].map(() => this.submit(argv, name, { priority: HELD_PRIORITY })));
        this.held.set(name, held);
        await this.untilAll('claimed', held);
      }),
    );
    for (const name of MEMBERS) this.oldLives.set(name, (await this.newestLife(name)).id);
    const traces = await effects.traces();
    const pidsOf = (runs: readonly string[] = []) => runs.flatMap((id) => [...(traces.get(id)?.pids ?? [])]);
    // The first two of each say nothing: no output of theirs waits to be stored, so that their ends are sent at once.
    this.dying = AWAY.flatMap((name) => pidsOf(this.lost.get(name)?.slice(0, 2)));
    this.frozenTools = pidsOf(this.lost.get('frozen'));
  }

  /** All faults, within milliseconds. */
  async strike(): Promise<void> {
    const { stage } = this;
    this.stoppedSupervisor = await stage.get('supervisor-stopped').supervisor();
    this.frozenSupervisor = await stage.get('frozen').supervisor();
    for (const name of MEMBERS) {
      const member = stage.get(name);
      this.struck.set(name, member);
      this.logged.set(name, member.server.log().length);
      this.faultAtMs.set(name, Date.now());
      if (name === 'killed') member.server.child.kill('SIGKILL');
      else if (name === 'stalled') member.server.child.kill('SIGSTOP');
      else if (name === 'half-open') {
        member.proxy.goSilent();
        this.silentPorts = member.proxy.ports;
      } else if (name === 'refused') await member.proxy.goDown();
      else if (name === 'supervisor-stopped') process.kill(this.stoppedSupervisor, 'SIGSTOP');
      else if (name === 'blocked') member.server.child.kill('SIGUSR2');
      else if (name === 'frozen') {
        process.kill(this.frozenSupervisor, 'SIGSTOP');
        member.server.child.kill('SIGSTOP');
      }
    }
    // Ends that nobody can write: these tools die by themselves.
    for (const pid of this.dying) process.kill(pid, 'SIGKILL');
    // Only now somebody may take what was claimed and comes back: no other has served these queues.
    await stage.add('relief', { kind: 'worker', env: { CAPSTAN_QUEUES: '*', CAPSTAN_SLOTS: '40' } });
  }

  async sampleLeases(): Promise<number[]> {
    const leases: number[] = [];
    for (const endMs = Date.now() + BLOCKED_MS - 2_000; Date.now() < endMs; ) {
      const [row] = await this.stage.db.query<{ ms: number }>(
        `select (extract(epoch from lease_until) * 1000)::float8 as ms from workers where id = $1`,
        [this.oldLives.get('blocked')],
      );
      leases.push(row?.ms ?? 0);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    return leases;
  }

  async untilSettled(): Promise<void> {
    const names = [...LOST, 'supervisor-stopped'] as const;
    for (const name of names) {
      const runs = this.runsOf(name);
      await until(`the runs of ${name} end`, async () => (await this.facts(runs)).length === runs.length, 60_000);
      this.endsBefore.set(name, await this.facts(runs));
    }
    await this.stage.stop('relief');
  }

  /** Every fault is over. Resolves when each member has begun another life, or gone on with its old one. */
  async heal(): Promise<void> {
    const { stage } = this;
    for (const name of MEMBERS) {
      const { server, proxy } = stage.get(name);
      this.healedAtMs.set(name, Date.now());
      if (name === 'stalled') server.child.kill('SIGCONT');
      else if (name === 'half-open') proxy.letGo();
      else if (name === 'refused') await proxy.comeUp();
      else if (name === 'killed') await stage.add(name, { env: envOf(name) });
      else if (name === 'frozen') {
        await this.thawSupervisor();
        server.child.kill('SIGCONT');
      }
    }
    for (const name of MEMBERS) {
      if (name === 'blocked') continue;
      const isAnew = async () => {
        const { id, state } = await this.newestLife(name);
        return state === 'live' && id !== this.oldLives.get(name);
      };
      await until(`${name} begins another life`, isAnew, 60_000);
    }
  }

  /** It goes on before its replica does: it alone must stop the tools. */
  private async thawSupervisor(): Promise<void> {
    this.healedAtMs.set('frozen', Date.now());
    process.kill(this.frozenSupervisor, 'SIGCONT');
    await until('the tools stop', () => !this.frozenTools.some(isAlive));
  }

  /** A supervisor that stayed stopped would outlive its replica, and the test. */
  letGoOn(): void {
    for (const pid of [this.frozenSupervisor, this.stoppedSupervisor]) {
      if (pid > 0 && isAlive(pid)) process.kill(pid, 'SIGCONT');
    }
  }

  async tell(leases: readonly number[]): Promise<Round> {
    const { stage, steady, delayed, notBeforeMs } = this;
    const argv = stage.effects.tool(0);
    const fresh = new Map<Name, string>();
    for (const name of MEMBERS) fresh.set(name, await this.submit(argv, name));
    const all = [...MEMBERS.flatMap((name) => this.runsOf(name)), ...fresh.values(), ...steady, delayed];
    await until('all runs end', async () => (await this.facts(all)).length === all.length, 120_000);
    const stories = new Map<Name, Story>();
    for (const name of MEMBERS) {
      const [freshFacts] = await this.facts([fresh.get(name) ?? '']);
      const [oldLife] = await this.lives(`id = $1`, this.oldLives.get(name));
      if (!freshFacts || !oldLife) throw new Error(`nothing is known of ${name}`);
      stories.set(name, {
        faultAtMs: this.faultAtMs.get(name) ?? 0,
        healedAtMs: this.healedAtMs.get(name) ?? 0,
        lost: this.lost.get(name) ?? [],
        held: this.held.get(name) ?? [],
        endsBefore: this.endsBefore.get(name) ?? [],
        endsAfter: await this.facts(this.runsOf(name)),
        oldLife,
        fresh: freshFacts,
        log: () => this.logOf(name),
      });
    }
    const [delayedFacts] = await this.facts([delayed]);
    if (!delayedFacts) throw new Error('the delayed run is missing');
    const traces = await stage.effects.traces();
    const heardLate = await this.heardLate();
    return { stories, heardLate, leases, steady: await this.facts(steady), delayed: delayedFacts, notBeforeMs, traces };
  }

  private async heardLate(): Promise<string[]> {
    const rows = await this.stage.db.query<{ heard: string }>(
      `select distinct who || ': ' || what as heard from heard
       where port = any ($1) and at > to_timestamp($2::float8 / 1000) order by 1`,
      [this.silentPorts, this.healedAtMs.get('half-open')],
    );
    return rows.map(({ heard }) => heard);
  }

  private runsOf(name: Name): string[] {
    return [...(this.lost.get(name) ?? []), ...(this.held.get(name) ?? [])];
  }

  private submit(argv: readonly string[], queue: string, extra: object = {}): Promise<string> {
    return this.stage.submit(argv, { queue, ...extra }, [this.stage.get(SURVIVOR)]);
  }

  private async databaseMs(): Promise<number> {
    const [row] = await this.stage.db.query<{ ms: number }>('select (extract(epoch from now()) * 1000)::float8 as ms');
    return row?.ms ?? 0;
  }

  private async untilAll(state: string, runs: readonly string[]): Promise<void> {
    const wanted = new Set(runs);
    await until(`${runs.length} runs are ${state}`, async () => {
      const rows = await this.stage.db.query<{ id: string }>('select run_id as id from live_runs where state = $1', [
        state,
      ]);
      return rows.filter(({ id }) => wanted.has(encodeId('run', id))).length === wanted.size;
    });
  }

  private async newestLife(name: Name): Promise<LifeRow> {
    const [life] = await this.lives('name = $1', name);
    if (!life) throw new Error(`${name} never registered`);
    return life;
  }

  private lives(where: string, value: unknown): Promise<LifeRow[]> {
    return this.stage.db.query<LifeRow & { id: string }>(
      `select id, state from workers where ${where} order by started_at desc`,
      [value],
    );
  }

  private async facts(runs: readonly string[]): Promise<Facts[]> {
    const wanted = new Set(runs);
    const rows = await this.stage.db.query<Facts & { id: string }>(
      `select r.id, r.state, r.end_code as code, r.fence, (extract(epoch from r.ended_at) * 1000)::float8 as "endedAtMs",
              (extract(epoch from r.started_at) * 1000)::float8 as "startedAtMs", r.worker_id as "workerId",
              (select w.name from workers w where w.id = r.worker_id) as worker,
              (select coalesce(sum(length(o.data)), 0)::integer from run_output o where o.run_id = r.id) as "outputBytes",
              (select count(*)::integer from run_events e where e.run_id = r.id) as events
       from runs r where r.ended_at is not null order by r.id`,
    );
    return rows.map((row) => ({ ...row, id: encodeId('run', row.id) })).filter(({ id }) => wanted.has(id));
  }

  private logOf(name: Name): Record<string, unknown>[] {
    const lines = this.struck.get(name)?.server.log().slice(this.logged.get(name)).split('\n').slice(0, -1) ?? [];
    return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  }
}
