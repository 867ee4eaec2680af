/**
 * Clients behind a balancer that never try again: a request without a proper answer is a failure, and is remembered.
 * Viewers of a long run go on where they were, as the stream's protocol says, and must miss and double nothing.
 */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { StreamClient } from '../runs/stream.fixture.js';
import { TOKEN } from './stage.fixture.js';

export type Kind = 'submit' | 'keyed submit' | 'read' | 'list' | 'follow';

export interface Failure {
  readonly kind: Kind;
  /** What was answered, or how the connection ended. */
  readonly what: string;
  /** Of this machine's clock. */
  readonly sentAtMs: number;
  readonly failedAtMs: number;
}

const KINDS = ['submit', 'read', 'keyed submit', 'list'] as const;

export class Clients {
  readonly failures: Failure[] = [];
  /** Proper answers by kind. */
  readonly answered: Partial<Record<Kind, number>> = {};
  /** Proper answers by the replica that gave them. */
  readonly byReplica: Record<string, number> = {};
  /** TypeIDs of the runs whose submit was answered. */
  readonly acknowledged: string[] = [];
  /** Streams that were ended by a replica in order before the run's end. */
  handedOver = 0;
  private sent = 0;
  private isOver = false;
  private readonly underWay = new Set<Promise<unknown>>();
  private readonly viewers: Promise<Buffer>[];
  private readonly pacing: Promise<void>;

  private constructor(
    private readonly base: string,
    private readonly perSecond: number,
    followed: readonly string[],
  ) {
    this.viewers = followed.map((id) => this.view(id));
    this.pacing = this.pace();
  }

  /** One viewer for each of the runs `followed`. */
  static start(base: string, perSecond: number, followed: readonly string[] = []): Clients {
    return new Clients(base, perSecond, followed);
  }

  /** Sends nothing more. Resolves once everything is answered, with what each viewer saw up to its run's end. */
  async stop(): Promise<Buffer[]> {
    this.isOver = true;
    await this.pacing;
    await Promise.all(this.underWay);
    return Promise.all(this.viewers);
  }

  get count(): number {
    return Object.values(this.answered).reduce((sum, n) => sum + n, 0);
  }

  private async pace(): Promise<void> {
    const begunAt = performance.now();
    while (!this.isOver) {
      const due = ((performance.now() - begunAt) / 1_000) * this.perSecond;
      for (; this.sent < due; this.sent += 1) {
        const one = this.one(this.sent);
        this.underWay.add(one);
        void one.finally(() => this.underWay.delete(one));
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  private async one(n: number): Promise<void> {
    const kind = KINDS[n % KINDS.length] ?? 'list';
    const known = this.acknowledged.at(-1);
    if (kind === 'list') await this.ask(kind, 'GET', '/v1/runs?limit=5');
    else if (kind === 'read') await this.ask(kind, 'GET', known ? `/v1/runs/${known}` : '/v1/runs?limit=1');
    else {
      const body = await this.ask(kind, 'POST', '/v1/runs', kind === 'submit' ? undefined : `${this.base}-${n}`);
      if (body) this.acknowledged.push(JSON.parse(body).id);
    }
  }

  /** The body of a proper answer; each request has a connection of its own, so none is lost with a kept one. */
  private async ask(kind: Kind, method: 'GET' | 'POST', path: string, key?: string): Promise<string | undefined> {
    const sentAtMs = Date.now();
    const fail = (what: string) => this.failures.push({ kind, what, sentAtMs, failedAtMs: Date.now() });
    try {
      const { hostname, port } = new URL(this.base);
      const headers = {
        authorization: `Bearer ${TOKEN}`,
        ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      };
      const sent = request({ hostname, port, method, path, headers, agent: false, timeout: 30_000 });
      sent.on('timeout', () => sent.destroy(new Error('no answer in 30 s')));
      const { answer, text } = await answerTo(sent, method === 'POST' ? '{"kind":"noop"}' : undefined);
      const { statusCode = 0 } = answer;
      if (statusCode < 200 || statusCode > 299) {
        fail(`${statusCode} ${answer.headers['capstan-replica'] ?? 'balancer'} ${text.slice(0, 200)}`);
        return undefined;
      }
      this.note(kind, answer);
      return text;
    } catch (error) {
      fail(String(error));
      return undefined;
    }
  }

  private note(kind: Kind, { headers }: IncomingMessage): void {
    this.answered[kind] = (this.answered[kind] ?? 0) + 1;
    const replica = String(headers['capstan-replica']);
    this.byReplica[replica] = (this.byReplica[replica] ?? 0) + 1;
  }

  private async view(id: string): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let lastEventId: string | undefined; ; ) {
      const sentAtMs = Date.now();
      const fail = (what: string) => this.failures.push({ kind: 'follow', what, sentAtMs, failedAtMs: Date.now() });
      const path = `/v1/runs/${id}/stream`;
      const client = await StreamClient.open({ base: this.base, token: TOKEN, path, lastEventId }).catch(String);
      if (typeof client === 'string') fail(client);
      else {
        await client.closed;
        parts.push(client.output());
        lastEventId = client.lastId;
        if (client.status !== 200) fail(`${client.status}`);
        else if (!client.answer.complete) fail('the stream was broken off');
        else this.note('follow', client.answer);
        if (client.end) return Buffer.concat(parts);
        this.handedOver += 1;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function answerTo(sent: ClientRequest, body?: string): Promise<{ answer: IncomingMessage; text: string }> {
  return new Promise((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (part) => {
        text += part;
      });
      answer.on('error', reject);
      answer.on('end', () => resolve({ answer, text }));
    });
    sent.end(body);
  });
}
