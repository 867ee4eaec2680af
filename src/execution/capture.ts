/**
 * What one tool writes, on its way into the store: its two streams (output-writer.ts) and what it reports in its files
 * (tool-reports.ts). However long the database is in the way, nothing is lost and the tool waits; only data that the
 * database can never take is dropped and logged, or the run could not end.
 */
import { encodeId } from '../kernel/ids.js';
import type { JsonValue } from '../kernel/json.js';
import { isDataFault } from '../platform/db/db.js';
import type { Platform } from '../platform/platform.js';
import type { HolderService } from '../runs/holder.service.js';
import type { ClaimedRun } from '../runs/run.js';
import type { StoreAnswer } from './gatherer.js';
import { OutputWriter } from './output-writer.js';
import { creditOf, type OutputChunk } from './supervisor/frames.js';
import type { Unread } from './supervisor/protocol.js';
import { ToolReports } from './tool-reports.js';

const LONGEST_PAUSE_MS = 1_000;

export interface CaptureParts {
  readonly platform: Pick<Platform, 'log' | 'timing' | 'config'>;
  readonly holder: Pick<HolderService, 'appendOutput' | 'dropOutput' | 'appendReports'>;
  readonly grantCredit: (bytes: number) => void;
  /** The run is no longer ours: the tool must be stopped. */
  readonly onLost: () => void;
  /** Whether nothing may be written any more. */
  readonly isAbandoned: () => boolean;
}

export class Capture {
  private readonly writer: OutputWriter;
  private readonly reports: ToolReports;

  constructor(
    private readonly run: ClaimedRun,
    private readonly parts: CaptureParts,
  ) {
    const { platform, holder, grantCredit, onLost } = parts;
    const { timing, config } = platform;
    this.writer = new OutputWriter({
      store: (batches, data) => this.untilStored('output', () => holder.appendOutput(run, batches, data)),
      drop: (cut) => this.untilStored('cut', () => holder.dropOutput(run, cut)),
      limitBytes: config.outputLimitBytes,
      grantCredit,
      onLost,
      timing,
    });
    this.reports = new ToolReports({
      store: (batch, reports, progress) =>
        this.untilStored('reports', () => holder.appendReports(run, batch, reports, progress)),
      grantCredit,
      onLost,
      timing,
    });
  }

  /** Its bytes are valid during the call only. */
  take({ source, at, bytes }: OutputChunk): void {
    if (source === 1 || source === 2) this.writer.push(source, new Date(at), bytes);
    else {
      this.reports.push(source, new Date(at), bytes);
      // They count bytes alone. Reads of a file are few, so that what is under way stays bounded by those.
      this.parts.grantCredit(creditOf(0));
    }
  }

  takeUnread({ source, reason, at }: Unread): void {
    this.reports.unread(source, new Date(at), reason);
  }

  /** Call it when the tool has ended. Resolves when everything is stored, with what the run's end says of it. */
  async drained(): Promise<{ readonly output: JsonValue | null; readonly outputDigest: string | null }> {
    const [outputDigest, output] = await Promise.all([this.writer.drained(), this.reports.drained()]);
    return { output, outputDigest };
  }

  /** Never rejects. */
  private async untilStored(what: string, store: () => Promise<boolean>): Promise<StoreAnswer> {
    const { log, timing } = this.parts.platform;
    const run = encodeId('run', this.run.runId);
    for (let attempt = 0; !this.parts.isAbandoned(); attempt += 1) {
      try {
        if (await store()) return 'stored';
        log.warn(
          { code: 'run_write_refused', run, fence: this.run.fence, what },
          `the run was no longer ours when its ${what} was to be stored; its tool is stopped, nothing more is stored`,
        );
        return 'lost';
      } catch (error) {
        if (isDataFault(error)) {
          log.error({ code: 'write_refused', err: error, run, what }, `the database will never take this ${what}`);
          return 'refused';
        }
        if (attempt === 0) {
          log.warn({ code: 'write_retried', err: error, run, what }, `${what} can't be stored now; the tool waits`);
        }
        await timing.delay(Math.min(50 * 2 ** attempt, LONGEST_PAUSE_MS));
      }
    }
    return 'lost';
  }
}
