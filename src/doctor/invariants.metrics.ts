/** What this process knows of broken laws, read when it is scraped. No object is ever a label. */
import { Gauge, type Registry } from 'prom-client';
import type { InvariantsLoop } from './invariants.loop.js';
import { LAW_NAMES } from './laws.js';

/** Registers a line for each law, which is there from the start and 0 as long as the law holds. */
export function registerInvariantMetrics(registry: Registry, loop: Pick<InvariantsLoop, 'counts'>): void {
  new Gauge({
    name: 'capstan_invariant_violations',
    help: 'Objects that break a law of lifecycle and audit, by law, as far as this process has looked; 0 while it holds.',
    labelNames: ['law'],
    registers: [registry],
    collect() {
      const counts = loop.counts();
      for (const law of LAW_NAMES) this.set({ law }, counts.get(law) ?? 0);
    },
  });
}
