/** The metrics as the README shows them: every family that a server or a worker may have, as it is declared. */
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AnchorMetrics } from '../../src/audit/anchor.metrics.js';
import { registerInvariantMetrics } from '../../src/doctor/invariants.metrics.js';
import { DatabaseMetrics } from '../../src/platform/db/db.metrics.js';
import { WakeMetrics } from '../../src/platform/db/wake.metrics.js';
import { LabelNames } from '../../src/platform/metrics.js';
import { Platform } from '../../src/platform/platform.js';
import { LoopMetrics } from '../../src/replica/loop.metrics.js';
import { registerReplicaMetrics } from '../../src/replica/replica.metrics.js';

interface Declared {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

/** A Markdown table, one row a family, by name; Node's own are left out. `app` has been made and answers nobody. */
export function metricsTable(app: NestFastifyApplication): string {
  const platform = app.get(Platform);
  const { metrics } = platform;
  new DatabaseMetrics(metrics);
  new WakeMetrics(metrics);
  new LoopMetrics(metrics);
  new AnchorMetrics(metrics);
  registerInvariantMetrics(metrics, { counts: () => new Map() });
  registerReplicaMetrics(platform, { queues: new LabelNames(1), keeper: () => undefined, running: () => 0 });
  const all: readonly object[] = metrics.getMetricsAsArray();
  const ours = all.filter(isDeclared).filter(({ name }) => name.startsWith('capstan_'));
  ours.sort((a, b) => (a.name < b.name ? -1 : 1));
  return ['| Metric | Kind | What it tells |', '|---|---|---|', ...ours.map(rowOf)].join('\n');
}

function rowOf({ name, help, type, labelNames }: Declared): string {
  const labels = labelNames.length > 0 ? `{${labelNames.join(',')}}` : '';
  return `| \`${name}${labels}\` | ${type} | ${help} |`;
}

function isDeclared(metric: object): metric is Declared {
  return ['name', 'help', 'type', 'labelNames'].every((member) => member in metric);
}
