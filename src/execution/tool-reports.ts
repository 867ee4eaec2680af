/**
 * Carries what one tool reports into the store: events in the order of its lines, and at the end the run's output.
 * Credit goes back for what is stored or thrown away, and for what waits for the rest of its line, which is bounded.
 * Invariant: whatever a tool reports, the run goes on; what is refused is an event that says so.
 */
import type { JsonValue } from '../kernel/json.js';
import type { Timing } from '../platform/time.js';
import type { RunReport } from '../runs/reports.sql.js';
import { Gatherer, type StoreAnswer } from './gatherer.js';
import {
  decodeOutput,
  decodeReport,
  type Refused,
  type ReportData,
  type ReportLine,
  ReportLines,
  UNREAD_TEXTS,
} from './report.rules.js';
import { Slices } from './slices.js';
import {
  MAX_EVENTS_FILE_BYTES,
  MAX_OUTPUT_FILE_BYTES,
  type ReportSource,
  type UnreadReason,
} from './supervisor/protocol.js';

const REFUSED = 'run.report_refused';

/** Events, and lines that are refused: a refusal costs as much as an event. */
export const MAX_REPORTS = 10_000;
/** Lines that are refused beyond these are not listed. */
export const MAX_REFUSALS = 100;
/** Blank ones too. */
export const MAX_LINES = 100_000;

/** A batch ends with the report that reaches one of these. */
const BATCH_REPORTS = 500;
const BATCH_BYTES = 256 * 1024;
/** So much is never waited with. */
const ENOUGH_BYTES = 64 * 1024;

export interface ReportPorts {
  /**
   * Stores a batch, numbered from 1, and its latest progress (undefined: none in it). Tries until it knows; never
   * rejects.
   */
  readonly store: (
    batch: number,
    reports: readonly RunReport[],
    progress: JsonValue | undefined,
  ) => Promise<StoreAnswer>;
  readonly grantCredit: (bytes: number) => void;
  /** The run is no longer ours: the tool must be stopped, nothing more is stored. */
  readonly onLost: () => void;
  readonly timing: Pick<Timing, 'monotonicMs' | 'delay'>;
}

interface Waiting {
  readonly report: RunReport;
  readonly bytes: number;
  readonly pushedMs: number;
  /** Given back once this one is stored. */
  credit: number;
  isReleased: boolean;
}

export class ToolReports {
  private waiting: Waiting[] = [];
  private waitingBytes = 0;
  private newest: Waiting | undefined;
  private batch = 0;
  private readonly lines = new ReportLines();
  private eventsBytes = 0;
  private reports = 0;
  private refusals = 0;
  private isFull = false;
  private readonly output: Buffer[] = [];
  private outputBytes = 0;
  private lastAt = new Date(0);
  private outputUnread: UnreadReason | undefined;
  private readonly gatherer: Gatherer<Waiting[]>;
  private readonly slices: Slices;

  constructor(private readonly ports: ReportPorts) {
    this.slices = new Slices(ports.timing);
    this.gatherer = new Gatherer({
      waitingSinceMs: () => this.waiting[0]?.pushedMs,
      isEnough: () => this.isEnough(),
      take: () => this.next(),
      store: (batch) => this.store(batch),
      release: (batch) => this.release(batch),
      onLost: ports.onLost,
      timing: ports.timing,
    });
  }

  /** Bytes of the events file (3) or of the output file (4), in order. The memory of `data` is not kept. */
  push(source: ReportSource, at: Date, data: Buffer): void {
    this.lastAt = at;
    if (source === 3 && !this.isOver) {
      this.slices.add(this.takeEvents(at, Buffer.from(data)));
      return;
    }
    if (source === 4) this.keepOutput(data);
    this.ports.grantCredit(data.length);
  }

  /** One of the files was not read, or not on from here. It takes no credit, and no number of a line. */
  unread(source: ReportSource, at: Date, reason: UnreadReason): void {
    this.lastAt = at;
    if (source === 4) this.outputUnread = reason;
    else this.slices.add(this.takeUnread(at, UNREAD_TEXTS[reason]));
  }

  /**
   * Call it when the tool has ended. Resolves when everything pushed so far is stored: the run's output, null without
   * one, and null when the run was lost before all of it was stored.
   */
  async drained(): Promise<JsonValue | null> {
    await this.slices.done();
    const line = this.isOver ? null : this.lines.rest();
    if (line !== null) this.takeLine(this.lastAt, line);
    const output = this.decodedOutput();
    if ('refused' in output) this.add(this.lastAt, REFUSED, { source: 'output', reason: output.refused }, 0);
    await this.gatherer.drained();
    return this.gatherer.isLost || 'refused' in output ? null : output.value;
  }

  /** What comes of the events file is only counted away. */
  private get isOver(): boolean {
    return this.isFull || this.gatherer.isLost;
  }

  private decodedOutput(): ReturnType<typeof decodeOutput> {
    if (this.outputUnread !== undefined) return { refused: UNREAD_TEXTS[this.outputUnread] };
    return decodeOutput(Buffer.concat(this.output));
  }

  private keepOutput(data: Buffer): void {
    // One byte more tells that it is too long.
    const room = MAX_OUTPUT_FILE_BYTES + 1 - this.outputBytes;
    if (room <= 0) return;
    this.output.push(Buffer.from(data.subarray(0, room)));
    this.outputBytes += data.length;
  }

  private *takeUnread(at: Date, reason: string): Generator<undefined, void> {
    if (!this.isFull) this.add(at, REFUSED, { source: 'events', reason }, 0);
    yield;
  }

  /** One step for each line. */
  private *takeEvents(at: Date, data: Buffer): Generator<undefined, void> {
    const before = this.newest;
    const room = MAX_EVENTS_FILE_BYTES - this.eventsBytes;
    this.eventsBytes += data.length;
    for (const line of this.isOver ? [] : this.lines.read(data.subarray(0, room))) {
      this.takeLine(at, line);
      yield;
      // Looking for the lines of what is only counted away would cost more than its bytes are worth.
      if (this.isOver) break;
    }
    if (data.length > room && !this.isOver) {
      this.fill(at, { source: 'events', reason: `more than ${MAX_EVENTS_FILE_BYTES} bytes: the rest was not read` });
    }
    const last = this.newest === before ? undefined : this.newest;
    if (last && !last.isReleased) last.credit += data.length;
    else this.ports.grantCredit(data.length);
  }

  private takeLine(at: Date, line: ReportLine): void {
    const isInBounds = line.number <= MAX_LINES;
    const decoded = isInBounds ? decodeReport(line) : null;
    if (decoded !== null) this.reports += 1;
    if (!isInBounds || this.reports > MAX_REPORTS) {
      const bound = isInBounds ? `${MAX_REPORTS} events and refused lines` : `${MAX_LINES} lines`;
      const reason = `more than ${bound}: this line and what follows it was dropped`;
      this.fill(at, { source: 'events', line: line.number, reason });
    } else if (decoded === null) return;
    else if ('refused' in decoded) this.refuse(at, line.number, decoded);
    else this.add(at, decoded.type, decoded.data, line.bytes?.length ?? 0);
  }

  private refuse(at: Date, line: number, { refused }: Refused): void {
    this.refusals += 1;
    if (this.refusals > MAX_REFUSALS + 1) return;
    const reason = this.refusals > MAX_REFUSALS ? 'further lines that are refused are not listed' : refused;
    this.add(at, REFUSED, { source: 'events', line, reason }, 0);
  }

  /** The last event of the events file: what comes behind it is only counted away. */
  private fill(at: Date, data: ReportData): void {
    this.isFull = true;
    this.add(at, REFUSED, data, 0);
  }

  private add(at: Date, type: string, data: ReportData, bytes: number): void {
    if (this.gatherer.isLost) return;
    const report = { type, at: at.toISOString(), data };
    this.newest = { report, bytes, pushedMs: this.ports.timing.monotonicMs(), credit: 0, isReleased: false };
    this.waiting.push(this.newest);
    this.waitingBytes += bytes;
    this.gatherer.wake();
  }

  private isEnough(): boolean {
    return this.waitingBytes >= ENOUGH_BYTES || this.waiting.length >= BATCH_REPORTS;
  }

  private next(): Waiting[] {
    let count = 0;
    for (let bytes = 0; count < Math.min(this.waiting.length, BATCH_REPORTS); count += 1) {
      bytes += this.waiting[count]?.bytes ?? 0;
      if (count > 0 && bytes > BATCH_BYTES) break;
    }
    const batch = this.waiting.splice(0, count);
    for (const { bytes } of batch) this.waitingBytes -= bytes;
    return batch;
  }

  private store(batch: readonly Waiting[]): Promise<StoreAnswer> {
    this.batch += 1;
    const reports = batch.map(({ report }) => report);
    const progress = reports.findLast(({ type }) => type === 'progress')?.data;
    return this.ports.store(this.batch, reports, progress);
  }

  private release(batch: readonly Waiting[]): void {
    let credit = 0;
    for (const item of batch) {
      credit += item.credit;
      item.isReleased = true;
    }
    if (credit > 0) this.ports.grantCredit(credit);
  }
}
