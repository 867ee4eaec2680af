/**
 * A client of Capstan's HTTP API: `new Capstan({ url, token })`. What may be sent again is sent again while trouble may
 * pass; whatever makes something carries an `Idempotency-Key`, so that a lost answer never makes it twice.
 */
import { CapstanError, CapstanProblem, NoConnection, UnexpectedAnswer } from './errors.js';
import { Items, PAGE_ITEMS } from './items.js';
import { dataOf, type RawClient, rawClient } from './raw.js';
import type {
  AuditEntry,
  AuditFilter,
  BatchItem,
  BatchSubmission,
  BundlePick,
  Canceled,
  Queue,
  ReceiptCheck,
  Reruns,
  Retention,
  Run,
  RunEvent,
  RunFilter,
  RunSummary,
  SigningKeys,
  Submission,
  Verification,
  VerificationPick,
  Version,
  Why,
  Worker,
} from './resources.js';
import { messagesOf, type StreamMessage, type StreamName, type StreamPick } from './stream.js';
import { headerText, Transport } from './transport.js';
import { verificationSteps } from './verification.js';

export type { InputFault, ProblemCode, ProblemDocument } from './errors.js';
export type { Page } from './items.js';
export type * from './resources.js';
export type { components, operations, paths } from './schema.js';
export type * from './stream.js';
export { CapstanError, CapstanProblem, type Items, NoConnection, type RawClient, UnexpectedAnswer };

export interface CapstanOptions {
  /** Of a server or of the balancer in front of several: `https://capstan.example.com`. */
  readonly url: string | URL;
  readonly token?: string | undefined;
  /** How long passing trouble of one request is waited out, in milliseconds; 15 s by default. */
  readonly patienceMs?: number | undefined;
}

export interface CallOptions {
  /** Ends the call, and every wait in it, at once; its reason is thrown. */
  readonly signal?: AbortSignal | undefined;
}

/** Of a call that makes something. */
export interface MakingOptions extends CallOptions {
  /** None: one for this call alone, the same in all its tries. */
  readonly idempotencyKey?: string | undefined;
}

/** Bundles are made behind one another, and a chain is recomputed before. */
const BUNDLE_TRY_MS = 280_000;
const BUNDLE_TYPES = 'application/vnd.kordloom.loomseal+json, application/problem+json';
/** Of how many runs one request makes new ones at most. */
const RERUNS_AT_ONCE = 1_000;
/** A key has up to 255. */
const MAX_KEY_BYTES_OF_PARTS = 240;

export class Capstan {
  /** Every route as the OpenAPI document has it, for what has no method here. Throws as the methods do. */
  readonly raw: RawClient;
  private readonly transport: Transport;

  /** Throws a `TypeError` when the URL or the token can't be one. */
  constructor({ url, token, patienceMs }: CapstanOptions) {
    const base = baseOf(url);
    if (token !== undefined && !/^[\x21-\x7e]{1,255}$/.test(token)) {
      throw new TypeError('token: expected 1 to 255 visible ASCII characters');
    }
    this.transport = new Transport({ url: base, token, patienceMs });
    this.raw = rawClient(this.transport, base);
  }

  submit(submission: Submission, options: MakingOptions = {}): Promise<Run> {
    return dataOf(this.raw.POST('/v1/runs', { body: submission, ...making(options) }));
  }

  /** Up to 1,000 in one transaction; what came of each, in their order. One that is refused is no reason to throw. */
  async submitBatch(runs: readonly BatchSubmission[], options: MakingOptions = {}): Promise<BatchItem[]> {
    const { data, error } = await this.raw.POST('/v1/runs/batch', { body: { runs: [...runs] }, ...making(options) });
    const answer = data ?? error;
    if (answer !== undefined && 'items' in answer) return answer.items;
    throw new UnexpectedAnswer('it is no answer to a batch');
  }

  run(id: string, { signal }: CallOptions = {}): Promise<Run> {
    return dataOf(this.raw.GET('/v1/runs/{id}', { ...named(id), signal }));
  }

  /** Newest first. */
  runs(filter: RunFilter = {}, { signal }: CallOptions = {}): Items<RunSummary> {
    return new Items((cursor) =>
      dataOf(this.raw.GET('/v1/runs', { params: { query: { ...filter, ...page(cursor) } }, signal })),
    );
  }

  /** Why it isn't running, and what would change that. */
  why(id: string, { signal }: CallOptions = {}): Promise<Why> {
    return dataOf(this.raw.GET('/v1/runs/{id}/why', { ...named(id), signal }));
  }

  /** Its `endedAt` is null when the tool has still to be stopped. */
  cancel(id: string, { signal }: CallOptions = {}): Promise<Run> {
    return dataOf(this.raw.POST('/v1/runs/{id}/cancel', { ...named(id), signal }));
  }

  /** A new run of the same definition. */
  rerun(id: string, { signal, ...options }: MakingOptions = {}): Promise<Run> {
    const { params } = making(options);
    return dataOf(this.raw.POST('/v1/runs/{id}/rerun', { params: { ...named(id).params, ...params }, signal }));
  }

  /** Cancels all that match by now, however many; `dryRun` only counts them. */
  async cancelRuns(filter: RunFilter, options: CallOptions & { readonly dryRun?: boolean } = {}): Promise<Canceled> {
    const { signal } = options;
    const [newest] = options.dryRun ? [] : await this.runs(filter, { signal }).toArray(1);
    const meant = newest === undefined ? filter : upTo(newest, filter);
    // Where nothing matches, only the filter is checked.
    const dryRun = newest === undefined;
    const all = { matched: 0, canceled: 0, stopping: 0 };
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const body = { filter: meant, dryRun, ...(cursor === undefined ? {} : { cursor }) };
      const part = await dataOf(this.raw.POST('/v1/runs/cancel', { body, signal }));
      all.matched += part.matched;
      all.canceled += part.canceled;
      all.stopping += part.stopping;
      cursor = part.next;
    }
    return all;
  }

  /** Makes a new run for each that matches, up to `limit` of them; `dryRun` only counts. */
  async rerunRuns(
    filter: RunFilter,
    options: MakingOptions & { readonly dryRun?: boolean; readonly limit?: number } = {},
  ): Promise<Reruns> {
    const { signal, dryRun = false, limit = Number.POSITIVE_INFINITY, idempotencyKey = crypto.randomUUID() } = options;
    if (headerText(idempotencyKey).length > MAX_KEY_BYTES_OF_PARTS) {
      throw new TypeError(
        `idempotencyKey: expected at most ${MAX_KEY_BYTES_OF_PARTS} bytes: each part adds its number`,
      );
    }
    const all: Reruns = { matched: 0, items: [] };
    let cursor: string | null | undefined;
    for (let part = 1; cursor !== null && (all.items.length < limit || part === 1); part++) {
      const body = {
        filter,
        dryRun,
        limit: Math.min(RERUNS_AT_ONCE, limit - all.items.length),
        ...(cursor === undefined ? {} : { cursor }),
      };
      // A part is another request than the one before it, and the same each time all of it is asked for again.
      const key = part === 1 ? idempotencyKey : `${idempotencyKey}/${part}`;
      const answer = await dataOf(
        this.raw.POST('/v1/runs/rerun', { body, ...making({ signal, idempotencyKey: key }) }),
      );
      all.matched += answer.matched;
      all.items.push(...answer.items);
      cursor = answer.next;
    }
    return all;
  }

  /**
   * What happens to a run, as it happens, up to its `end`: over lost connections and other replicas, each message once.
   * Leave the loop, or abort the signal, to stop; the run goes on.
   */
  follow(
    id: string,
    { signal, ...pick }: StreamPick & CallOptions = {},
  ): AsyncGenerator<StreamMessage, void, undefined> {
    return messagesOf(this.transport, id, pick, signal);
  }

  /** The run, once it has ended. */
  async wait(id: string, { signal }: CallOptions = {}): Promise<Run> {
    for await (const message of this.follow(id, { tail: 0, signal })) {
      if (message.type === 'end') return message.run;
    }
    throw new UnexpectedAnswer('the messages of a run ended without its end');
  }

  /** What it has written by now. */
  output(
    id: string,
    { stream, tail, signal }: { stream?: StreamName; tail?: number } & CallOptions = {},
  ): Promise<Uint8Array> {
    const query = new URLSearchParams();
    if (stream !== undefined) query.set('stream', stream);
    if (tail !== undefined) query.set('tail', String(tail));
    const path = `v1/runs/${encodeURIComponent(id)}/output?${query}`;
    return this.bytes(path, { accept: 'text/plain, application/problem+json' }, signal);
  }

  /** Oldest first. */
  events(id: string, { signal }: CallOptions = {}): Items<RunEvent> {
    return new Items((cursor) =>
      dataOf(this.raw.GET('/v1/runs/{id}/events', { params: { ...named(id).params, query: page(cursor) }, signal })),
    );
  }

  workers({ signal }: CallOptions = {}): Items<Worker> {
    return new Items((cursor) => dataOf(this.raw.GET('/v1/workers', { params: { query: page(cursor) }, signal })));
  }

  worker(id: string, { signal }: CallOptions = {}): Promise<Worker> {
    return dataOf(this.raw.GET('/v1/workers/{id}', { ...named(id), signal }));
  }

  /** It takes no more runs; those that it has end by themselves. */
  drain(workerId: string, { signal }: CallOptions = {}): Promise<Worker> {
    return dataOf(this.raw.POST('/v1/workers/{id}/drain', { ...named(workerId), signal }));
  }

  undrain(workerId: string, { signal }: CallOptions = {}): Promise<Worker> {
    return dataOf(this.raw.POST('/v1/workers/{id}/undrain', { ...named(workerId), signal }));
  }

  queues({ signal }: CallOptions = {}): Items<Queue> {
    return new Items((cursor) => dataOf(this.raw.GET('/v1/queues', { params: { query: page(cursor) }, signal })));
  }

  pauseQueue(name: string, reason: string, { signal }: CallOptions = {}): Promise<Queue> {
    const body = { paused: true, reason };
    return dataOf(this.raw.PUT('/v1/queues/{name}', { params: { path: { name } }, body, signal }));
  }

  resumeQueue(name: string, { reason = null, signal }: { reason?: string | null } & CallOptions = {}): Promise<Queue> {
    const body = { paused: false, reason };
    return dataOf(this.raw.PUT('/v1/queues/{name}', { params: { path: { name } }, body, signal }));
  }

  /** How long ended runs of the token's organization are kept. */
  retention({ signal }: CallOptions = {}): Promise<Retention> {
    return dataOf(this.raw.GET('/v1/retention', { signal }));
  }

  /** Keeps them for a duration such as `14d` from now on; null for what the installation says. What is older is removed. */
  putRetention(retention: string | null, { signal }: CallOptions = {}): Promise<Retention> {
    return dataOf(this.raw.PUT('/v1/retention', { body: { retention }, signal }));
  }

  /** Entries of a chain, newest first. */
  audit(filter: AuditFilter = {}, { signal }: CallOptions = {}): Items<AuditEntry> {
    return new Items((cursor) =>
      dataOf(this.raw.GET('/v1/audit', { params: { query: { ...filter, ...page(cursor) } }, signal })),
    );
  }

  /** Whether the chain still holds the very entry of a receipt. */
  checkReceipt(receipt: string, { signal }: CallOptions = {}): Promise<ReceiptCheck> {
    return dataOf(this.raw.GET('/v1/audit/receipts/{receipt}', { params: { path: { receipt } }, signal }));
  }

  /** Has a chain recomputed, which takes as long as it is. */
  async verifyAudit(pick: VerificationPick = {}, { signal }: CallOptions = {}): Promise<Verification> {
    for await (const { type, document } of verificationSteps(this.transport, queryOf(pick), signal)) {
      // As the document says.
      if (type === 'result') return document as Verification;
    }
    throw new UnexpectedAnswer('the verification ended without a result');
  }

  /** A signed bundle, byte for byte. Each one that is made is an entry of its own in the chain. */
  auditBundle(pick: BundlePick = {}, { signal }: CallOptions = {}): Promise<Uint8Array> {
    const headers = { accept: BUNDLE_TYPES, 'accept-encoding': 'identity' };
    return this.bytes(`v1/audit/bundle?${queryOf(pick)}`, headers, signal, BUNDLE_TRY_MS);
  }

  auditKey({ signal }: CallOptions = {}): Promise<SigningKeys> {
    return dataOf(this.raw.GET('/v1/audit/key', { signal }));
  }

  /** The public half alone, as the 32 raw bytes in base64; said again it changes nothing. */
  rotateAuditKey(publicKey: string, { signal }: CallOptions = {}): Promise<SigningKeys> {
    return dataOf(this.raw.POST('/v1/audit/key', { body: { publicKey }, signal }));
  }

  version({ signal }: CallOptions = {}): Promise<Version> {
    return dataOf(this.raw.GET('/v1/version', { signal }));
  }

  private bytes(
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    tryMs?: number,
  ): Promise<Uint8Array> {
    return this.transport.send(
      () => ({ method: 'GET', path, headers, signal, tryMs }),
      async (response, stopClock) => {
        if (tryMs === undefined) stopClock();
        return new Uint8Array(await response.arrayBuffer());
      },
    );
  }
}

function baseOf(url: string | URL): URL {
  const base = URL.canParse(String(url)) ? new URL(url) : undefined;
  const isUsable = base !== undefined && /^https?:$/.test(base.protocol) && base.search === '' && base.hash === '';
  // It isn't repeated: there may be a password in it.
  if (!isUsable) throw new TypeError('url: expected http://HOST:PORT or https://HOST');
  if (base.username !== '' || base.password !== '') throw new TypeError('url: a user or password in it is not taken');
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  return base;
}

/**
 * What matches a filter and isn't newer than the newest: a first part that is sent again begins at the newest once more,
 * and what was submitted meanwhile isn't meant. A filter that names nothing stays one, and is refused.
 */
function upTo({ createdAt }: RunSummary, filter: RunFilter): RunFilter {
  if (Object.values(filter).every((member) => member === undefined)) return filter;
  return { ...filter, createdBefore: new Date(Date.parse(createdAt) + 1).toISOString() };
}

function named(id: string) {
  return { params: { path: { id } } };
}

function page(cursor: string | undefined) {
  return { limit: PAGE_ITEMS, ...(cursor === undefined ? {} : { cursor }) };
}

function making({ signal, idempotencyKey }: MakingOptions) {
  const header = idempotencyKey === undefined ? {} : { 'Idempotency-Key': headerText(idempotencyKey) };
  return { params: { header }, signal };
}

function queryOf(members: Readonly<Record<string, unknown>>): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) if (value !== undefined) query.set(name, String(value));
  return query;
}
