/**
 * A fleet as a user has it: real `capstan serve` and `capstan worker` processes on one real database, each with a way
 * to it of its own that a test can cut. What became of the runs is read from the database, past every replica.
 */
import { encodeId } from '../../src/kernel/ids.js';
import { violationsAt } from '../doctor/laws.fixture.js';
import { type ServerProcess, startServer, startWorker, supervisorOf, until } from '../server.js';
import type { TcpProxy } from '../tcp-proxy.js';
import { ChaosDatabase } from './database.fixture.js';
import { Effects, type EndedRun } from './effects.fixture.js';
import { freePort } from './port.js';

export const TOKEN = 'a-token-of-the-operator-0123456789';

/** One process of the fleet. It keeps its name and its port when it is started again. */
export interface Member {
  readonly name: string;
  readonly port: number;
  readonly url: string;
  /** Its own way to the database. */
  readonly proxy: TcpProxy;
  readonly server: ServerProcess;
  readonly pid: number;
  supervisor(): Promise<number>;
}

export interface HowToStart {
  /** `worker` executes only. */
  readonly kind?: 'replica' | 'worker';
  /** Starts the process through another program, e.g. `['faketime', '-f', '+10m']`. */
  readonly prefix?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export class Stage {
  private readonly members = new Map<string, Member>();
  private sent = 0;

  private constructor(
    readonly db: ChaosDatabase,
    readonly effects: Effects,
    private readonly env: Readonly<Record<string, string>>,
  ) {}

  /** A database, and replicas of these names on it; `env` is for all of them. */
  static async open(
    names: readonly string[],
    options: { readonly env?: Readonly<Record<string, string>>; readonly flags?: readonly string[] } = {},
  ): Promise<Stage> {
    const db = await ChaosDatabase.start(options.flags);
    const stage = new Stage(db, await Effects.in(db.scratch), options.env ?? {});
    try {
      await Promise.all(names.map((name) => stage.add(name)));
      return stage;
    } catch (error) {
      await stage.close();
      throw error;
    }
  }

  get names(): string[] {
    return [...this.members.keys()];
  }

  get(name: string): Member {
    const member = this.members.get(name);
    if (!member) throw new Error(`there is no member ${name}`);
    return member;
  }

  /** Starts a process; one that was killed or stopped starts anew under its old name, on its old port. */
  async add(name: string, { kind = 'replica', prefix = [], env = {} }: HowToStart = {}): Promise<Member> {
    const known = this.members.get(name);
    const proxy = known?.proxy ?? (await this.db.proxy());
    const port = known?.port ?? (await freePort());
    const start = kind === 'worker' ? startWorker : startServer;
    const server = await start(
      {
        DATABASE_URL: proxy.through,
        CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
        CAPSTAN_NAME: name,
        CAPSTAN_PORT: String(port),
        ...this.env,
        ...env,
      },
      prefix,
    );
    const pid = pidOf(server.child.pid);
    const member = { name, port, url: server.url, proxy, server, pid, supervisor: () => supervisorOf(pid) };
    this.members.set(name, member);
    return member;
  }

  /** Kills one member at once and waits until the system has taken it away. */
  async kill(name: string): Promise<void> {
    const { server } = this.get(name);
    server.child.kill('SIGKILL');
    await server.finished;
  }

  /** Stops one member in order. Resolves with its exit code. */
  async stop(name: string): Promise<number | null> {
    const { server } = this.get(name);
    server.child.kill('SIGTERM');
    return (await server.finished).code;
  }

  /** One request to a member, or to whatever answers at `url`. Rejects when no answer comes. */
  async call(at: Member | string, method: string, path: string, body?: unknown, key?: string): Promise<CallAnswer> {
    const base = typeof at === 'string' ? at : at.url;
    const answer = await fetch(base + path, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) };
  }

  /**
   * Submits as a client does that wants its run: the same key again, at the next place of `at`, until it is taken.
   * Resolves with the run's id.
   */
  async submit(
    argv: readonly string[],
    extra: object = {},
    at: readonly (Member | string)[] = this.all(),
  ): Promise<string> {
    this.sent += 1;
    const key = `${process.pid}-${this.sent}`;
    for (let attempt = 0; ; attempt += 1) {
      const place = at[(this.sent + attempt) % at.length];
      if (place === undefined) throw new Error('there is nobody to submit to');
      const body = { kind: 'command', spec: { argv }, ...extra };
      const answer = await this.call(place, 'POST', '/v1/runs', body, key).catch(() => undefined);
      if (answer && answer.status < 300) return (answer.body as { id: string }).id;
      if (answer && answer.status !== 503 && answer.status !== 502 && answer.status !== 504) {
        throw new Error(`a submit was refused: ${answer.status} ${JSON.stringify(answer.body)}`);
      }
      if (attempt > 200) throw new Error(`a submit was never taken: ${JSON.stringify(answer)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** All that a run wrote, as the first member reads it. */
  async outputOf(id: string): Promise<string> {
    const answer = await fetch(`${this.all()[0]?.url}/v1/runs/${id}/output`, {
      headers: { authorization: `Bearer ${TOKEN}`, accept: 'text/plain' },
    });
    return answer.text();
  }

  all(): Member[] {
    return [...this.members.values()];
  }

  /** Live runs by state, e.g. `{ running: 10 }`. */
  async live(): Promise<Record<string, number>> {
    const rows = await this.db.query<{ state: string; n: number }>(
      'select state, count(*)::integer as n from live_runs group by state',
    );
    return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
  }

  /** Waits until so many runs are running. */
  async untilRunning(count: number, withinMs = 30_000): Promise<void> {
    await until(`${count} runs are running`, async () => ((await this.live()).running ?? 0) >= count, withinMs);
  }

  /** Waits until every run has ended, and returns how. */
  async untilEnded(withinMs: number): Promise<EndedRun[]> {
    await until('every run has ended', async () => Object.keys(await this.live()).length === 0, withinMs).catch(
      async (error: Error) => {
        throw new Error(`${error.message}; live: ${JSON.stringify(await this.live())}`);
      },
    );
    return this.ended();
  }

  async ended(): Promise<EndedRun[]> {
    const rows = await this.db.query<Omit<EndedRun, 'id'> & { id: string }>(
      `select id, state, end_code as code, fence, (extract(epoch from ended_at) * 1000)::float8 as "endedAtMs"
       from runs where ended_at is not null order by id`,
    );
    return rows.map((row) => ({ ...row, id: encodeId('run', row.id) }));
  }

  /**
   * One end per run, none of which changed, and every law holds: what the store itself and the audit chain say. Empty
   * when all is well.
   */
  async faults(): Promise<string[]> {
    const survivor = this.all().find(
      ({ server }) => server.child.exitCode === null && server.child.signalCode === null,
    );
    if (!survivor) throw new Error('nobody is left to verify the chain');
    const { body } = await this.call(survivor, 'GET', '/v1/audit/verify');
    const doubled = await this.db.query<{ run: string }>(
      `select run_id::text as run from audit_entries where action = 'run.ended' group by run_id having count(*) > 1`,
    );
    const [{ ends = 0, runs = 0 } = {}] = await this.db.query<{ ends: number; runs: number }>(
      `select (select count(*)::integer from audit_entries where action = 'run.ended') as ends,
              (select count(*)::integer from runs where ended_at is not null) as runs`,
    );
    return [
      ...((body as { ok?: boolean }).ok === true ? [] : [`the chain is broken: ${JSON.stringify(body)}`]),
      ...doubled.map(({ run }) => `${run} ended twice`),
      ...(ends === runs ? [] : [`${runs} runs ended, ${ends} ends are recorded`]),
      ...(await violationsAt(this.db.directUrl)).map(({ law, object, detail }) => `${object} breaks ${law}: ${detail}`),
    ];
  }

  async close(): Promise<void> {
    await Promise.all(
      this.all().map(async ({ server }) => {
        // What is stopped can't heed anything but this.
        server.child.kill('SIGCONT');
        server.child.kill('SIGKILL');
        await server.finished;
      }),
    );
    await this.db.close();
  }
}

export interface CallAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

function pidOf(pid: number | undefined): number {
  if (pid === undefined) throw new Error('the process was never started');
  return pid;
}
