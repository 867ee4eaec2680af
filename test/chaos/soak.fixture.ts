/**
 * A fleet behind balancers, under work and under faults at random moments, for as long as one likes; then the verdict.
 * The faults of one seed come in one order; when they meet which run is up to the machine.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Balancer } from './balancer.fixture.js';
import type { Verdict } from './effects.fixture.js';
import type { Member, Stage } from './stage.fixture.js';

export interface SoakOptions {
  readonly seed: number;
  readonly minutes: number;
  /** Mean time from one fault to the next. */
  readonly faultEveryMs: number;
  /** Longest time that a member stands still or is cut off. */
  readonly longestFaultMs: number;
  /** Runs that are kept live. */
  readonly backlog: number;
  readonly onProgress?: (line: string) => void;
}

export interface Summary extends Verdict {
  readonly seed: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly runs: number;
  readonly ends: Readonly<Record<string, number>>;
  /** Runs whose submit was answered and of which the database knows nothing. */
  readonly forgotten: readonly string[];
  /** From the last renewal of a lost worker to the end of a run that it held, the longest; ms on the database's clock. */
  readonly longestTakeoverMs: number;
  /** What the audit chain and the ends say against each other. */
  readonly contradictions: readonly string[];
}

type Fault = (soak: Soak, member: Member) => Promise<void>;

/** Everything that strikes one member, or the database below all of them. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'replica killed': async ({ stage }, { name }) => {
    await stage.kill(name);
    await stage.add(name);
  },
  'replica stopped and continued': async (soak, { server }) => {
    server.child.kill('SIGSTOP');
    await soak.last();
    server.child.kill('SIGCONT');
  },
  'replica restarted': async ({ stage }, { name }) => {
    await stage.stop(name);
    await stage.add(name);
  },
  'supervisor killed': async (_, member) => {
    process.kill(await member.supervisor(), 'SIGKILL');
  },
  'supervisor stopped and continued': async (soak, member) => {
    const pid = await member.supervisor();
    process.kill(pid, 'SIGSTOP');
    await soak.last();
    try {
      process.kill(pid, 'SIGCONT');
    } catch {
      // Its replica found it silent and has killed it.
    }
  },
  'half open, later delivered': async (soak, { proxy }) => {
    proxy.goSilent();
    await soak.last();
    proxy.letGo();
  },
  'half open, later reset': async (soak, { proxy }) => {
    proxy.goSilent();
    await soak.last();
    proxy.speak();
    proxy.reset();
  },
  'database refused': async (soak, { proxy }) => {
    await proxy.goDown();
    await soak.last();
    await proxy.comeUp();
  },
  'database restarted': ({ stage }) => stage.db.restart('fast'),
  'database ended at once': ({ stage }) => stage.db.restart('immediate'),
  'a back end killed': ({ stage }) => stage.db.crash(),
  'all sessions ended': async ({ stage }) => {
    await stage.db.terminate();
  },
};

export class Soak {
  private readonly counts: Record<string, number> = {};
  private readonly submitted: string[] = [];
  private readonly busy = new Set<string>();
  private state: number;
  private isOver = false;

  constructor(
    readonly stage: Stage,
    private readonly balancers: readonly Balancer[],
    private readonly options: SoakOptions,
  ) {
    this.state = options.seed >>> 0;
  }

  /** Work and faults for the time that was asked for, then peace, then the verdict. */
  async run(): Promise<Summary> {
    const endAtMs = performance.now() + this.options.minutes * 60_000;
    const working = [this.submitting(), this.canceling(), this.reporting()];
    const faults: Promise<void>[] = [];
    while (performance.now() < endAtMs) {
      await pause(this.random() * 2 * this.options.faultEveryMs);
      faults.push(this.strike());
    }
    this.isOver = true;
    await Promise.all([...working, ...faults]);
    return this.summary();
  }

  /** Stays in a fault for a random while. */
  async last(): Promise<void> {
    await pause(this.random() * this.options.longestFaultMs);
  }

  /** mulberry32: 0 to 1, the same series for the same seed. */
  private random(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  private pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.random() * items.length)];
    if (item === undefined) throw new Error('there is nothing to pick from');
    return item;
  }

  /** One fault at a member that has none; one always stays whole, so that somebody can take over. */
  private async strike(): Promise<void> {
    const whole = this.stage.names.filter((name) => !this.busy.has(name));
    const [what, fault] = this.pick(Object.entries(FAULTS));
    const name = this.pick(this.stage.names);
    if (this.busy.has(name) || whole.length < 2) return;
    this.busy.add(name);
    this.counts[what] = (this.counts[what] ?? 0) + 1;
    await fault(this, this.stage.get(name));
    this.busy.delete(name);
  }

  private async submitting(): Promise<void> {
    const urls = this.balancers.map(({ url }) => url);
    while (!this.isOver) {
      const live = Object.values(await this.stage.live().catch(() => ({}))).reduce((sum, n) => sum + n, 0);
      if (live >= this.options.backlog) await pause(200);
      else {
        const isLong = this.random() < 0.2;
        const argv = this.stage.effects.tool(this.random() * (isLong ? 20 : 2), this.pick(['polite', 'stubborn']));
        this.submitted.push(await this.stage.submit(argv, this.random() < 0.05 ? { timeout: '1s' } : {}, urls));
      }
    }
  }

  private async canceling(): Promise<void> {
    while (!this.isOver) {
      await pause(2_000);
      const id = this.submitted.at(-1 - Math.floor(this.random() * this.options.backlog));
      const { url } = this.pick(this.balancers);
      if (id !== undefined) await this.stage.call(url, 'POST', `/v1/runs/${id}/cancel`).catch(() => undefined);
    }
  }

  private async reporting(): Promise<void> {
    for (let seconds = 1; !this.isOver; seconds += 1) {
      await pause(1_000);
      if (seconds % 30 !== 0) continue;
      const faults = Object.values(this.counts).reduce((sum, n) => sum + n, 0);
      const minutes = (seconds / 60).toFixed(1);
      this.options.onProgress?.(
        `${minutes} of ${this.options.minutes} min: ${this.submitted.length} runs, ${faults} faults`,
      );
    }
  }

  private async summary(): Promise<Summary> {
    const runs = await this.stage.untilEnded(180_000);
    const known = new Set(runs.map(({ id }) => id));
    const ends: Record<string, number> = {};
    for (const { state } of runs) ends[state] = (ends[state] ?? 0) + 1;
    return {
      seed: this.options.seed,
      faults: this.counts,
      runs: runs.length,
      ends,
      ...(await this.stage.effects.judge(runs)),
      forgotten: this.submitted.filter((id) => !known.has(id)),
      longestTakeoverMs: await this.longestTakeover(),
      contradictions: await this.stage.faults(),
    };
  }

  private async longestTakeover(): Promise<number> {
    const [row] = await this.stage.db.query<{ ms: number }>(
      `select coalesce(max(extract(epoch from r.ended_at - (w.lease_until - w.ttl_ms * interval '1 millisecond'))), 0)::float8
              * 1000 as ms
       from runs r join workers w on w.id = r.worker_id and w.state = 'lost'
       where r.end_code = 'worker_lost'`,
    );
    return Math.round(row?.ms ?? 0);
  }
}
