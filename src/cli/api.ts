/** The calls of the API that the client makes, one method each. Every one may be sent more than once unharmed. */

import { readJson } from '../client/transport.js';
import {
  type BatchItem,
  type Canceled,
  decodeBatch,
  decodeCanceled,
  decodeReruns,
  type Reruns,
} from './bulk-answers.js';
import { type BundleFile, readBundleFile } from './bundle-file.js';
import type { ApiRequest, HttpClient } from './http.js';
import {
  type AuditEntry,
  decodeAuditEntry,
  decodePage,
  decodeQueue,
  decodeReceiptCheck,
  decodeRetention,
  decodeRun,
  decodeRunEvent,
  decodeSigningKeys,
  decodeWhy,
  decodeWorker,
  type Queue,
  type ReceiptCheck,
  type Retention,
  type Run,
  type RunEvent,
  type SigningKeys,
  type Why,
  type Worker,
} from './resources.js';

/** An answer as it came, for `--json`, and what it says, for a person. */
export interface Answer<T> {
  readonly document: unknown;
  readonly value: T;
}

/** The first items of a list, and the cursor of what follows. */
export interface Part<T> {
  readonly items: Answer<T>[];
  readonly next: string | null;
}

export interface Submitted extends Answer<Run> {
  /** The key was used before: this is the run that it made then. */
  readonly isReplay: boolean;
}

/** What narrows a list of runs, in the words of the API. */
export type RunFilter = Readonly<Record<string, string | readonly string[]>>;

/** The most that the server puts on one page. */
const PAGE_ITEMS = 200;
/** Others may wait for theirs, and a chain is recomputed before. */
const BUNDLE_TRY_MS = 280_000;
const BUNDLE_TYPES = 'application/vnd.kordloom.loomseal+json, application/problem+json';
const KEY_PATH = 'v1/audit/key';
const RETENTION_PATH = 'v1/retention';
/** A server works on one part for up to 25 s. */
const BULK_TRY_MS = 60_000;

export interface BulkPart {
  /** Counts alone. */
  readonly dryRun: boolean;
  readonly cursor?: string;
}

export class Api {
  constructor(readonly http: HttpClient) {}

  submit(submission: unknown, key: string): Promise<Submitted> {
    return this.launch({ method: 'POST', path: 'v1/runs', body: submission }, key);
  }

  /** A new run of the same definition. */
  rerun(id: string, key: string): Promise<Submitted> {
    return this.launch({ method: 'POST', path: `${pathOf(id)}/rerun` }, key);
  }

  /** `key` makes one run of however many tries. */
  private launch(launch: ApiRequest, key: string): Promise<Submitted> {
    const request = { ...launch, idempotencyKey: key };
    return this.http.send(
      () => request,
      async (response) => {
        const document = await readJson(response);
        const isReplay = response.headers.get('idempotency-replayed') === 'true';
        return { document, value: decodeRun(document), isReplay };
      },
    );
  }

  run(id: string): Promise<Answer<Run>> {
    return this.ask({ method: 'GET', path: pathOf(id) }, decodeRun);
  }

  why(id: string): Promise<Answer<Why>> {
    return this.ask({ method: 'GET', path: `${pathOf(id)}/why` }, decodeWhy);
  }

  cancel(id: string): Promise<Answer<Run>> {
    return this.ask({ method: 'POST', path: `${pathOf(id)}/cancel` }, decodeRun);
  }

  /** Up to `limit` runs, newest first; `next` leads on when there are more. */
  runs(filter: RunFilter, limit: number): Promise<Part<Run>> {
    return this.pages('v1/runs', queryOf(filter), limit, decodeRun);
  }

  /** One part of all that match; `next` leads on. Said again it changes nothing. */
  async cancelMany(filter: RunFilter, part: BulkPart): Promise<Canceled> {
    const body = { filter, ...part };
    const request: ApiRequest = { method: 'POST', path: 'v1/runs/cancel', body, tryMs: BULK_TRY_MS };
    return (await this.ask(request, decodeCanceled)).value;
  }

  /** One part of all that match and have ended; `key` makes no run twice. */
  async rerunMany(filter: RunFilter, part: BulkPart, key: string): Promise<Reruns> {
    const body = { filter, ...part };
    const request: ApiRequest = {
      method: 'POST',
      path: 'v1/runs/rerun',
      body,
      idempotencyKey: key,
      tryMs: BULK_TRY_MS,
    };
    return (await this.ask(request, decodeReruns)).value;
  }

  /** One answer for each of up to 1,000 submits, in their order; `key` makes no run twice. */
  async batch(runs: readonly unknown[], key: string): Promise<readonly BatchItem[]> {
    const request: ApiRequest = {
      method: 'POST',
      path: 'v1/runs/batch',
      body: { runs },
      idempotencyKey: key,
      // None was taken: each says why.
      wanted: [422],
      tryMs: BULK_TRY_MS,
    };
    return (await this.ask(request, (document) => decodeBatch(document, runs.length))).value;
  }

  /** Up to `limit` events of a run, oldest first. */
  events(id: string, limit: number): Promise<Part<RunEvent>> {
    return this.pages(`${pathOf(id)}/events`, new URLSearchParams(), limit, decodeRunEvent);
  }

  /** All of them. */
  async workers(): Promise<Answer<Worker>[]> {
    return (await this.pages('v1/workers', new URLSearchParams(), Number.POSITIVE_INFINITY, decodeWorker)).items;
  }

  worker(id: string): Promise<Answer<Worker>> {
    return this.ask({ method: 'GET', path: workerPath(id) }, decodeWorker);
  }

  drain(id: string): Promise<Answer<Worker>> {
    return this.ask({ method: 'POST', path: `${workerPath(id)}/drain` }, decodeWorker);
  }

  undrain(id: string): Promise<Answer<Worker>> {
    return this.ask({ method: 'POST', path: `${workerPath(id)}/undrain` }, decodeWorker);
  }

  /** All of them. */
  async queues(): Promise<Answer<Queue>[]> {
    return (await this.pages('v1/queues', new URLSearchParams(), Number.POSITIVE_INFINITY, decodeQueue)).items;
  }

  pauseQueue(name: string, reason: string): Promise<Answer<Queue>> {
    return this.putQueue(name, { paused: true, reason });
  }

  resumeQueue(name: string, reason: string | null): Promise<Answer<Queue>> {
    return this.putQueue(name, { paused: false, reason });
  }

  private putQueue(name: string, body: object): Promise<Answer<Queue>> {
    return this.ask({ method: 'PUT', path: `v1/queues/${encodeURIComponent(name)}`, body }, decodeQueue);
  }

  retention(): Promise<Answer<Retention>> {
    return this.ask({ method: 'GET', path: RETENTION_PATH }, decodeRetention);
  }

  /** Null: as long as the installation says. */
  putRetention(retention: string | null): Promise<Answer<Retention>> {
    return this.ask({ method: 'PUT', path: RETENTION_PATH, body: { retention } }, decodeRetention);
  }

  /** Up to `limit` entries of a chain, newest first. */
  auditEntries(filter: URLSearchParams, limit: number): Promise<Part<AuditEntry>> {
    return this.pages('v1/audit', filter, limit, decodeAuditEntry);
  }

  receipt(receipt: string): Promise<Answer<ReceiptCheck>> {
    return this.ask({ method: 'GET', path: `v1/audit/receipts/${encodeURIComponent(receipt)}` }, decodeReceiptCheck);
  }

  version(): Promise<Answer<unknown>> {
    return this.ask({ method: 'GET', path: 'v1/version' }, (document) => document);
  }

  auditKey(): Promise<Answer<SigningKeys>> {
    return this.ask({ method: 'GET', path: KEY_PATH }, decodeSigningKeys);
  }

  /** The public half alone; said again it changes nothing. */
  rotateAuditKey(publicKey: string): Promise<Answer<SigningKeys>> {
    return this.ask({ method: 'POST', path: KEY_PATH, body: { publicKey } }, decodeSigningKeys);
  }

  /** A bundle, byte for byte. Each try that the server carries out is an entry of its own in the chain. */
  auditBundle(query: URLSearchParams): Promise<BundleFile> {
    const headers = { accept: BUNDLE_TYPES, 'accept-encoding': 'identity' };
    const request: ApiRequest = { method: 'GET', path: 'v1/audit/bundle', query, headers, tryMs: BUNDLE_TRY_MS };
    return this.http.send(() => request, readBundleFile);
  }

  /** Walks the pages of a list until there are `limit` items or no more pages. */
  private async pages<T>(
    path: string,
    query: URLSearchParams,
    limit: number,
    decode: (item: unknown) => T,
  ): Promise<Part<T>> {
    const items: Answer<T>[] = [];
    let next: string | null = null;
    do {
      query.set('limit', String(Math.min(PAGE_ITEMS, limit - items.length)));
      if (next !== null) query.set('cursor', next);
      const { value } = await this.ask({ method: 'GET', path, query: new URLSearchParams(query) }, decodePage);
      items.push(...value.items.map((document) => ({ document, value: decode(document) })));
      next = value.next;
    } while (next !== null && items.length < limit);
    return { items, next };
  }

  private ask<T>(request: ApiRequest, decode: (document: unknown) => T): Promise<Answer<T>> {
    return this.http.send(
      () => request,
      async (response) => {
        const document = await readJson(response);
        return { document, value: decode(document) };
      },
    );
  }
}

function queryOf(filter: RunFilter): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) for (const each of [value].flat()) query.append(name, each);
  return query;
}

/** Path of a run. */
export function pathOf(id: string): string {
  return `v1/runs/${encodeURIComponent(id)}`;
}

function workerPath(id: string): string {
  return `v1/workers/${encodeURIComponent(id)}`;
}
