/**
 * All that lies between one process and the rest of its world: its statements on their way to the database and their
 * answers on the way back, its timers, and what its supervisor and others tell it. While the process is paused nothing
 * reaches it, and once it is dead nothing ever will; what it has sent is carried out all the same.
 */
import type postgres from 'postgres';
import { BytePool, type ByteStatement } from '../../src/platform/db/byte-pool.js';
import { errorCode, Pool, type Sql, StatementTimeout } from '../../src/platform/db/db.js';
import type { Timing } from '../../src/platform/time.js';
import type { Statement } from './lane.js';
import { isWriting, nameOf } from './statement-names.js';
import type { Fault } from './steps.js';
import type { World } from './world.js';

/** As long as the application's own pools wait for an answer. */
const ANSWER_WITHIN_MS = 6_000;

class Lost extends Error {
  readonly code = 'CONNECTION_CLOSED';
}

interface Sent {
  readonly name: string;
  readonly writes: boolean;
  readonly execute: () => Promise<unknown>;
  /** Told its rows once they are committed. */
  readonly onRows?: (rows: unknown) => void;
  /** As a statement that can be left uncommitted. */
  readonly statement?: Statement;
}

interface Timer {
  readonly dueMs: number;
  readonly fire: () => void;
}

export class Wire {
  private mode: 'open' | 'paused' | 'dead' = 'open';
  private withheld: (() => void)[] = [];
  private timers: Timer[] = [];
  private readonly faults: { readonly fault: Fault; readonly to: string }[] = [];
  /** The database can't be reached. */
  isCut = false;
  /** How far its clock is behind, having stood still. */
  private behindMs = 0;

  constructor(
    private readonly world: World,
    readonly name: string,
    private readonly onCrash: () => void,
    private random: number,
  ) {}

  get isDead(): boolean {
    return this.mode === 'dead';
  }

  get isPaused(): boolean {
    return this.mode === 'paused';
  }

  /** The monotonic clock of this process. */
  get nowMs(): number {
    return this.world.nowMs - this.behindMs;
  }

  readonly timing: Timing = {
    monotonicMs: () => this.nowMs,
    delay: (ms, signal) => this.delay(ms, signal),
    random: () => {
      // A linear congruence: what chance decides in a process is decided by the history.
      this.random = (this.random * 1_103_515_245 + 12_345) % 2_147_483_648;
      return this.random / 2_147_483_648;
    },
  };

  arm(fault: Fault, to: string): void {
    this.faults.push({ fault, to });
  }

  heal(): void {
    this.faults.length = 0;
    this.isCut = false;
  }

  standStill(ms: number): void {
    this.behindMs += ms;
  }

  pause(): void {
    if (this.mode === 'open') this.mode = 'paused';
  }

  resume(): void {
    if (this.mode !== 'paused') return;
    this.mode = 'open';
    for (const tell of this.withheld.splice(0)) this.deliver(tell);
    this.fireTimers();
  }

  die(): void {
    this.mode = 'dead';
    this.withheld = [];
    this.timers = [];
  }

  /** Tells the process something, as soon as it can hear. */
  deliver(tell: () => void): void {
    if (this.mode === 'dead') return;
    if (this.mode === 'paused') this.withheld.push(tell);
    else tell();
  }

  /** Called when time has passed. */
  fireTimers(): void {
    if (this.mode !== 'open') return;
    const due = this.timers.filter((timer) => timer.dueMs <= this.nowMs).sort((a, b) => a.dueMs - b.dueMs);
    if (due.length === 0) return;
    this.timers = this.timers.filter((timer) => !due.includes(timer));
    for (const timer of due) timer.fire();
  }

  send<T>(sent: Sent): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.mode === 'dead') return;
      const answer = (rows: unknown) => this.deliver(() => resolve(rows as T));
      const fail = (error: Error) => this.deliver(() => reject(error));
      const fault = this.isCut ? 'refuse' : this.nextFault(sent);
      const note = fault === undefined ? '' : ` [${this.isCut ? 'cut off' : fault}]`;
      this.world.tell(() => `    ${this.name} ${sent.name}${note}`);
      if (fault === 'refuse') {
        this.world.soon(async () => fail(new Lost('the connection was refused')));
      } else if (fault === 'hold') {
        this.world.hold({ name: `${sent.name} of ${this.name}`, execute: () => this.execute(sent), answer, fail });
        this.at(this.nowMs + ANSWER_WITHIN_MS, () => reject(new StatementTimeout('no answer in time')));
      } else {
        this.world.soon(() => this.carryOut(sent, fault, answer, fail));
      }
    });
  }

  private async carryOut(
    sent: Sent,
    fault: Fault | undefined,
    answer: (rows: unknown) => void,
    fail: (error: Error) => void,
  ): Promise<void> {
    if (fault === 'commit late' && sent.statement) {
      this.world.noteWrite();
      const { statement, onRows: _, ...rest } = sent;
      const late = (done: (rows: unknown) => void) => this.world.lane.runLate(statement, done);
      const committed = (rows: unknown) => {
        this.world.noteLateCommit();
        sent.onRows?.(rows);
        answer(rows);
      };
      await this.execute({ ...rest, execute: () => late(committed) }).catch(fail);
      return;
    }
    let rows: unknown;
    try {
      rows = await this.execute(sent);
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    if (fault === 'pause before answer') this.pause();
    if (fault === 'crash before answer') this.onCrash();
    if (fault === 'lose answer') fail(new Lost('the connection broke'));
    else answer(rows);
  }

  private async execute({ name, writes, execute, onRows }: Sent): Promise<unknown> {
    if (writes) this.world.noteWrite();
    try {
      const rows = await execute();
      onRows?.(rows);
      this.world.tell(() => `      ${name}: ${Array.isArray(rows) ? summaryOf(rows) : 'done'}`);
      return rows;
    } catch (error) {
      // Two submits with one id at one moment: whoever comes second sends it again.
      if (name === 'submitIfNew' && errorCode(error) === '23505') throw error;
      // Alone on its database, no statement of the product has anything to stumble over.
      this.world.break('no statement fails', `${name} of ${this.name}: ${String(error)}`);
      throw error;
    }
  }

  /** Of those that were armed for such a statement the first. */
  private nextFault({ name, writes, statement }: Sent): Fault | undefined {
    const place = this.faults.findIndex(({ fault, to }) => {
      const isMeant = to === 'any' || to === name || (to === 'writing' && writes);
      return isMeant && (fault !== 'commit late' || (writes && statement));
    });
    return this.faults.splice(place, place < 0 ? 0 : 1)[0]?.fault;
  }

  private at(dueMs: number, fire: () => void): () => void {
    const timer = { dueMs, fire };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((each) => each !== timer);
    };
  }

  private delay(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (this.mode === 'dead') return;
      if (signal?.aborted) {
        resolve();
        return;
      }
      const cancel = this.at(this.nowMs + ms, resolve);
      signal?.addEventListener('abort', () => {
        cancel();
        resolve();
      });
    });
  }
}

function summaryOf(rows: readonly unknown[]): string {
  const text = JSON.stringify(rows);
  return text.length > 200 ? `${rows.length} rows ${text.slice(0, 180)}…` : `${rows.length} rows ${text}`;
}

/** The application's pool, whose statements go the way of their process. */
export class WirePool extends Pool {
  constructor(
    private readonly world: World,
    private readonly wire: Wire,
  ) {
    super({
      url: 'postgres://nowhere',
      direct: true,
      name: 'wire',
      size: 1,
      statementTimeoutMs: 5_000,
      log: world.log,
    });
    // Nothing goes through a pool of its own.
    void super.close();
  }

  override run<T>(statement: (sql: Sql) => postgres.PendingQuery<T & postgres.MaybeRow[]>): Promise<T> {
    const { lane } = this.world;
    const made: Statement = (sql) => statement(sql) as unknown as ReturnType<Statement>;
    const { name, writes, worker, names } = nameOf(made);
    const isHolders = name === 'startIfHeld' || name === 'finishIfHeld';
    const onRows = (rows: unknown) => this.world.noteWrites(name, worker, names, rows);
    const sent = { name, writes, execute: () => lane.run(made), statement: made };
    return this.wire.send<T>(isHolders ? { ...sent, onRows } : sent);
  }
}

export class WireBytePool extends BytePool {
  constructor(
    private readonly world: World,
    private readonly wire: Wire,
  ) {
    super({ url: 'postgres://nowhere', direct: true, name: 'wire', size: 1, statementTimeoutMs: 5_000 });
    void super.close();
  }

  override run<T>(statement: ByteStatement): Promise<T[]> {
    const { lane } = this.world;
    // Its bytes are the sender's, who may fill them anew once he has given up waiting.
    const values = statement.values.map((value) => (Buffer.isBuffer(value) ? Buffer.from(value) : value));
    return this.wire.send<T[]>({
      name: statement.name,
      writes: isWriting(statement.text),
      execute: () => lane.runBytes({ ...statement, values }),
    });
  }
}
