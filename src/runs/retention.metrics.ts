/** What a process counts of its removals; when it last looked, its loop says. */
import { Counter, type Registry } from 'prom-client';
import type { Removed } from './retention.js';

const ROWS = ['runs', 'events', 'output_chunks', 'output_bytes'] as const;
const TABLES = ['run_events', 'run_output'] as const;

export class RetentionMetrics {
  private readonly removed: Counter<'what'>;
  private readonly dropped: Counter<'table'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.removed = new Counter({
      name: 'capstan_retention_removed_total',
      help: 'What this process removed because its time was over: runs, and events, output_chunks and output_bytes of theirs.',
      labelNames: ['what'],
      registers,
    });
    this.dropped = new Counter({
      name: 'capstan_retention_partitions_dropped_total',
      help: 'Days of run_events and run_output that this process dropped whole, by table.',
      labelNames: ['table'],
      registers,
    });
    for (const what of ROWS) this.removed.inc({ what }, 0);
    for (const table of TABLES) this.dropped.inc({ table }, 0);
  }

  countRemoved({ runs, events, outputChunks, outputBytes }: Removed): void {
    this.removed.inc({ what: 'runs' }, runs);
    this.removed.inc({ what: 'events' }, events);
    this.removed.inc({ what: 'output_chunks' }, outputChunks);
    this.removed.inc({ what: 'output_bytes' }, outputBytes);
  }

  countDropped(table: (typeof TABLES)[number]): void {
    this.dropped.inc({ table });
  }
}
