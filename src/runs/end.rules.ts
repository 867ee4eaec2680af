/** The end of a run as callers see it. Pure. */
import type { CancelKind, EndCode } from './run.js';

/** What a row says about an end; null throughout while the run lives. */
export interface EndFacts {
  readonly endedAt: Date | null;
  readonly endCode: EndCode | null;
  readonly endKind: CancelKind | null;
  readonly endDetail: string | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly endBy: string | null;
  readonly fence: number;
}

/** The `end` of a run; null while it lives. */
export function endOf(run: EndFacts): Record<string, unknown> | null {
  if (run.endedAt === null) return null;
  return {
    code: run.endCode,
    kind: run.endKind,
    detail: run.endDetail,
    exitCode: run.exitCode,
    signal: run.signal,
    by: run.endBy,
    at: run.endedAt,
    fence: run.fence,
  };
}
