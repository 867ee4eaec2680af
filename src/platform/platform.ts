/** What every part of a process stands on: made once at start, handed down, closed last. */
import type { Registry } from 'prom-client';
import type { Bell } from './bell.js';
import type { Config } from './config/config.js';
import type { BytePool } from './db/byte-pool.js';
import type { Pool } from './db/db.js';
import type { Logger } from './log/logger.js';
import type { Timing } from './time.js';

export class Platform {
  constructor(
    readonly config: Config,
    readonly log: Logger,
    readonly metrics: Registry,
    readonly timing: Timing,
    readonly pools: Pools,
    readonly bells: Bells,
  ) {}
}

/** What this process has just made, or heard of from another replica, for whoever waits for it here. */
export interface Bells {
  /** Something may have become claimable. */
  readonly claimable: Bell;
  /** A holder was asked to stop a run. */
  readonly canceled: Bell;
  /** The ids of runs whose end was just written here. */
  readonly ended: Bell<readonly string[]>;
}

export interface Pools {
  /** Claims, starts, ends of runs, the janitor: never behind anything a caller asks for. */
  readonly work: Pool;
  /** Submits and cancels. */
  readonly submit: Pool;
  /** Output of tools on its way into the store. */
  readonly output: BytePool;
  /** Who asks: never behind what others ask for. */
  readonly access: Pool;
  /** Whatever is asked for over HTTP. */
  readonly read: Pool;
  /** Looks whether the database can be used: one connection that waits behind nothing. */
  readonly probe: BytePool;
}
