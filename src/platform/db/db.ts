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
import { Room } from './room.js';
import { type StatementWatch, watched } from './statement-watch.js';

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
  /** The server refuses whatever would change something. Only where it is direct. */
  readonly isReadOnly?: boolean;
  readonly log: Logger;
  /** Called when a connection was lost that nobody closed. */
  readonly onSessionLost?: () => void;
  /** Shared with the other pools of this process. */
  readonly room?: Room;
  /** Told of each statement. */
  readonly watch?: StatementWatch;
}

/** SQLSTATEs after which the same statement may simply be sent again. */
const TRANSIENT = new Set([
  '25006', // read_only_sql_transaction: the server was demoted
  '25P03', // idle_in_transaction_session_timeout
  '40001', // serialization_failure
  '40003', // statement_completion_unknown
  '40P01', // deadlock_detected
  '55P03', // lock_not_available (lock_timeout)
  '57014', // query_canceled (statement_timeout, or our own bound)
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '57P04', // database_dropped, as it is when a backup is restored
  '57P05', // idle_session_timeout
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ESHUTDOWN',
  'ETIMEDOUT',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
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

/** True when a change has an audit chain that can't be appended to, which only a person can put right (`audit_append`). */
export function isUnrecordable(error: unknown): boolean {
  return errorCode(error) === 'CA001';
}

/** True when a connection was refused because the server, the database or the role may have no more of them. */
export function isNoRoom(error: unknown): boolean {
  return errorCode(error) === '53300';
}

/** The SQLSTATE or system error code of an error, when it has one. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** True when this server takes no writes: it was demoted, or somebody made it read-only. */
function isReadOnly(error: unknown): boolean {
  return errorCode(error) === '25006';
}

/** True when the statement itself took too long for the server or for us: the same again would take as long. */
export function isTimeout(error: unknown): boolean {
  return error instanceof StatementTimeout || errorCode(error) === '57014';
}

/** Plain records as the one parameter of a `jsonb_to_recordset`; instants go as text. */
export function records(sql: Sql, rows: readonly (object | null)[]): postgres.Parameter {
  return sql.json(rows as unknown as JsonValue);
}

/**
 * Values in which no comma stands (ids, numbers, words of ours) as the one parameter of a `string_to_array(…, ',')`: a
 * quarter of the bytes of records, and of what making and reading them costs.
 */
export function listed(values: readonly (string | number)[]): string {
  return values.join(',');
}

/** The pool was closed: the statement was not sent. */
class PoolClosed extends Error {
  override readonly name = 'PoolClosed';
  readonly code = 'CONNECTION_ENDED';
}

/** Bounds that the server keeps by itself, also when this process can't say a word any more. Milliseconds. */
export function serverBounds(statementTimeoutMs: number): {
  readonly statement_timeout: number;
  readonly lock_timeout: number;
  readonly idle_in_transaction_session_timeout: number;
} {
  return { statement_timeout: statementTimeoutMs, lock_timeout: 2_000, idle_in_transaction_session_timeout: 3_000 };
}

/**
 * The server's patience with a client that takes no more of an answer. Sending it is part of the statement, whose locks
 * are held meanwhile, and no bound of statements ends that: a replica that stands still would hold what it claimed.
 */
const SEND_TIMEOUT_MS = 5_000;
/** This many statements may wait for a connection of one pool. */
const MAX_WAITING = 1_000;
/** Connections that were not needed for so long are closed: longer than the loops of an idle process rest, which use one. */
export const TRIM_EVERY_MS = 60_000;

/** A small pool for one purpose. Leases and ends of runs never wait behind reads: they have pools of their own. */
export class Pool {
  /** Made for the first statement: only then is it certain where the database is. */
  private sql: Sql | undefined;
  private ended = false;
  private readonly permits: Permits;
  readonly room: Room;
  private readonly boundMs: number;
  private readonly trimmer = setInterval(() => this.trim(), TRIM_EVERY_MS).unref();
  /** The most statements at a time since `sql` was made: so many connections it has opened. */
  private opened = 0;
  /** The most at a time since the last look. */
  private needed = 0;
  /** Connections of `sql` that were refused, not lost, and whose end the driver has yet to tell. */
  private refused = 0;
  /** Statements sent and not answered yet. */
  inFlight = 0;
  /** Statements that the database has carried out. */
  answers = 0;
  /** Connections that ended without being closed here. */
  losses = 0;

  constructor(private readonly options: PoolOptions) {
    this.boundMs = options.statementTimeoutMs + 1_000;
    this.permits = new Permits({ size: options.size, maxWaiting: MAX_WAITING, maxWaitMs: this.boundMs });
    this.room = options.room ?? new Room();
    this.room.onShort(() => this.leave(this.boundMs));
  }

  get size(): number {
    return this.options.size;
  }

  /** Statements that wait for a connection. */
  get waiting(): number {
    return this.permits.waiting;
  }

  /**
   * Sends the one statement that `statement` makes. Rejects with the driver's error, with `StatementTimeout` when no
   * answer came in time (it may or may not have been carried out), or with `Overloaded` when it was not even sent.
   */
  async run<T>(statement: (sql: Sql) => postgres.PendingQuery<T & postgres.MaybeRow[]>): Promise<T> {
    // Without a connection of its own the driver would send it behind another statement, however slow that is.
    if (!this.permits.tryTake()) await watched(this.permits.wait(), this.options.watch);
    this.inFlight += 1;
    const sentAtMs = performance.now();
    let timer: NodeJS.Timeout | undefined;
    let restMs = 0;
    try {
      const sql = this.connected();
      const bound = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          reject(new StatementTimeout(`no answer from the database in ${this.boundMs} ms`));
          this.replaceSilent(sql);
        }, this.boundMs);
      });
      const answer = await this.refusalNoted(sql, Promise.race([statement(sql), bound]));
      this.answers += 1;
      this.options.watch?.answered(performance.now() - sentAtMs);
      return answer as T;
    } catch (error) {
      this.options.watch?.failed(error);
      if (isNoRoom(error)) restMs = this.room.noteRefused();
      throw error;
    } finally {
      clearTimeout(timer);
      this.inFlight -= 1;
      if (this.room.isShort && this.permits.waiting === 0) this.leave(this.boundMs);
      this.permits.give(restMs);
    }
  }

  /** From now on over new connections; statements in flight end where they are. */
  reconnect(): void {
    if (this.leave(this.boundMs)) this.options.onSessionLost?.();
  }

  /** Closes the pool; statements in flight get `timeoutSeconds` to end. */
  async close(timeoutSeconds = 1): Promise<void> {
    this.ended = true;
    clearInterval(this.trimmer);
    await this.sql?.end({ timeout: timeoutSeconds });
  }

  private async refusalNoted<T>(sql: Sql, answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (isNoRoom(error) && this.sql === sql) this.refused += 1;
      // By the same address another server may take writes already, or soon.
      if (isReadOnly(error) && this.sql === sql) this.reconnect();
      throw error;
    }
  }

  /** Leaves a pool whose connection went silent; its other statements get a second. */
  private replaceSilent(silent: Sql): void {
    if (this.ended || this.sql !== silent) return;
    this.options.log.warn({ code: 'db_pool_replaced', pool: this.options.name }, 'database connection went silent');
    this.leave(1_000);
    this.options.onSessionLost?.();
  }

  /** Gives back what a burst has opened. The driver uses its connections in turn, so none of them ever looks idle. */
  private trim(): void {
    if (this.needed < this.opened) this.leave(this.boundMs);
    this.needed = this.inFlight;
  }

  /**
   * The next statement makes new connections; idle ones are closed, and those in flight get so long. False: there were
   * none.
   */
  private leave(endWithinMs: number): boolean {
    const { sql } = this;
    if (!sql || this.ended) return false;
    this.sql = undefined;
    this.opened = 0;
    this.refused = 0;
    void sql.end({ timeout: endWithinMs / 1_000 }).catch(() => undefined);
    return true;
  }

  private connected(): Sql {
    if (this.ended) throw new PoolClosed(`the pool ${this.options.name} is closed`);
    if (this.inFlight > this.opened) this.room.enter();
    this.sql ??= this.connect();
    this.opened = Math.max(this.opened, this.inFlight);
    this.needed = Math.max(this.needed, this.inFlight);
    return this.sql;
  }

  private connect(): Sql {
    const { url, size, direct, name, statementTimeoutMs, isReadOnly, log } = this.options;
    const made: Sql = postgres(url, {
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
        if (this.ended || this.sql !== made) return;
        if (this.refused > 0) {
          this.refused -= 1;
          return;
        }
        this.losses += 1;
        this.options.onSessionLost?.();
      },
      transform: { column: { from: postgres.toCamel } },
      types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
      connection: {
        application_name: `capstan ${name}`,
        ...(direct ? { ...serverBounds(statementTimeoutMs), tcp_user_timeout: SEND_TIMEOUT_MS } : {}),
        ...(isReadOnly ? { default_transaction_read_only: true } : {}),
      },
    });
    return made;
  }
}
