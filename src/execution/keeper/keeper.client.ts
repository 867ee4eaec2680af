/**
 * The main thread's side of the lease keeper. Invariants: once `end` has returned, nothing is written to that life's
 * pipe and nothing of that life is reported; whether a supervisor is silent is judged in ticks of this thread.
 */
import { Worker } from 'node:worker_threads';
import type { ClockSample } from '../../platform/db/clock.rules.js';
import { pipeIdentity } from './extension-pipe.js';
import type { FromKeeper, KeeperEvent, KeeperLog, KeeperSettings, KeeperThreadData, Life, ToKeeper } from './keeper.js';
import { isOutage, TICK_MS } from './keeper.rules.js';
import { nowMs } from './monotonic.js';
import { SharedMemory } from './shared-memory.js';
import { SilenceWatch } from './silence.js';

/** Farewell to the database included. */
const CLOSE_LIMIT_MS = 2_000;
/** Caps, not reservations: 12 MiB are really used, 8 of them by any thread of Node's and 3 by the driver. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 2 };

export interface KeeperOptions extends KeeperSettings {
  readonly log: KeeperLog;
  /** Called each time that the server had no connection left for the lease. */
  readonly onRefused?: () => void;
}

export interface KeeperStats {
  /** Renewals that got through, over all lives. */
  readonly renewals: number;
  /** Tries that failed, or got no answer in time. */
  readonly renewalFailures: number;
  /** On `performance.now()`. */
  readonly lastRenewalSentAtMs: number | undefined;
  /** Renewals in a row without an outage between; 0 while the last is so long ago that there may be one now. */
  readonly renewalsSinceOutage: number;
  readonly extensionSeq: number;
  readonly acknowledgedSeq: number;
  readonly isFailing: boolean;
}

interface CurrentLife {
  readonly life: Life;
  readonly order: number;
  readonly silence: SilenceWatch;
}

/** Once per process, before its first life. */
export function startKeeper(options: KeeperOptions): KeeperClient {
  return new KeeperClient(options);
}

export class KeeperClient {
  private readonly memory = new SharedMemory();
  private readonly worker: Worker;
  private readonly ticker: NodeJS.Timeout;
  private readonly listeners = new Set<(event: KeeperEvent) => void>();
  private readonly clockOffsetMs = nowMs() - performance.now();
  private readonly log: KeeperLog;
  private readonly onRefused: () => void;
  private readonly renewMs: number;
  private lives = 0;
  private current: CurrentLife | undefined;
  private isFailing = false;
  private lastClock: ClockSample | undefined;
  private state: 'open' | 'closing' | 'gone' = 'open';

  constructor(options: KeeperOptions) {
    const { log, onRefused = () => undefined, ...settings } = options;
    const data: KeeperThreadData = { settings, memory: this.memory.buffer };
    this.log = log;
    this.onRefused = onRefused;
    this.renewMs = settings.renewMs;
    this.worker = new Worker(new URL('./keeper.thread.js', import.meta.url), {
      name: 'capstan-keeper',
      workerData: data,
      execArgv: [],
      // The thread prints nothing. Piping it would make Node open this process's own output, non-blocking from then on.
      stdout: true,
      stderr: true,
      resourceLimits: RESOURCE_LIMITS,
    });
    this.worker.on('message', (message: FromKeeper) => this.receive(message));
    this.worker.on('error', (error) => this.noteGone(error));
    this.worker.on('exit', (code) => this.noteGone(new Error(`the thread ended with code ${code}`)));
    this.ticker = setInterval(() => this.tick(), settings.tickMs ?? TICK_MS).unref();
  }

  /** Returns the way to stop listening. Listeners are called in the order of the keeper's reports and must not throw. */
  subscribe(listener: (event: KeeperEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The first renewal is sent at once. Ends the life begun before. */
  begin(life: Life): void {
    this.end();
    this.lives += 1;
    const order = this.lives;
    this.current = { life, order, silence: new SilenceWatch() };
    this.memory.openGate(order);
    this.send({ type: 'begin', life: { ...life, order, pipeIdentity: pipeIdentity(life.pipeFd) } });
  }

  /** Stops renewing. Synchronous: once it has returned, the pipe's descriptor may be closed and be used again. */
  end(): void {
    if (!this.current) return;
    this.memory.closeGate(this.current.order);
    this.current = undefined;
    this.send({ type: 'end' });
  }

  /** The supervisor has taken in the extension `seq`, and with it all before. Those of another life are ignored. */
  acknowledge(incarnation: string, seq: number): void {
    if (incarnation === this.current?.life.incarnation) this.current.silence.acknowledge(seq);
  }

  /** The newest look at the database's clock, for whoever must notice that it moved (see `clockShiftMs`). */
  get clock(): ClockSample | undefined {
    return this.lastClock;
  }

  get stats(): KeeperStats {
    const sentAtMs = this.memory.renewalSentAtMs;
    return {
      renewals: this.memory.renewals,
      renewalFailures: this.memory.renewalFailures,
      lastRenewalSentAtMs: sentAtMs === undefined ? undefined : sentAtMs - this.clockOffsetMs,
      renewalsSinceOutage: isOutage(sentAtMs, nowMs(), this.renewMs) ? 0 : this.memory.renewalsSinceOutage,
      extensionSeq: this.memory.extensionSeq,
      acknowledgedSeq: this.current?.silence.acknowledgedSeq ?? 0,
      isFailing: this.isFailing,
    };
  }

  /** Ends the life and the thread; resolves within 2 s, also with the database away. */
  async close(): Promise<void> {
    this.end();
    clearInterval(this.ticker);
    if (this.state !== 'open') return;
    const exited = new Promise((resolve) => this.worker.once('exit', resolve));
    this.send({ type: 'close' });
    this.state = 'closing';
    const limit = setTimeout(() => void this.worker.terminate(), CLOSE_LIMIT_MS);
    await exited;
    clearTimeout(limit);
  }

  /** Its thread has died: nothing renews any more, and nothing ever will. */
  get isGone(): boolean {
    return this.state === 'gone';
  }

  private send(message: ToKeeper): void {
    if (this.state === 'open') this.worker.postMessage(message);
  }

  private tick(): void {
    this.memory.tickMain();
    if (!this.current?.silence.tick(this.memory.extensionSeq)) return;
    const { incarnation, supervisorPid } = this.current.life;
    this.log.error(
      { code: 'supervisor_silent', incarnation, supervisorPid },
      'the supervisor leaves extensions of its deadline unacknowledged',
    );
    this.announce({ type: 'supervisorSilent', incarnation, supervisorPid });
  }

  private receive(message: FromKeeper): void {
    if (message.type === 'failing') this.noteFailing(message.sinceMs, message.error);
    else if (message.type === 'recovered') this.noteRecovered(message.downMs);
    else if (message.type === 'refused') this.onRefused();
    // Reports of a life that was ended may still be under way.
    else if (message.order === this.current?.order) this.receiveOfLife(message, this.current.life.incarnation);
  }

  private receiveOfLife(message: FromKeeper, incarnation: string): void {
    if (message.type === 'renewed') {
      const { state } = message;
      this.lastClock = this.onThisThread(message.clock);
      const at = new Date(message.clock.databaseAtMs);
      const leaseUntil = new Date(message.leaseUntilMs);
      this.announce({ type: 'renewed', incarnation, state, leaseUntil, at, clock: this.lastClock });
    } else if (message.type === 'over') {
      this.end();
      this.log.error({ code: 'lease_over', incarnation }, 'this life is over: its worker row is gone or has ended');
      this.announce({ type: 'over', incarnation });
    } else if (message.type === 'pipeBroken') {
      this.log.warn(
        { code: 'extension_not_written', incarnation, error: message.error },
        "the supervisor's deadline can't be extended: its tools stop unless that works again in time",
      );
    }
  }

  private noteFailing(sinceMs: number, error: string): void {
    this.isFailing = true;
    this.log.warn({ code: 'lease_renewal_failing', error }, "the lease can't be renewed; trying again until it can");
    this.announce({ type: 'failing', since: new Date(sinceMs), error });
  }

  private noteRecovered(downMs: number): void {
    this.isFailing = false;
    this.log.info({ code: 'lease_renewal_recovered', downMs }, 'the lease is renewed again');
    this.announce({ type: 'recovered', downMs });
  }

  private noteGone(error: Error): void {
    const wasOpen = this.state === 'open';
    this.state = 'gone';
    if (!wasOpen) return;
    clearInterval(this.ticker);
    this.end();
    this.log.error({ code: 'lease_keeper_failed', err: error }, 'the lease keeper is gone: nothing renews the lease');
    this.announce({ type: 'failed', error });
  }

  /** A monotonic instant of the machine's, said in `performance.now()` of this thread. */
  private onThisThread(clock: ClockSample): ClockSample {
    return {
      sentAtMs: clock.sentAtMs - this.clockOffsetMs,
      receivedAtMs: clock.receivedAtMs - this.clockOffsetMs,
      databaseAtMs: clock.databaseAtMs,
    };
  }

  private announce(event: KeeperEvent): void {
    for (const listener of this.listeners) listener(event);
  }
}
