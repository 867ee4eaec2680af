/** A keeper on a real database and a real pipe, and a witness of every renewal. */
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { KeeperClient, KeeperOptions } from '../../../src/execution/keeper/keeper.client.js';
import type { KeeperEvent } from '../../../src/execution/keeper/keeper.js';
import { makeFifos } from '../../../src/execution/supervisor/fifo.js';
import {
  decodeExtension,
  type Extension,
  encodeExtension,
  KEEPER_FRAME_BYTES,
} from '../../../src/execution/supervisor/keeper-frame.js';
import { newId } from '../../../src/kernel/ids.js';
import { compiledSource } from '../../compiled.js';

export type StartKeeper = (options: KeeperOptions) => KeeperClient;

/** Renewals that a test needn't wait for, and limits that a busy machine keeps. */
export const NORMAL = {
  ttlMs: 15_000,
  renewMs: 250,
  statementLimitMs: 5_000,
  stallLimitMs: 70_000,
  toolDeadlineMs: 3_000,
  graceMs: 1_000,
};

/** `startKeeper` as it is built, for a thread's entry must be JavaScript. */
export async function compiledKeeper(): Promise<StartKeeper> {
  const entry = join(await compiledSource(), 'execution/keeper/keeper.client.js');
  const { startKeeper } = (await import(entry)) as { startKeeper: StartKeeper };
  return startKeeper;
}

/** Resolves with the first value of `look` that isn't undefined or false; the error says what was waited for. */
export async function until<T>(what: string, look: () => T | Promise<T>, limitMs = 10_000): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + limitMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== null && seen !== false) return seen;
    if (performance.now() > giveUpAt) throw new Error(`waited ${limitMs} ms in vain: ${what}`);
    await delay(5);
  }
}

/** The database's side: worker rows, and a witness that notes each renewal when it happens. */
export class Workers {
  private constructor(readonly sql: pg.Client) {}

  static async open(sql: pg.Client): Promise<Workers> {
    await sql.query(`
      create table witness (id uuid, lease_until timestamptz, seen_at timestamptz);
      create function witness_renewal() returns trigger language plpgsql as $$
      begin insert into witness values (new.id, new.lease_until, clock_timestamp()); return null; end $$;
      create trigger witness_renewal after update of lease_until on workers
        for each row execute function witness_renewal();`);
    return new Workers(sql);
  }

  /** Its lease is over in `leaseMs`, or was when negative; the row appears after `delayMs`. */
  async insert(options: { id?: string; state?: string; leaseMs?: number; delayMs?: number } = {}): Promise<string> {
    const { id = newId(), state = 'live', leaseMs = 15_000, delayMs = 0 } = options;
    await this.sql.query(
      `insert into workers (id, name, kind, slots, queues, version, ttl_ms, state, lease_until, ended_at)
       select $1, 'w', 'replica', 4, '{default}', '0', 30000, $2, clock_timestamp() + $3::int * interval '1 ms',
              case when $2 in ('stopped', 'lost') then now() end
       from pg_sleep($4)`,
      [id, state, leaseMs, delayMs / 1_000],
    );
    return id;
  }

  async delete(id: string): Promise<void> {
    await this.sql.query('delete from workers where id = $1', [id]);
  }

  async leaseMs(id: string): Promise<number> {
    const { rows } = await this.sql.query(
      `select (extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as ms from workers where id = $1`,
      [id],
    );
    return rows[0].ms;
  }

  async setState(id: string, state: string): Promise<void> {
    await this.sql.query(
      `update workers set state = $2, ended_at = case when $2 in ('stopped', 'lost') then now() end where id = $1`,
      [id, state],
    );
  }

  async renewalsOf(id: string): Promise<number> {
    const { rows } = await this.sql.query('select count(*)::int as n from witness where id = $1', [id]);
    return rows[0].n;
  }

  /** Whether a keeper's statement waits for a row that somebody holds. */
  async isWaitingForLock(): Promise<boolean> {
    const { rowCount } = await this.sql.query(
      `select 1 from pg_stat_activity
       where datname = current_database() and application_name = 'capstan keeper' and wait_event_type = 'Lock'`,
    );
    return rowCount === 1;
  }

  async sinceRenewalMs(id: string): Promise<number> {
    const { rows } = await this.sql.query(
      `select (extract(epoch from clock_timestamp() - max(seen_at)) * 1000)::float8 as ms from witness where id = $1`,
      [id],
    );
    return rows[0].ms;
  }

  /** The longest time in ms without a renewal of this life, from its first one until now. */
  async longestGapMs(id: string): Promise<number> {
    const { rows } = await this.sql.query(
      `with seen as (select seen_at from witness where id = $1 union all select clock_timestamp()),
            gaps as (select seen_at - lag(seen_at) over (order by seen_at) as gap from seen)
       select (extract(epoch from max(gap)) * 1000)::float8 as ms from gaps`,
      [id],
    );
    return rows[0].ms;
  }
}

/** In frames of no life. */
const FILLING = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** A keeper's pipe as a supervisor has it, with both its ends in the test's hands. */
export class KeeperPipe {
  private readonly read: Extension[] = [];
  private readonly open: Set<number>;

  private constructor(
    private readonly readFd: number,
    /** The writing end, non-blocking. */
    readonly fd: number,
  ) {
    this.open = new Set([readFd, fd]);
  }

  static async make(): Promise<KeeperPipe> {
    const folder = mkdtempSync(join(tmpdir(), 'keeper-'));
    const path = join(folder, 'pipe');
    await makeFifos([path]);
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const pipe = new KeeperPipe(readFd, openSync(path, constants.O_WRONLY | constants.O_NONBLOCK));
    rmSync(folder, { recursive: true });
    return pipe;
  }

  /** All that came so far, in order. */
  get frames(): readonly Extension[] {
    const buffer = Buffer.alloc(KEEPER_FRAME_BYTES);
    while (this.open.has(this.readFd) && unlessAgain(() => readSync(this.readFd, buffer)) === KEEPER_FRAME_BYTES) {
      const frame = decodeExtension(buffer, 0);
      if (frame.incarnation !== FILLING) this.read.push(frame);
    }
    return this.read;
  }

  /** Until one more frame would not fit. */
  fill(): void {
    const frame = encodeExtension({ incarnation: FILLING, seq: 0, sentAtNs: 0n });
    while (unlessAgain(() => writeSync(this.fd, frame)) !== undefined);
  }

  closeReadingEnd(): void {
    this.closeOnce(this.readFd);
  }

  closeWritingEnd(): void {
    this.closeOnce(this.fd);
  }

  close(): void {
    this.closeReadingEnd();
    this.closeWritingEnd();
  }

  private closeOnce(fd: number): void {
    if (this.open.delete(fd)) closeSync(fd);
  }
}

function unlessAgain(act: () => number): number | undefined {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return undefined;
    throw error;
  }
}

/** What a keeper logged and reported, in order. */
export class Recorder {
  readonly events: KeeperEvent[] = [];
  readonly codes: unknown[] = [];
  readonly log: KeeperOptions['log'] = {
    info: (fields) => this.codes.push(fields.code),
    warn: (fields) => this.codes.push(fields.code),
    error: (fields) => this.codes.push(fields.code),
  };

  watch(keeper: KeeperClient): void {
    keeper.subscribe((event) => this.events.push(event));
  }

  of<T extends KeeperEvent['type']>(type: T): Extract<KeeperEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<KeeperEvent, { type: T }> => event.type === type);
  }
}
