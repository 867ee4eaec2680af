/** The start of a claimed run: whether its tool may be asked for, and where the run goes when not. */
import { encodeId } from '../kernel/ids.js';
import type { Bells, Platform } from '../platform/platform.js';
import type { HolderService, RunEnd } from '../runs/holder.service.js';
import type { ClaimedRun, Outcome } from '../runs/run.js';
import type { RunMetrics } from '../runs/run.metrics.js';
import type { WorkMetrics } from '../runs/work.metrics.js';
import { CANCELED_UNSTARTED } from './outcome.rules.js';

export type ExecutorMode = 'open' | 'draining' | 'abandoned';

export interface StartParts {
  readonly platform: Pick<Platform, 'log' | 'timing'> & { readonly bells: Pick<Bells, 'claimable'> };
  readonly holder: Pick<HolderService, 'start' | 'finish' | 'release' | 'isDraining'>;
  readonly metrics: Pick<RunMetrics, 'countStarted'> & { readonly work: Pick<WorkMetrics, 'countLostRace'> };
  readonly mode: () => ExecutorMode;
  readonly onStarted: () => void;
  /** Called when a start failed with an error that trying again at once doesn't mend. */
  readonly onStartFailed: (error: unknown) => void;
}

/** Moves the run to running. False: its tool must not be started, and the run was given up. */
export async function mayStart(run: ClaimedRun, parts: StartParts): Promise<boolean> {
  const { holder, metrics, mode, platform, onStarted, onStartFailed } = parts;
  const claimedAtMs = platform.timing.monotonicMs();
  if (mode() !== 'open') {
    await giveToOthers(run, parts);
    return false;
  }
  try {
    if (await holder.start(run)) {
      metrics.countStarted(run.queue, run.waitedMs + platform.timing.monotonicMs() - claimedAtMs);
      onStarted();
      return true;
    }
  } catch (error) {
    if (mode() === 'abandoned') throw error;
    onStartFailed(error);
    await giveBack(run, 'start', parts);
    return false;
  }
  await giveUpRefused(run, parts);
  return false;
}

/** The start was refused: canceled meanwhile, draining, or no longer ours. Each write finds out by its own guard. */
async function giveUpRefused(run: ClaimedRun, parts: StartParts): Promise<void> {
  const { holder, mode, platform } = parts;
  if (await holder.finish(run, without(CANCELED_UNSTARTED))) return;
  const isDraining = mode() === 'draining' || (await holder.isDraining());
  // While draining that is the order of things.
  platform.log[isDraining ? 'info' : 'warn'](
    { code: 'run_start_refused', run: encodeId('run', run.runId), fence: run.fence },
    'the run may not be started by this worker; giving it back if it is still ours',
  );
  await (isDraining ? giveToOthers(run, parts) : giveBack(run, 'start', parts));
}

/** Nothing is claimed here for now, so others are told that there is something to take. */
async function giveToOthers(run: ClaimedRun, parts: StartParts): Promise<void> {
  await giveBack(run, 'release', parts);
  parts.platform.bells.claimable.ring();
}

/** `wanted` is what was tried before, or this itself. */
async function giveBack(run: ClaimedRun, wanted: 'start' | 'release', { holder, metrics }: StartParts): Promise<void> {
  const released = await holder.release([run]);
  if (released.length === 0) metrics.work.countLostRace(wanted);
}

/** The end of a run that has no output of its own. */
export function without(outcome: Outcome): RunEnd {
  return { outcome, output: null, outputDigest: null };
}
