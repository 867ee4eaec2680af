/**
 * Watches the database by what becomes of all statements, and looks itself over a connection of its own wherever they
 * say too little: a pool that is busy says nothing about the database. What was found last is there at once for whoever asks. When the server turns out to be read-only, or
 * writable again, all pools connect anew, since by the same address another server may be meant now; and when the
 * connection of the look itself was dead without a word, since theirs will be too.
 */
import { errorCode, isTimeout, StatementTimeout } from '../platform/db/db.js';
import { knownMigrations } from '../platform/db/migrate.js';
import type { Platform } from '../platform/platform.js';
import { type Checks, type DatabaseView, isLookDue, judge, type Sign, TICK_MS, UNSEEN } from './readiness.rules.js';
import { probe } from './readiness.sql.js';

/** No such table: the database answers, and has no schema yet. */
const UNDEFINED_TABLE = '42P01';
const TOO_MANY_CONNECTIONS = '53300';

/** What a pool counts. */
interface Counted {
  readonly answers: number;
  readonly losses: number;
  readonly inFlight: number;
}

export class DatabaseWatch {
  private readonly stopping = new AbortController();
  private view: DatabaseView = UNSEEN;
  private migrations: Checks['migrations'] = 'unknown';
  private answersSeen = 0;
  private lossesSeen = 0;
  /** A look was given up that nobody had ended: half open, as after a cut. */
  private wentSilent = false;
  private ticker: NodeJS.Timeout | undefined;
  private looksUnderWay = 0;
  private newestMigration: string | undefined;
  private noteFirst: () => void = () => undefined;
  /** Resolves when the first look is over. */
  readonly firstLook = new Promise<void>((resolve) => {
    this.noteFirst = resolve;
  });

  constructor(private readonly platform: Platform) {}

  /** What was found last. */
  get found(): Pick<Checks, 'database' | 'migrations'> {
    const { verdict } = this.view;
    const isAway = verdict !== 'ok' && verdict !== 'read-only';
    return { database: verdict, migrations: isAway ? 'unknown' : this.migrations };
  }

  /** Begins to look; to no effect when it has begun. */
  start(): void {
    if (this.ticker || this.stopping.signal.aborted) return;
    this.ticker = setInterval(() => this.tick(), TICK_MS).unref();
    void this.look();
  }

  /** A pulse was answered, and has told this. */
  noteWritable(writable: boolean): void {
    this.note({ sign: 'pulse', writable });
  }

  stop(): void {
    this.stopping.abort();
    clearInterval(this.ticker);
  }

  /** One look out of turn. Whether it was answered; never rejects. */
  async look(): Promise<boolean> {
    const { pools } = this.platform;
    this.looksUnderWay += 1;
    this.note({ sign: 'looking' });
    try {
      this.newestMigration ??= (await knownMigrations()).at(-1) ?? '';
      const { writable, applied } = await probe(pools.probe, this.newestMigration);
      this.migrations = applied ? 'ok' : 'pending';
      this.note({ sign: 'answered', writable });
      // A server that was demoted may keep this connection, while its address has long led to another.
      if (!writable) pools.probe.reconnect();
      return true;
    } catch (error) {
      this.noteFault(error);
      return false;
    } finally {
      this.looksUnderWay -= 1;
      this.noteFirst();
    }
  }

  private noteFault(error: unknown): void {
    const code = errorCode(error);
    this.wentSilent ||= error instanceof StatementTimeout;
    if (code === UNDEFINED_TABLE) {
      this.migrations = 'pending';
      this.note({ sign: 'answered', writable: true });
      return;
    }
    // Too slow, or no connection free right now: no sign of its own, the silence is counted.
    if (!isTimeout(error) && code !== TOO_MANY_CONNECTIONS) this.note({ sign: 'failed' });
  }

  private tick(): void {
    let [answers, losses, inFlight] = [0, 0, 0];
    for (const pool of Object.values(this.platform.pools) as readonly Counted[]) {
      answers += pool.answers;
      losses += pool.losses;
      inFlight += pool.inFlight;
    }
    this.note({
      sign: 'tick',
      othersAnswered: answers !== this.answersSeen,
      isAsked: inFlight > 0,
      wasCut: losses !== this.lossesSeen,
    });
    [this.answersSeen, this.lossesSeen] = [answers, losses];
    if (this.looksUnderWay === 0 && isLookDue(this.view, this.migrations === 'ok')) void this.look();
  }

  private note(sign: Sign): void {
    const { log, pools } = this.platform;
    const before = this.view.verdict;
    this.view = judge(this.view, sign);
    const { verdict } = this.view;
    if (verdict === before || this.stopping.signal.aborted) return;
    if (verdict === 'read-only' || before === 'read-only' || (verdict === 'ok' && this.wentSilent)) {
      this.wentSilent = false;
      for (const pool of Object.values(pools)) pool.reconnect();
    }
    if (verdict !== 'ok')
      log.warn({ code: 'database_not_usable', found: verdict }, 'not ready: the database can not be used');
    else if (before !== 'not reached yet') log.info({ code: 'database_usable' }, 'the database can be used again');
  }
}
