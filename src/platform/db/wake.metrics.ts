/** What a process counts of the wake-ups between replicas. */
import { Counter, type Registry } from 'prom-client';
import { WAKE_WORDS, type WakeWord } from './wake.rules.js';

export class WakeMetrics {
  private readonly sent: Counter<'bell'>;
  private readonly received: Counter<'bell'>;
  private readonly reconnects: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.sent = new Counter({
      name: 'capstan_wakeups_sent_total',
      help: 'Wake-ups that this process told the other replicas, by bell: claimable or canceled.',
      labelNames: ['bell'],
      registers,
    });
    this.received = new Counter({
      name: 'capstan_wakeups_received_total',
      help: 'Wake-ups that this process heard of from other replicas, by bell: claimable or canceled.',
      labelNames: ['bell'],
      registers,
    });
    this.reconnects = new Counter({
      name: 'capstan_listen_reconnects_total',
      help: 'Times that the session on which this process hears of work from other replicas was made anew.',
      registers,
    });
    for (const bell of WAKE_WORDS) {
      this.sent.inc({ bell }, 0);
      this.received.inc({ bell }, 0);
    }
  }

  countSent(bells: readonly WakeWord[]): void {
    for (const bell of bells) this.sent.inc({ bell });
  }

  countReceived(bells: readonly WakeWord[]): void {
    for (const bell of bells) this.received.inc({ bell });
  }

  countReconnect(): void {
    this.reconnects.inc();
  }
}
