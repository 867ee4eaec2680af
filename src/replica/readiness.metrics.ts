/** Whether the database can be used, as `/readyz` says it: known without asking, also when it is away. */
import { Gauge, type Registry } from 'prom-client';
import type { Checks } from './readiness.rules.js';

export function registerReadinessMetrics(registry: Registry, found: () => Pick<Checks, 'database'>): void {
  new Gauge({
    name: 'capstan_db_up',
    help: '1 while the database answers this process and takes writes, 0 otherwise.',
    registers: [registry],
    collect() {
      this.set(found().database === 'ok' ? 1 : 0);
    },
  });
}
