/** What a process sees of its database: how long statements take through each pool, what is in the way, what is in use. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Pools } from '../platform.js';
import { errorCode, isNoRoom, isTimeout } from './db.js';
import { Overloaded } from './permits.js';
import type { StatementWatch } from './statement-watch.js';

const KINDS = ['overloaded', 'timeout', 'no_room', 'lock', 'conflict', 'read_only', 'data', 'connection', 'other'];

export class DatabaseMetrics {
  private readonly seconds: Histogram<'pool'>;
  private readonly errors: Counter<'pool' | 'kind'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.seconds = new Histogram({
      name: 'capstan_db_statement_seconds',
      help: 'From sending a statement to its answer, by pool; what was not carried out is not in here.',
      labelNames: ['pool'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    });
    this.errors = new Counter({
      name: 'capstan_db_errors_total',
      help:
        'Statements without an answer that helps, by pool and kind: overloaded (not sent: too many waited), timeout, ' +
        'no_room (no connection left on the server), lock, conflict, read_only, data, connection or other.',
      labelNames: ['pool', 'kind'],
      registers,
    });
  }

  /** The watch of the pool of this name. */
  of(pool: keyof Pools): StatementWatch {
    this.seconds.zero({ pool });
    for (const kind of KINDS) this.errors.inc({ pool, kind }, 0);
    return {
      answered: (tookMs) => this.seconds.observe({ pool }, tookMs / 1_000),
      failed: (error) => this.errors.inc({ pool, kind: kindOf(error) }),
    };
  }
}

/** One of `KINDS`, never a text of the error. */
function kindOf(error: unknown): string {
  if (error instanceof Overloaded) return 'overloaded';
  if (isNoRoom(error)) return 'no_room';
  if (isTimeout(error)) return 'timeout';
  const code = errorCode(error) ?? '';
  if (code === '55P03') return 'lock';
  if (code === '25006') return 'read_only';
  if (/^40/.test(code)) return 'conflict';
  if (/^(22|23|54)/.test(code)) return 'data';
  return /^(08|57P|E[A-Z_]+$|CONN)/.test(code) ? 'connection' : 'other';
}

/** Gauges of pools that are read when they are scraped. */
export function registerPoolMetrics(registry: Registry, pools: Pools): void {
  const gauge = (name: string, help: string, read: (pool: Pools[keyof Pools]) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['pool'],
      registers: [registry],
      collect() {
        for (const [name, pool] of Object.entries(pools)) this.set({ pool: name }, read(pool));
      },
    });
  gauge('capstan_db_pool_in_flight', 'Statements sent through a pool and not answered yet.', (pool) => pool.inFlight);
  gauge('capstan_db_pool_waiting', 'Statements that wait for a connection of a pool.', (pool) => pool.waiting);
  gauge('capstan_db_pool_size', 'Connections that a pool may open.', (pool) => pool.size);
}
