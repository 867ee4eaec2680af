/** What a process knows of chains, read when it is scraped. No chain is ever a label. */
import { Gauge, type Registry } from 'prom-client';
import type { ChainKnowledge } from './chain-knowledge.js';

export function registerChainMetrics(registry: Registry, knowledge: ChainKnowledge): void {
  const registers = [registry];
  new Gauge({
    name: 'capstan_audit_verified_seq',
    help: 'Audit entries that this process has verified, from the first of each chain on: the sum over all chains.',
    registers,
    collect() {
      this.set(knowledge.verifiedSeq);
    },
  });
  new Gauge({
    name: 'capstan_audit_head_seq',
    help: 'Audit entries that this process last saw, verified or not: the sum of the heads of all chains.',
    registers,
    collect() {
      this.set(knowledge.headSeq);
    },
  });
  new Gauge({
    name: 'capstan_audit_broken',
    help: 'Audit chains that this process found broken, and not whole again.',
    registers,
    collect() {
      this.set(knowledge.chainsBroken.length);
    },
  });
}
