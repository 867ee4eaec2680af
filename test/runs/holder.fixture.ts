/** A worker that is nothing but its row: it holds runs of one queue by the product's own statements. */

import { installationChain } from '../../src/audit/audit.sql.js';
import { OutputKeep } from '../../src/execution/output-keep.rules.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import type { JsonValue } from '../../src/kernel/json.js';
import { claimIfLive, startIfHeld } from '../../src/runs/claim.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import type { OutputStream } from '../../src/runs/output.js';
import { appendOutputIfHeld, dropOutputIfHeld } from '../../src/runs/output.sql.js';
import type { Hold, Outcome } from '../../src/runs/run.js';
import { registerIfNew } from '../../src/runs/worker.sql.js';
import type { Surface } from '../send.js';

const LEASE_MS = 10 * 60_000;
const SUCCEEDED: Outcome = {
  state: 'succeeded',
  code: 'ok',
  kind: null,
  detail: 'exit code 0',
  exitCode: 0,
  signal: null,
};

export class Holder {
  readonly id = newId();
  readonly name = 'test-holder';
  private readonly outputs = new Map<string, OutputKeep>();

  private constructor(
    private readonly surface: Surface,
    private readonly limitBytes: number,
  ) {}

  /** `limitBytes` is what is kept of each run's output. */
  static async register(surface: Surface, limitBytes = 64 * 1024 * 1024): Promise<Holder> {
    const holder = new Holder(surface, limitBytes);
    const chain = await installationChain(surface.pool);
    if (!chain) throw new Error('the installation has no chain');
    const { id, name } = holder;
    const life = { id, name, kind: 'worker' as const, slots: 9, queues: [surface.queue], version: '0.0.0' };
    await registerIfNew(surface.pool, life, LEASE_MS, { chain, object: encodeId('wrk', id) });
    return holder;
  }

  /** Claims the oldest run of the surface's queue: also a noop in a step of its own, as if an earlier version had made it. */
  async claim(): Promise<Hold> {
    const { pool, queue } = this.surface;
    await pool.run(
      (sql) => sql`update live_runs set kind = null where queue = ${queue} and kind = 'noop' and claimable`,
    );
    const [claimed] = await claimIfLive(pool, this.id, [queue], 1);
    if (!claimed) throw new Error('there is nothing to claim');
    return { runId: claimed.runId, fence: claimed.fence };
  }

  /** Claims the oldest run and moves it to running. */
  async start(): Promise<Hold> {
    const hold = await this.claim();
    const started = await startIfHeld(this.surface.pool, this.id, [hold]);
    if (started.length === 0) throw new Error('the run could not be started');
    return hold;
  }

  async write(hold: Hold, stream: OutputStream, data: Buffer): Promise<void> {
    const keep = this.keepOf(hold);
    const at = new Date();
    const fitted = keep.fitted([{ stream, at, bytes: data.length }]);
    const cut = keep.makeRoom(fitted);
    if (cut) await dropOutputIfHeld(this.surface.bytePool, this.id, hold, cut);
    const places = keep.placesOf(fitted);
    const batches = fitted.flatMap((sized, i) => (places[i] ? [{ ...sized, ...places[i] }] : []));
    const held = await appendOutputIfHeld(this.surface.bytePool, this.id, hold, batches, data);
    if (!held) throw new Error('the run is not held any more');
    keep.add(fitted);
  }

  private keepOf({ runId, fence }: Hold): OutputKeep {
    const name = `${runId} ${fence}`;
    const keep = this.outputs.get(name) ?? new OutputKeep(this.limitBytes);
    this.outputs.set(name, keep);
    return keep;
  }

  async finish(hold: Hold, outcome: Outcome = SUCCEEDED, output: JsonValue | null = null): Promise<void> {
    const { surface } = this;
    const ended = await finishIfHeld(surface.pool, this.id, [
      {
        ...hold,
        chain: encodeId('org', surface.organizationId),
        object: encodeId('run', hold.runId),
        outcome,
        output,
        outputDigest: null,
      },
    ]);
    if (ended.length === 0) throw new Error('the run could not be ended');
  }
}
