/**
 * Watches the main thread from the keeper. Invariant: a process whose main thread stands still ends only after its
 * tools were stopped by their deadline, and it does end, whatever else hangs.
 */
import { write } from 'node:fs';
import type { KeeperSettings } from './keeper.js';
import { isStalled, type Standstill, standstillAfter, TICK_MS, untilToolsStoppedMs } from './keeper.rules.js';
import { nowMs } from './monotonic.js';
import type { SharedMemory } from './shared-memory.js';

/** Writing the last line may take so long before the process is killed without it. */
const LAST_LINE_MS = 1_000;

export class StallWatch {
  private standstill: Standstill;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly settings: KeeperSettings,
    private readonly memory: SharedMemory,
    private readonly stopRenewing: () => void,
  ) {
    this.standstill = { counter: memory.mainTicks, ticks: 0 };
  }

  start(): void {
    this.timer = setInterval(() => this.tick(), this.settings.tickMs ?? TICK_MS);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    this.standstill = standstillAfter(this.standstill, this.memory.mainTicks);
    if (!isStalled(this.standstill, this.settings.stallLimitMs, this.settings.tickMs ?? TICK_MS)) return;
    this.stop();
    // For good: a tool that was told to stop is never reprieved, so a main thread that wakes now has lost its runs.
    this.stopRenewing();
    const waitMs = untilToolsStoppedMs(this.memory.extensionSentAtMs, nowMs(), this.settings);
    setTimeout(() => endProcess(this.settings.stallLimitMs), waitMs);
  }
}

function endProcess(stallLimitMs: number): void {
  const kill = () => process.kill(process.pid, 'SIGKILL');
  const line = JSON.stringify({
    level: 'fatal',
    time: new Date().toISOString(),
    code: 'main_thread_stalled',
    stallLimitMs,
    msg: 'the main thread stands still: leases were given up, tools stopped by their deadline; the process is killed',
  });
  // Nobody reading standard error may be why the main thread stands still, so no synchronous write here.
  write(2, `${line}\n`, kill);
  setTimeout(kill, LAST_LINE_MS);
}
