/**
 * Clients that submit at a steady pace through all replicas, each with an Idempotency-Key and as patient as a client
 * that wants its run: the same key again, at the next replica, until it is acknowledged. Remembers what it was promised.
 */
import { decodeId } from '../../src/kernel/ids.js';
import type { CallAnswer, Member, Stage } from './stage.fixture.js';

export interface LoadOptions {
  readonly perSecond: number;
  /** The body of the next submit. */
  readonly body?: (n: number) => object;
  readonly at?: () => readonly Member[];
}

const AGAIN_AFTER_MS = 500;

export class Load {
  /** Key → TypeID of the acknowledged run. */
  readonly acknowledged = new Map<string, string>();
  /** How many answers there were of each status; 0 for none. */
  readonly statuses: Record<number, number> = {};
  /** What no client should ever have been answered. */
  readonly unexpected: string[] = [];
  /** The longest time from sending a try to its answer, whatever it was. */
  slowestMs = 0;
  private sent = 0;
  private isOver = false;
  private readonly name = `load-${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
  private readonly clients = new Set<Promise<void>>();
  private readonly pacing: Promise<void>;

  private constructor(
    private readonly stage: Stage,
    private readonly options: LoadOptions,
  ) {
    this.pacing = this.pace();
  }

  static start(stage: Stage, options: LoadOptions): Load {
    return new Load(stage, options);
  }

  /** Submits nothing more. Resolves once everything that was submitted is acknowledged. */
  async stop(): Promise<void> {
    this.isOver = true;
    await this.pacing;
    await Promise.all(this.clients);
  }

  /** Call it after `stop`: acknowledged runs that don't exist, and keys with another run or several. Empty is well. */
  async faults(): Promise<string[]> {
    const rows = await this.stage.db.query<{ key: string; id: string | null }>(
      `select k.key, r.id::text as id from idempotency_keys k left join runs r on r.id = k.run_id where k.key like $1`,
      [`${this.name}-%`],
    );
    const [{ runs = 0 } = {}] = await this.stage.db.query<{ runs: number }>(
      `select count(*)::integer as runs from runs where labels ->> 'load' = $1`,
      [this.name],
    );
    const made = new Map(rows.map(({ key, id }) => [key, id]));
    const wrong = [...this.acknowledged].filter(([key, id]) => made.get(key) !== decodeId('run', id));
    return [
      ...this.unexpected,
      ...wrong.map(([key, id]) => `${id} was acknowledged for ${key}, which has ${made.get(key) ?? 'no run'}`),
      ...(runs === this.acknowledged.size ? [] : [`${this.acknowledged.size} were acknowledged, ${runs} runs exist`]),
    ];
  }

  private async pace(): Promise<void> {
    const begunAt = performance.now();
    while (!this.isOver) {
      const due = ((performance.now() - begunAt) / 1_000) * this.options.perSecond;
      for (; this.sent < due; this.sent += 1) {
        const client = this.submit(this.sent);
        this.clients.add(client);
        void client.finally(() => this.clients.delete(client));
      }
      await pause(10);
    }
  }

  private async submit(n: number): Promise<void> {
    const { body = () => ({ kind: 'noop', spec: {} }), at = () => this.stage.all() } = this.options;
    const key = `${this.name}-${n}`;
    const request = { ...body(n), labels: { load: this.name } };
    for (let attempt = 0; ; attempt += 1) {
      const members = at();
      const member = members[(n + attempt) % members.length];
      if (member === undefined) throw new Error('there is nobody to submit to');
      const answer = await this.try(member, request, key);
      if (answer !== undefined && answer.status < 300) {
        const { id } = answer.body as { id: string };
        this.acknowledged.set(key, id);
        return;
      }
      await pause(AGAIN_AFTER_MS);
    }
  }

  private async try(member: Member, request: object, key: string): Promise<CallAnswer | undefined> {
    const sentAt = performance.now();
    const answer = await this.stage.call(member, 'POST', '/v1/runs', request, key).catch(() => undefined);
    this.slowestMs = Math.max(this.slowestMs, performance.now() - sentAt);
    const status = answer?.status ?? 0;
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    if (answer && status >= 300 && (status !== 503 || answer.headers.get('retry-after') === null)) {
      this.unexpected.push(`${member.name} answered ${status}: ${JSON.stringify(answer.body).slice(0, 300)}`);
    }
    return answer;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
