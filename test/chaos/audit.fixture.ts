/**
 * Clients that change things at all replicas as fast as they are let, and remember what they were told: every receipt, and
 * every change that was acknowledged. What they do is refused now and then, too.
 */
import { randomUUID } from 'node:crypto';
import { encodeId } from '../../src/kernel/ids.js';
import { type Member, type Stage, TOKEN } from './stage.fixture.js';

const PAUSE_MS = 50;
const ANSWER_WITHIN_MS = 15_000;
/** A queue that nobody serves: its runs stay pending until they are canceled. */
const NOBODY = 'nobody';

/** A change that was answered 2xx. */
export interface Acknowledged {
  readonly receipt: string | null;
  /** TypeID of what was changed. */
  readonly object: string;
  /** What the entry may be about. */
  readonly actions: readonly string[];
}

interface Told {
  readonly status: number;
  readonly receipt: string | null;
  readonly body: { readonly id?: string; readonly code?: string };
}

/** Where is written to, tokens that are refused, and a worker that is drained and put back all the time. */
export interface Scenery {
  readonly replicas: readonly string[];
  readonly revoked: string;
  readonly powerless: string;
  /** TypeID. */
  readonly worker: string;
}

export class Writers {
  readonly acknowledged: Acknowledged[] = [];
  readonly receipts = new Set<string>();
  /** How many answers there were of each status; 0 for none. */
  readonly statuses: Record<number, number> = {};
  /** What no client should ever have been answered. */
  readonly unexpected: string[] = [];
  private isOver = false;
  private readonly writing: Promise<unknown>;

  private constructor(
    private readonly stage: Stage,
    private readonly scenery: Scenery,
    count: number,
  ) {
    this.writing = Promise.all(Array.from({ length: count }, (_, n) => this.write(n)));
  }

  static start(stage: Stage, scenery: Scenery, count: number): Writers {
    return new Writers(stage, scenery, count);
  }

  /** Resolves once everybody has his last answer. */
  async stop(): Promise<void> {
    this.isOver = true;
    await this.writing;
  }

  private async write(n: number): Promise<void> {
    const { replicas, worker, revoked, powerless } = this.scenery;
    for (let turn = n; !this.isOver; turn += 1) {
      const at = this.stage.get(replicas[turn % replicas.length] ?? '');
      switch (turn % 8) {
        case 0:
        case 1:
        case 2:
        case 3:
          await this.submitAndCancel(at, turn % 8);
          break;
        case 4:
          await this.change(at, `/v1/workers/${worker}/drain`, worker, ['worker.draining']);
          break;
        case 5:
          await this.change(at, `/v1/workers/${worker}/undrain`, worker, ['worker.undrained']);
          break;
        case 6:
          await this.beRefused(at, 401, 'GET', '/v1/runs', revoked);
          break;
        default:
          await this.beRefused(at, 403, 'POST', `/v1/workers/${worker}/drain`, powerless);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  /** Some runs are executed, others wait, are canceled in place and run again. */
  private async submitAndCancel(at: Member, kind: number): Promise<void> {
    const json = { kind: 'noop', queue: kind === 0 ? 'default' : NOBODY };
    const id = await this.change(at, '/v1/runs', undefined, ['run.submitted'], json);
    if (id === undefined || kind < 2) return;
    const canceled = await this.change(at, `/v1/runs/${id}/cancel`, id, ['run.ended', 'run.cancel_requested']);
    if (canceled !== undefined && kind === 3)
      await this.change(at, `/v1/runs/${id}/rerun`, undefined, ['run.submitted']);
  }

  /** Resolves with the id of what was changed or made; undefined when that is not known. */
  private async change(
    at: Member,
    path: string,
    object: string | undefined,
    actions: readonly string[],
    json?: unknown,
  ): Promise<string | undefined> {
    const told = await this.ask(at, 'POST', path, TOKEN, json);
    if (!told) return undefined;
    const { status, receipt, body } = told;
    if (status >= 200 && status < 300) {
      const changed = object ?? body.id ?? 'nothing';
      this.acknowledged.push({ receipt, object: changed, actions });
      return changed;
    }
    if (status !== 503) this.unexpected.push(`${at.name} answered ${path} with ${status} ${body.code}`);
    return undefined;
  }

  private async beRefused(at: Member, status: number, method: string, path: string, token: string): Promise<void> {
    const told = await this.ask(at, method, path, token);
    if (told && told.status !== status && told.status !== 503) {
      this.unexpected.push(`${at.name} answered ${path} with ${told.status} instead of ${status}`);
    }
  }

  /** Undefined when no answer came. */
  private async ask(
    { url }: Member,
    method: string,
    path: string,
    token: string,
    json?: unknown,
  ): Promise<Told | undefined> {
    try {
      const answer = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(json === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      const body = (await answer.json()) as Told['body'];
      const receipt = answer.headers.get('audit-receipt');
      if (receipt !== null) this.receipts.add(receipt);
      if (answer.status === 503 && answer.headers.get('retry-after') === null) {
        this.unexpected.push(`${path} was answered 503 without Retry-After`);
      }
      this.statuses[answer.status] = (this.statuses[answer.status] ?? 0) + 1;
      return { status: answer.status, receipt, body };
    } catch {
      this.statuses[0] = (this.statuses[0] ?? 0) + 1;
      return undefined;
    }
  }
}

/** Puts it into the database of a stage, past its replicas. */
export async function prepareScenery(stage: Stage, replicas: readonly string[]): Promise<Scenery> {
  const [revoked, powerless] = [`cap_${randomUUID()}`, `cap_${randomUUID()}`];
  await stage.db.query(
    `insert into tokens (id, organization_id, name, hash, revoked_at)
     select gen_random_uuid(), o.id, t.name, sha256(convert_to(t.token, 'UTF8')), t.revoked_at
     from organizations o,
          (values ('revoked', $1::text, now()), ('powerless', $2::text, null)) as t (name, token, revoked_at)
     where o.name = 'default'`,
    [revoked, powerless],
  );
  const [row] = await stage.db.query<{ id: string }>(
    `insert into workers (id, name, kind, slots, queues, version, ttl_ms, lease_until)
     values (gen_random_uuid(), 'target', 'worker', 0, array['${NOBODY}'], '0', 30000, now() + interval '1 day')
     returning id`,
  );
  const worker = encodeId('wrk', row?.id ?? '');
  // From here on there is an entry that says why it is where it is.
  for (const verb of ['drain', 'undrain']) {
    await stage.call(stage.get(replicas[0] ?? ''), 'POST', `/v1/workers/${worker}/${verb}`);
  }
  return { replicas, revoked, powerless, worker };
}
