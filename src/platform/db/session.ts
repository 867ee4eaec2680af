/**
 * A session with the database outside every pool, for one statement at a time. Invariant: nothing here waits for ever. A
 * peer that vanished without a word (half-open TCP) answers nothing and reports no error, so each wait is bounded on this
 * side and ends with the socket destroyed.
 */
import { Socket } from 'node:net';
import pg from 'pg';
import { connectAs } from './session-url.js';

export interface SessionSettings {
  readonly databaseUrl: string;
  /** What it is for, as the server shows it. */
  readonly name: string;
  /** Bound of opening, and of each statement. */
  readonly limitMs: number;
  /** Called once when the session breaks while no statement is waiting for it. */
  readonly onLost: (error: Error) => void;
  /** Called with the payload of each notification on a channel that it listens on. */
  readonly onNotification?: (payload: string) => void;
}

export class Session {
  private isDead = false;
  private isBusy = false;

  private constructor(
    private readonly client: pg.Client,
    private readonly socket: Socket,
    private readonly settings: SessionSettings,
  ) {}

  static async open(settings: SessionSettings): Promise<Session> {
    const giveUpAtMs = performance.now() + settings.limitMs;
    return connectAs(settings.databaseUrl, (url) => Session.connect(settings, url, giveUpAtMs));
  }

  private static async connect(settings: SessionSettings, url: string, giveUpAtMs: number): Promise<Session> {
    const socket = new Socket();
    const client = new pg.Client({
      connectionString: url,
      application_name: `capstan ${settings.name}`,
      keepAlive: true,
      keepAliveInitialDelayMillis: settings.limitMs,
      stream: () => socket,
    });
    const session = new Session(client, socket, settings);
    // Without a listener an idle session's end would be an uncaught error.
    client.on('error', (error) => session.lose(error));
    client.on('end', () => session.lose(new Error('the server closed the connection')));
    client.on('notification', ({ payload }) => settings.onNotification?.(payload ?? ''));
    const limitMs = Math.max(1, giveUpAtMs - performance.now());
    await session.bounded(connectAndSet(client, settings.limitMs), limitMs, 'connect');
    return session;
  }

  async query(text: string, values: readonly unknown[] = []): Promise<readonly Record<string, unknown>[]> {
    const answer = this.client.query<Record<string, unknown>>(text, [...values]);
    return (await this.bounded(answer, this.settings.limitMs, 'statement')).rows;
  }

  get isOpen(): boolean {
    return !this.isDead;
  }

  /** Says farewell to the server. */
  async close(): Promise<void> {
    if (this.isDead) return;
    this.isDead = true;
    await this.bounded(this.client.end(), this.settings.limitMs, 'close').catch(() => undefined);
  }

  private destroy(): void {
    this.isDead = true;
    this.socket.destroy();
  }

  private lose(error: Error): void {
    if (this.isDead) return;
    this.destroy();
    // Whoever waits for an answer gets the error itself.
    if (!this.isBusy) this.settings.onLost(error);
  }

  private async bounded<T>(work: Promise<T>, limitMs: number, what: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const expiry = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${what}: no answer within ${Math.round(limitMs)} ms`)), limitMs);
    });
    // It may fail long after nobody waits for it any more.
    work.catch(() => undefined);
    this.isBusy = true;
    try {
      return await Promise.race([work, expiry]);
    } catch (error) {
      this.destroy();
      throw error;
    } finally {
      this.isBusy = false;
      clearTimeout(timer);
    }
  }
}

async function connectAndSet(client: pg.Client, limitMs: number): Promise<void> {
  await client.connect();
  // By `set`, for a pooler refuses unknown start-up parameters. What was given up here mustn't wait for a lock in the
  // server and be executed long after.
  await client.query(`set statement_timeout = ${Math.ceil(limitMs)}`);
}
