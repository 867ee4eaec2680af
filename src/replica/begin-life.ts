/** How a life begins: its supervisor is started, its row is registered, and both are tried until they work. */
import { startSupervisor } from '../execution/supervisor/supervisor.client.js';
import { encodeId, newId } from '../kernel/ids.js';
import { productVersion } from '../platform/http/product.js';
import type { NewWorker } from '../runs/worker.js';
import { registerIfNew } from '../runs/worker.sql.js';
import { Life, type LifeParts } from './life.js';

const LONGEST_PAUSE_MS = 30_000;

/**
 * Starts a supervisor and registers a life, both tried until they work; `undefined` when aborted. `before` is the life of
 * this process that ended. Without one, throws when the supervisor can't be started: this machine is not fit, and a
 * person should see why.
 */
export async function beginLife(
  parts: LifeParts,
  before: string | null,
  signal: AbortSignal,
): Promise<Life | undefined> {
  const { platform } = parts;
  const { config, log, timing } = platform;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    const worker: NewWorker = {
      id: newId(),
      name: config.name,
      kind: parts.kind,
      slots: config.slots,
      queues: config.queues,
      version: productVersion(),
    };
    try {
      const supervisor = await startSupervisor({
        incarnation: worker.id,
        graceMs: config.killGraceMs,
        deadlineMs: config.toolDeadlineMs,
        http: { allow: config.httpAllow, userAgent: `capstan/${worker.version}`, caFile: config.caFile },
        // At the start a fact of the machine; later something broke.
        onGroupsOnly: (tools, why) =>
          log[tools === 'all' ? 'info' : 'warn'](
            { code: 'groups_only', tools, why },
            'tools have no cgroup: what leaves its group by setsid is not stopped',
          ),
        onLeftovers: (cgroups) =>
          log.warn({ code: 'leftovers', cgroups }, 'what a dead supervisor left cannot be ended and lives on'),
      });
      if (await register(parts, worker, before, signal)) return new Life(parts, worker, supervisor);
      await supervisor.shutdown();
      supervisor.closeKeeperFd();
    } catch (error) {
      if (before === null) throw error;
      log.error({ code: 'supervisor_not_started', err: error }, 'no supervisor could be started; trying on');
      await timing.delay(Math.min(500 * 2 ** attempt, LONGEST_PAUSE_MS), signal);
    }
  }
  return undefined;
}

/** Tries until the worker's row stands; false when aborted. */
async function register(
  parts: LifeParts,
  worker: NewWorker,
  before: string | null,
  signal: AbortSignal,
): Promise<boolean> {
  const { config, log, pools, timing } = parts.platform;
  const entry = { chain: parts.installationChain, object: encodeId('wrk', worker.id) };
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      await registerIfNew(pools.work, worker, config.leaseTtlMs, entry, before, {
        signs: parts.signs,
        wallMs: Date.now(),
      });
      return true;
    } catch (error) {
      if (attempt === 0)
        log.warn({ code: 'register_retried', err: error }, 'the worker is not registered yet; trying on');
      await timing.delay(Math.min(100 * 2 ** attempt, 2_000), signal);
    }
  }
  return false;
}
