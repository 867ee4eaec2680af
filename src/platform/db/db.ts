/**
 * The way to PostgreSQL for every statement of the application. A change and all it drags along (event, audit entry)
 * is ONE statement, so there is no transaction that a paused client could keep open. Each statement has a connection to
 * itself and is bounded in time on the client's side too, because a half-open connection gives no error: when one
 * doesn't answer, the pool it went through is replaced.
 */
import postgres from 'postgres';
import type { JsonValue } from '../../kernel/json.js';
import type { Logger } from '../log/logger.js';
import { Overloaded, Permits } from './permits.js';

export type Sql = postgres.Sql<{ bigint: number }>;

/** A statement that didn't answer in time. Whether it was carried out is unknown. */
export class StatementTimeout extends Error {
  override readonly name = 'StatementTimeout';
}

export interface PoolOptions {
  readonly url: string;
  /** False behind a transaction-mode pooler: no prepared statements, no session settings. */
  readonly direct: boolean;
  readonly name: string;
  readonly size: number;
  /** The server gives a statement up after this; the client a second later. */
  readonly statementTimeoutMs: number;
  readonly log: Logger;
  /** Called when a connection was lost that nobody closed. */
  readonly onSessionLost?: () => void;
}

/** SQLSTATEs after which the same statement may simply be sent again. */
const TRANSIENT = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '55P03', // lock_not_available (lock_timeout)
  '57014', // query_canceled (statement_timeout, or our own bound)
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '57P05', // idle_session_timeout
  '25006', // read_only_sql_transaction: the server was demoted
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Connection exceptions; the server out of disk, memory or connections; errors of the system under it. */
const TRANSIENT_CLASS = /^(08|53|58)/;

/** True when nothing is wrong with the statement itself: the connection, the server or a lock was in the way. */
export function isTransient(error: unknown): boolean {
  if (error instanceof StatementTimeout || error instanceof Overloaded) return true;
  const code = errorCode(error);
  return code !== undefined && (TRANSIENT.has(code) || TRANSIENT_CLASS.test(code));
}

/** True when the statement can never succeed with this data: what it holds, a constraint, a limit of the server. */
export function isDataFault(error: unknown): boolean {
  return /^(22|23|54)/.test(errorCode(error) ?? '');
}

/** The SQLSTATE or system error code of an error, when it has one. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** True when the statement itself took too long for the server or for us: the same again would take as long. */
export function isTimeout(error: unknown): boolean {
  return error instanceof StatementTimeout || errorCode(error) === '57014';
}

/** Plain records as the one parameter of a `jsonb_to_recordset`; instants go as text. */
export function records(sql: Sql, rows: readonly object[]): postgres.Parameter {
  return sql.json(rows as unknown as JsonValue);
}

/** This many statements may wait for a connection of one pool. */
const MAX_WAITING = 1_000;

/** A small pool for one purpose. Leases and ends of runs never wait behind reads: they have pools of their own. */
export class Pool {
  private sql: Sql;
  private ended = false;
  private readonly permits: Permits;
  private readonly boundMs: number;
  /** Statements sent and not answered yet. */
  inFlight = 0;

  constructor(private readonly options: PoolOptions) {
    this.boundMs = options.statementTimeoutMs + 1_000;
    this.permits = new Permits({ size: options.size, maxWaiting: MAX_WAITING, maxWaitMs: this.boundMs });
    this.sql = this.connect();
  }

  get size(): number {
    return this.options.size;
  }

  /**
   * Sends the one statement that `statement` makes. Rejects with the driver's error, with `StatementTimeout` when no
   * answer came in time (it may or may not have been carried out), or with `Overloaded` when it was not even sent.
   */
  async run<T>(statement: (sql: Sql) => postgres.PendingQuery<T & postgres.MaybeRow[]>): Promise<T> {
    // Without a connection of its own the driver would send it behind another statement, however slow that is.
    if (!this.permits.tryTake()) await this.permits.wait();
    this.inFlight += 1;
    let timer: NodeJS.Timeout | undefined;
    try {
      const sql = this.sql;
      const bound = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          reject(new StatementTimeout(`no answer from the database in ${this.boundMs} ms`));
          this.replace(sql);
        }, this.boundMs);
      });
      return (await Promise.race([statement(sql), bound])) as T;
    } finally {
      clearTimeout(timer);
      this.inFlight -= 1;
      this.permits.give();
    }
  }

  /** Closes the pool; statements in flight get `timeoutSeconds` to end. */
  async close(timeoutSeconds = 1): Promise<void> {
    this.ended = true;
    await this.sql.end({ timeout: timeoutSeconds });
  }

  /** Puts a fresh pool in the place of one whose connection went silent; the old one's statements get a second. */
  private replace(silent: Sql): void {
    if (this.ended || this.sql !== silent) return;
    this.options.log.warn({ code: 'db_pool_replaced', pool: this.options.name }, 'database connection went silent');
    this.sql = this.connect();
    void silent.end({ timeout: 1 }).catch(() => undefined);
  }

  private connect(): Sql {
    const { url, size, direct, name, statementTimeoutMs, log } = this.options;
    return postgres(url, {
      max: size,
      prepare: direct,
      connect_timeout: 5,
      idle_timeout: 0,
      max_lifetime: null,
      keep_alive: 10,
      backoff: (attempt: number) => Math.min(0.05 * 2 ** attempt, 1),
      onnotice: ({ severity, message }) => {
        if (severity === 'WARNING') log.warn({ code: 'db_warning', pool: name }, message);
      },
      onclose: () => {
        if (!this.ended) this.options.onSessionLost?.();
      },
      transform: { column: { from: postgres.toCamel } },
      types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
      connection: {
        application_name: `capstan ${name}`,
        ...(direct ? { statement_timeout: statementTimeoutMs, lock_timeout: 2_000 } : {}),
      },
    });
  }
}
