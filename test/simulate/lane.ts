/**
 * A database for one history after another, with a clock that the scheduler sets, and the real drivers' way to it. One
 * statement is carried out at a time, so that a history can be replayed; except that a transaction may be left open and
 * another statement run into its locks.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import type postgres from 'postgres';
import type { RenewTx } from '../../src/execution/keeper/renew.sql.js';
import type { ByteStatement } from '../../src/platform/db/byte-pool.js';
import { Pool, type Sql } from '../../src/platform/db/db.js';

/** 2026-06-01, in milliseconds: where every history begins. */
export const EPOCH_MS = Date.UTC(2026, 5, 1);

export type Statement = (sql: Sql) => postgres.PendingQuery<postgres.MaybeRow[]>;

/**
 * A sequence is read as it is at that very moment, whatever the reader's snapshot, as a clock is. `db_now` is the same,
 * for no statement of the simulation outlives a change of the clock but one that waits for a lock.
 */
const CLOCK = `
  create sequence simulated_clock minvalue 0;
  select setval('simulated_clock', ${EPOCH_MS});
  create or replace function db_clock() returns timestamptz language sql volatile as
    $$ select 'epoch'::timestamptz + pg_sequence_last_value('simulated_clock'::regclass) * interval '1 millisecond' $$;
  create or replace function db_now() returns timestamptz language sql stable as
    $$ select 'epoch'::timestamptz + pg_sequence_last_value('simulated_clock'::regclass) * interval '1 millisecond' $$;
`;

/** Every statement is planned once, and nothing of the server's own goes on beside it. */
const SETTINGS = ['plan_cache_mode = force_generic_plan', 'jit = off', 'synchronous_commit = off'];

interface Late {
  readonly commit: () => void;
}

export class Lane {
  private readonly main: Pool;
  private readonly second: Pool;
  private session: pg.Client;
  private clockMs = EPOCH_MS;
  private late: Late | undefined;

  private constructor(
    private readonly admin: pg.Client,
    private readonly name: string,
    url: string,
    session: pg.Client,
    /** Watches for statements that wait, and looks at everything. */
    readonly control: pg.Client,
  ) {
    const options = { url, direct: true, size: 1, statementTimeoutMs: 20_000, log: pino({ level: 'silent' }) };
    this.main = new Pool({ ...options, name: 'simulated' });
    this.second = new Pool({ ...options, name: 'late' });
    this.session = session;
  }

  static async open(adminUrl: string, template: string): Promise<Lane> {
    const admin = await connect(adminUrl);
    const name = `sim_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
    await admin.query(`create database ${name} template ${template}`);
    for (const setting of SETTINGS) await admin.query(`alter database ${name} set ${setting}`);
    const url = new URL(adminUrl);
    url.pathname = name;
    const control = await connect(url.href);
    await control.query(CLOCK);
    return new Lane(admin, name, url.href, await connect(url.href), control);
  }

  async close(): Promise<void> {
    await this.commitLate();
    await Promise.all([this.main.close(0), this.second.close(0), this.session.end(), this.control.end()]);
    await this.admin.query(`drop database ${this.name} with (force)`);
    await this.admin.end();
  }

  /** For what is no part of the simulated cluster: making organizations, verifying chains. */
  get pool(): Pool {
    return this.main;
  }

  get isLate(): boolean {
    return this.late !== undefined;
  }

  async setClock(ms: number): Promise<void> {
    if (ms === this.clockMs) return;
    this.clockMs = ms;
    await this.control.query({ name: 'set_clock', text: `select setval('simulated_clock', $1)`, values: [ms] });
  }

  run(statement: Statement): Promise<unknown[]> {
    return this.watched(this.main.run<postgres.MaybeRow[]>(statement));
  }

  runBytes(statement: ByteStatement): Promise<unknown[]> {
    const { name, text, values } = statement;
    return this.watched(this.session.query({ name, text, values: [...values] }).then(({ rows }) => rows as unknown[]));
  }

  /** What a keeper's session gives its statement. */
  readonly renewTx: RenewTx = {
    query: (text, values) =>
      this.watched(
        this.session
          .query<Record<string, unknown>>({ name: 'renew', text, values: [...values] })
          .then(({ rows }) => rows),
      ),
  };

  /** Carries a statement out and leaves its transaction open; `committed` is called once it has been committed. */
  async runLate(statement: Statement, committed: (rows: unknown[]) => void): Promise<void> {
    await this.commitLate();
    await this.second.run((sql) => sql`begin`);
    // The application's own bound is in real time.
    await this.second.run((sql) => sql`set local idle_in_transaction_session_timeout = 0`);
    try {
      const rows = await this.second.run<postgres.MaybeRow[]>(statement);
      this.late = { commit: () => committed(rows) };
    } catch (error) {
      await this.second.run((sql) => sql`rollback`);
      throw error;
    }
  }

  async commitLate(): Promise<void> {
    const { late } = this;
    if (!late) return;
    this.late = undefined;
    const { command } = await this.second.run<postgres.RowList<postgres.Row[]>>((sql) => sql`commit`);
    if (command !== 'COMMIT') throw new Error('the transaction that was left open is gone');
    late.commit();
  }

  /** Whoever waits for a lock waits for the open transaction: it is committed then, and that is the order of the two. */
  private async watched<T>(answer: Promise<T>): Promise<T> {
    if (!this.late) return answer;
    let isAnswered = false;
    const answered = () => {
      isAnswered = true;
    };
    answer.then(answered, answered);
    while (this.late && !isAnswered) {
      const { rows } = await this.control.query({
        name: 'waiting',
        text: `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      });
      if (rows.length > 0) await this.commitLate();
    }
    return answer;
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
