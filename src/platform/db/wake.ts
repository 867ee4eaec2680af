/**
 * Replicas wake each other: what rings here is told to the others by NOTIFY, what they tell rings here. All of it goes
 * over one session of its own, one statement at a time: never inside, behind or in front of a statement that makes or
 * moves runs. Invariant: after each LISTEN all bells ring, as something may have been said while nobody listened. A
 * wake-up that is lost all the same costs a poll interval, never a run.
 */
import { newId } from '../../kernel/ids.js';
import type { Platform } from '../platform.js';
import { Session } from './session.js';
import { WakeMetrics } from './wake.metrics.js';
import { heardIn, reconnectPauseMs, tellingOf, WAKE_WORDS, type WakeWord } from './wake.rules.js';

const CHANNEL = 'capstan';
const LISTEN = `listen ${CHANNEL}`;
/** Commits of NOTIFY wait for each other in the server, so whatever rings meanwhile goes into the next one. */
const QUIET_MS = 20;
/** A connection that went silent is found by asking it something. */
const CHECK_EVERY_MS = 30_000;
const ANSWER_WITHIN_MS = 5_000;
const STOP_WITHIN_MS = 1_000;

/** Alone in its transaction it writes nothing: its commit waits for no disk and no standby. */
const NOTIFY = 'select pg_notify($1, $2)';
/** A server that takes no writes hears of none: nobody who makes or cancels runs is connected to it. */
const STANDS_ASIDE = `select pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "isReadOnly"`;

export type WakePlatform = Pick<Platform, 'bells' | 'log' | 'metrics' | 'timing'>;

export class Wake {
  private readonly self = newId();
  private readonly untold = new Set<WakeWord>();
  private readonly unsubscribe: (() => void)[];
  private readonly metrics: WakeMetrics;
  private readonly stopping = new AbortController();
  private waiting = new AbortController();
  private isRelaying = false;
  private hasListened = false;
  private isLost = false;
  /** Sessions in a row that ended before they had lasted: whoever listens anew rings all bells. */
  private failures = 0;
  private done: Promise<void> = Promise.resolve();

  /** `databaseUrl` leads past any pooler: through one LISTEN hears nothing, and others' work waits for the poll. */
  constructor(
    private readonly databaseUrl: string,
    private readonly platform: WakePlatform,
  ) {
    this.metrics = new WakeMetrics(platform.metrics);
    this.unsubscribe = WAKE_WORDS.map((word) => platform.bells[word].onRing(() => this.noteRing(word)));
  }

  start(): void {
    this.done = this.run();
  }

  async stop(): Promise<void> {
    for (const off of this.unsubscribe) off();
    this.stopping.abort();
    this.waiting.abort();
    await Promise.race([this.done, this.platform.timing.delay(STOP_WITHIN_MS)]);
  }

  private noteRing(word: WakeWord): void {
    if (this.isRelaying) return;
    this.untold.add(word);
    this.waiting.abort();
  }

  /** One session after another; never rejects. */
  private async run(): Promise<void> {
    const { timing } = this.platform;
    while (!this.stopping.signal.aborted) {
      try {
        const lost = await this.session();
        if (lost) this.noteLost(lost);
      } catch (error) {
        this.noteLost(error);
      }
      const pauseMs = reconnectPauseMs(this.failures) * (0.5 + timing.random() / 2);
      this.failures += 1;
      await timing.delay(pauseMs, this.stopping.signal);
    }
  }

  /** From connecting to the end of the connection: why the server ended it. Rejects when a statement failed. */
  private async session(): Promise<Error | undefined> {
    let lost: Error | undefined;
    const session = await Session.open({
      databaseUrl: this.databaseUrl,
      name: 'listen',
      limitMs: ANSWER_WITHIN_MS,
      onLost: (error) => {
        lost = error;
        this.waiting.abort();
      },
      onNotification: (payload) => {
        const words = heardIn(payload, this.self);
        this.metrics.countReceived(words);
        this.relay(words);
      },
    });
    try {
      await listen(session);
      this.noteListening();
      while (session.isOpen && !this.stopping.signal.aborted) {
        if (this.untold.size > 0) await this.tell(session);
        else await this.rest(session);
      }
      // Whoever stops has given runs back.
      if (session.isOpen && this.untold.size > 0) await this.tell(session);
    } finally {
      await session.close();
    }
    return lost;
  }

  /** What could not be told is told over the next session. */
  private async tell(session: Session): Promise<void> {
    const words = [...this.untold];
    this.untold.clear();
    try {
      await session.query(NOTIFY, [CHANNEL, tellingOf(this.self, words)]);
      this.metrics.countSent(words);
    } catch (error) {
      for (const word of words) this.untold.add(word);
      throw error;
    }
    await this.platform.timing.delay(QUIET_MS, this.stopping.signal);
  }

  /** Until something rings here, the session is lost, or it is time to see whether it still answers. */
  private async rest(session: Session): Promise<void> {
    const waiting = new AbortController();
    this.waiting = waiting;
    await this.platform.timing.delay(CHECK_EVERY_MS, waiting.signal);
    if (waiting.signal.aborted) return;
    await refuseReadOnly(session);
    this.failures = 0;
  }

  /** Rings here alone: what others said is not said again. */
  private relay(words: readonly WakeWord[]): void {
    this.isRelaying = true;
    try {
      for (const word of words) this.platform.bells[word].ring();
    } finally {
      this.isRelaying = false;
    }
  }

  private noteListening(): void {
    if (this.hasListened) this.metrics.countReconnect();
    if (this.isLost) this.platform.log.info({ code: 'listen_restored' }, 'hears again of work from other replicas');
    this.hasListened = true;
    this.isLost = false;
    this.relay(WAKE_WORDS);
  }

  private noteLost(error: unknown): void {
    if (this.isLost || this.stopping.signal.aborted) return;
    this.isLost = true;
    this.platform.log.warn(
      { code: 'listen_lost', err: error },
      'hears nothing of work from other replicas and finds it by polling; connecting again',
    );
  }
}

/** Rejects when nothing is answered, and when this isn't the server that takes writes. */
async function listen(session: Session): Promise<void> {
  await session.query(LISTEN);
  await refuseReadOnly(session);
}

async function refuseReadOnly(session: Session): Promise<void> {
  const [server] = await session.query(STANDS_ASIDE);
  if (server?.isReadOnly !== false) throw new Error('the server is read-only');
}
