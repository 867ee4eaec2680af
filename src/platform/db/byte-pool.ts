/**
 * Connections for statements that carry many bytes. The application's driver writes a `bytea` as hexadecimal text, which
 * doubles it twice on its way out and left 90 MiB behind at 20 MB/s; `pg` sends a Buffer as it is. Bounded as Pool is:
 * whatever goes wrong with a connection, it is destroyed, and the same statement may be sent again.
 */
import { Socket } from 'node:net';
import pg from 'pg';
import { errorCode, isNoRoom, StatementTimeout, serverBounds, TRIM_EVERY_MS } from './db.js';
import { Permits } from './permits.js';
import { Room } from './room.js';
import { connectAs } from './session-url.js';
import { type StatementWatch, watched } from './statement-watch.js';

const LONGEST_CONNECT_MS = 5_000;
const MAX_WAITING = 1_000;

/** The connection broke. Whether the statement was carried out is unknown. */
class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  readonly code = 'CONNECTION_CLOSED';
}

export interface BytePoolOptions {
  readonly url: string;
  /** False behind a transaction-mode pooler: no prepared statements, no session settings. */
  readonly direct: boolean;
  readonly name: string;
  readonly size: number;
  /** The server gives a statement up after this; the client a second later. */
  readonly statementTimeoutMs: number;
  /** Called when a connection was lost that nobody closed. */
  readonly onSessionLost?: () => void;
  /** Shared with the other pools of this process. */
  readonly room?: Room;
  /** Told of each statement. */
  readonly watch?: StatementWatch;
}

/** A statement with `$1` … for its values; prepared under its name. */
export interface ByteStatement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (string | number | null | Buffer)[];
}

interface Connection {
  readonly client: pg.Client;
  readonly socket: Socket;
}

export class BytePool {
  private readonly idle: Connection[] = [];
  private readonly permits: Permits;
  private readonly room: Room;
  private readonly boundMs: number;
  private readonly trimmer = setInterval(() => this.trim(), TRIM_EVERY_MS).unref();
  /** The fewest that were idle at a time since the last look. */
  private spare = 0;
  private isClosed = false;
  /** Of which making the connections are: those of an earlier one are not used again. */
  private making = 0;
  /** Statements sent and not answered yet. */
  inFlight = 0;
  /** Statements that the database has carried out. */
  answers = 0;
  /** Connections that ended without being closed here, while nothing was asked over them. */
  losses = 0;

  constructor(private readonly options: BytePoolOptions) {
    this.boundMs = options.statementTimeoutMs + 1_000;
    this.permits = new Permits({ size: options.size, maxWaiting: MAX_WAITING, maxWaitMs: this.boundMs });
    this.room = options.room ?? new Room();
    this.room.onShort(() => void this.closeIdle());
  }

  get size(): number {
    return this.options.size;
  }

  /** Statements that wait for a connection. */
  get waiting(): number {
    return this.permits.waiting;
  }

  /** Its rows. Rejects with the driver's error, `ConnectionLost`, `StatementTimeout`, or `Overloaded` when not sent. */
  async run<T>({ name, text, values }: ByteStatement): Promise<T[]> {
    if (!this.permits.tryTake()) await watched(this.permits.wait(), this.options.watch);
    this.inFlight += 1;
    const sentAtMs = performance.now();
    let restMs = 0;
    try {
      const { making } = this;
      const connection = this.idle.pop() ?? (await this.open());
      this.spare = Math.min(this.spare, this.idle.length);
      const named = this.options.direct ? { name } : {};
      const answer = connection.client.query<T & pg.QueryResultRow>({ ...named, text, values: [...values] });
      const { rows } = await this.bounded(answer, connection.socket, this.boundMs);
      this.answers += 1;
      this.options.watch?.answered(performance.now() - sentAtMs);
      if (this.isClosed || making !== this.making) connection.socket.destroy();
      else this.idle.push(connection);
      if (this.room.isShort && this.permits.waiting === 0) void this.closeIdle();
      return rows;
    } catch (error) {
      this.options.watch?.failed(error);
      if (isNoRoom(error)) restMs = this.room.noteRefused();
      throw error;
    } finally {
      this.inFlight -= 1;
      this.permits.give(restMs);
    }
  }

  /** From now on over new connections; statements in flight end where they are. */
  reconnect(): void {
    this.making += 1;
    void this.closeIdle();
  }

  /** Closes what is idle; a statement in flight ends by itself. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.trimmer);
    await this.closeIdle();
  }

  /** Gives back what a burst has opened: those longest unused. */
  private trim(): void {
    void this.closeIdle(this.spare);
    this.spare = this.idle.length;
  }

  private async closeIdle(count = this.idle.length): Promise<void> {
    const ends = this.idle.splice(0, count).map(({ client, socket }) => this.bounded(client.end(), socket, 1_000));
    await Promise.allSettled(ends);
  }

  private async open(): Promise<Connection> {
    this.room.enter();
    const { url, direct, name, statementTimeoutMs } = this.options;
    return connectAs(url, async (connectionString) => {
      const socket = new Socket();
      const client = new pg.Client({
        connectionString,
        application_name: `capstan ${name}`,
        keepAlive: true,
        keepAliveInitialDelayMillis: 10_000,
        stream: () => socket,
        ...(direct ? serverBounds(statementTimeoutMs) : {}),
      });
      // Without a listener the end of an idle connection would be an uncaught error.
      client.on('error', () => this.drop(socket));
      client.on('end', () => this.drop(socket));
      await this.bounded(client.connect(), socket, Math.min(LONGEST_CONNECT_MS, this.boundMs));
      return { client, socket };
    });
  }

  private drop(socket: Socket): void {
    socket.destroy();
    const index = this.idle.findIndex((each) => each.socket === socket);
    if (index < 0) return;
    this.idle.splice(index, 1);
    this.losses += 1;
    this.options.onSessionLost?.();
  }

  private async bounded<T>(answer: Promise<T>, socket: Socket, limitMs: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const bound = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new StatementTimeout(`no answer from the database in ${limitMs} ms`)), limitMs);
    });
    // It may fail long after nobody waits for it any more.
    answer.catch(() => undefined);
    try {
      return await Promise.race([answer, bound]);
    } catch (error) {
      socket.destroy();
      // The driver says in words alone that a connection ended.
      if (error instanceof StatementTimeout || errorCode(error) !== undefined) throw error;
      throw new ConnectionLost(error instanceof Error ? error.message : String(error), { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}
