/** What a process counts of outside timestamps. No chain is ever a label. */
import { Counter, Gauge, type Registry } from 'prom-client';

export class AnchorMetrics {
  private readonly anchors: Counter<'result'>;
  private storedAtMs: number | undefined;

  constructor(registry: Registry) {
    const registers = [registry];
    this.anchors = new Counter({
      name: 'capstan_audit_anchors_total',
      help: 'Timestamps that this process asked an outside authority for, by result: stored or failed.',
      labelNames: ['result'],
      registers,
    });
    const storedAtMs = () => this.storedAtMs;
    new Gauge({
      name: 'capstan_audit_anchor_age_seconds',
      help: 'Seconds since this process last stored a timestamp of any chain; the youngest of all replicas counts.',
      registers,
      collect() {
        const atMs = storedAtMs();
        if (atMs === undefined) this.remove();
        else this.set((performance.now() - atMs) / 1_000);
      },
    });
  }

  count(result: 'stored' | 'failed'): void {
    this.anchors.inc({ result });
    if (result === 'stored') this.storedAtMs = performance.now();
  }
}
