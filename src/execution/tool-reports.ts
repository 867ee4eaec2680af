/**
 * Carries what one tool reports into the store: events in the order of its lines, one batch in flight at a time, and at
 * the end the run's output. Credit goes back for what is stored or thrown away, and for what waits for the rest of its
 * line, which is bounded. Invariant: whatever a tool reports, the run goes on; what is refused is an event that says so.
 */
import type { JsonValue } from '../kernel/json.js';
import type { Timing } from '../platform/time.js';
import type { RunReport } from '../runs/reports.sql.js';
import {
  decodeOutput,
  decodeReport,
  type Refused,
  type ReportData,
  type ReportLine,
  ReportLines,
} from './report.rules.js';
import { MAX_EVENTS_FILE_BYTES, MAX_OUTPUT_FILE_BYTES } from './supervisor/frames.js';

const REFUSED = 'run.report_refused';

export const MAX_REPORTS = 10_000;
/** Lines that are refused beyond these are not listed. */
export const MAX_REFUSALS = 100;

/** Behind the bytes of an output file may stand why it was not read on. */
const OUTPUT_SLACK_BYTES = 64;

/** A batch ends with the report that reaches one of these. */
const BATCH_REPORTS = 500;
const BATCH_BYTES = 256 * 1024;
/** So much is never waited with. */
const ENOUGH_BYTES = 64 * 1024;
/** The longest that a report is held back to be stored together with later ones. */
const GATHER_MS = 100;

export interface ReportPorts {
  /**
   * Stores a batch, numbered from 1, and its latest progress (undefined: none in it); false when the run is no longer
   * ours. Tries until it knows: a rejection counts as false.
   */
  readonly store: (batch: number, reports: readonly RunReport[], progress: JsonValue | undefined) => Promise<boolean>;
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
}

export class ToolReports {
  private waiting: Waiting[] = [];
  private waitingBytes = 0;
  private batch = 0;
  private readonly lines = new ReportLines();
  private eventsBytes = 0;
  private reports = 0;
  private refusals = 0;
  private isFull = false;
  private readonly output: Buffer[] = [];
  private outputBytes = 0;
  private lastAt = new Date(0);
  private lost = false;
  private isEnding = false;
  private writing: Promise<void> | undefined;
  private gathering: AbortController | undefined;
  private lastBatchMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly ports: ReportPorts) {}

  /** Bytes of the events file (3) or of the output file (4), in order. The memory of `data` is not kept. */
  push(source: 3 | 4, at: Date, data: Buffer): void {
    this.lastAt = at;
    const isTaken = source === 3 && !this.isFull && !this.lost;
    if (isTaken) this.takeEvents(at, data);
    else if (source === 4) this.keepOutput(data);
    if (!isTaken) this.ports.grantCredit(data.length);
  }

  /**
   * Call it when the tool has ended. Resolves when everything pushed so far is stored: the run's output, null without
   * one, and null when the run was lost before all of it was stored.
   */
  async drained(): Promise<JsonValue | null> {
    const line = this.isFull ? null : this.lines.rest();
    if (line !== null) this.takeLine(this.lastAt, line);
    const output = decodeOutput(Buffer.concat(this.output));
    if ('refused' in output) this.add(this.lastAt, REFUSED, { source: 'output', reason: output.refused }, 0);
    this.isEnding = true;
    this.gathering?.abort();
    while (this.writing) await this.writing;
    return this.lost || 'refused' in output ? null : output.value;
  }

  private keepOutput(data: Buffer): void {
    const room = MAX_OUTPUT_FILE_BYTES + OUTPUT_SLACK_BYTES - this.outputBytes;
    if (room <= 0) return;
    this.output.push(Buffer.from(data.subarray(0, room)));
    this.outputBytes += data.length;
  }

  private takeEvents(at: Date, data: Buffer): void {
    const before = this.waiting.length;
    const room = MAX_EVENTS_FILE_BYTES - this.eventsBytes;
    this.eventsBytes += data.length;
    for (const line of this.lines.read(data.subarray(0, room))) {
      if (!this.isFull) this.takeLine(at, line);
    }
    if (data.length > room && !this.isFull) {
      this.fill(at, { source: 'events', reason: `more than ${MAX_EVENTS_FILE_BYTES} bytes: the rest was not read` });
    }
    const last = this.waiting.length > before ? this.waiting.at(-1) : undefined;
    if (last) last.credit += data.length;
    else this.ports.grantCredit(data.length);
  }

  private takeLine(at: Date, line: ReportLine): void {
    const decoded = decodeReport(line);
    if (decoded === null) return;
    if ('refused' in decoded) {
      this.refuse(at, line.number, decoded);
    } else if (this.reports < MAX_REPORTS) {
      this.reports += 1;
      this.add(at, decoded.type, decoded.data, line.bytes?.length ?? 0);
    } else {
      const reason = `more than ${MAX_REPORTS} events: this line and what follows it was dropped`;
      this.fill(at, { source: 'events', line: line.number, reason });
    }
  }

  private refuse(at: Date, line: number, { refused, isWhole }: Refused): void {
    this.refusals += 1;
    if (this.refusals > MAX_REFUSALS + 1) return;
    const reason = this.refusals > MAX_REFUSALS ? 'further lines that are refused are not listed' : refused;
    this.add(at, REFUSED, { source: 'events', ...(isWhole ? {} : { line }), reason }, 0);
  }

  /** The last event of the events file: what comes behind it is only counted away. */
  private fill(at: Date, data: ReportData): void {
    this.isFull = true;
    this.add(at, REFUSED, data, 0);
  }

  private add(at: Date, type: string, data: ReportData, bytes: number): void {
    if (this.lost) return;
    const report = { type, at: at.toISOString(), data };
    this.waiting.push({ report, bytes, pushedMs: this.ports.timing.monotonicMs(), credit: 0 });
    this.waitingBytes += bytes;
    if (this.isEnough) this.gathering?.abort();
    this.writing ??= this.write();
  }

  private get isEnough(): boolean {
    return this.isEnding || this.waitingBytes >= ENOUGH_BYTES || this.waiting.length >= BATCH_REPORTS;
  }

  private async write(): Promise<void> {
    await undefined; // so that `writing` is set, and the whole chunk taken, before the first batch is made
    for (let first = this.waiting[0]; first; first = this.waiting[0]) {
      await this.gather(first);
      const batch = this.next();
      if (!this.lost) await this.store(batch.map(({ report }) => report));
      const credit = batch.reduce((sum, item) => sum + item.credit, 0);
      if (credit > 0) this.ports.grantCredit(credit);
    }
    this.writing = undefined;
  }

  /** Waits for company, unless there is enough already, the tool was quiet, or the first has waited its time. */
  private async gather(first: Waiting): Promise<void> {
    const { timing } = this.ports;
    const waitMs = Math.min(first.pushedMs, this.lastBatchMs) + GATHER_MS - timing.monotonicMs();
    if (this.lost || this.isEnough || waitMs <= 0) return;
    this.gathering = new AbortController();
    await timing.delay(waitMs, this.gathering.signal);
    this.gathering = undefined;
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

  private async store(reports: readonly RunReport[]): Promise<void> {
    this.batch += 1;
    this.lastBatchMs = this.ports.timing.monotonicMs();
    const progress = reports.findLast(({ type }) => type === 'progress')?.data;
    this.lost = !(await this.ports.store(this.batch, reports, progress).catch(() => false));
    if (this.lost) this.ports.onLost();
  }
}
