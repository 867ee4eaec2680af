/**
 * Judges whether a supervisor is silent. In ticks of the main thread: one that stood still and wakes finds the
 * acknowledgements waiting, and takes them in before its next tick but one.
 */
import { isSilent, type Unacknowledged, unacknowledgedAfter } from './keeper.rules.js';

export class SilenceWatch {
  private unacknowledged: Unacknowledged = [];
  private isReported = false;
  acknowledgedSeq = 0;

  /** Acknowledges the extension `seq` and all before it. */
  acknowledge(seq: number): void {
    this.acknowledgedSeq = Math.max(this.acknowledgedSeq, seq);
  }

  /** One tick, `sentSeq` being the newest extension on its way; true once, at the tick that makes it silence. */
  tick(sentSeq: number): boolean {
    this.unacknowledged = unacknowledgedAfter(this.unacknowledged, sentSeq, this.acknowledgedSeq);
    if (this.isReported || !isSilent(this.unacknowledged)) return false;
    this.isReported = true;
    return true;
  }
}
