/** The calls of the API that the client makes, one method each. Every one may be sent more than once unharmed. */
import { type BundleFile, readBundleFile } from './bundle-file.js';
import { type ApiRequest, type HttpClient, readJson } from './http.js';
import {
  type AuditEntry,
  decodeAuditEntry,
  decodePage,
  decodeQueue,
  decodeRun,
  decodeRunEvent,
  decodeSigningKeys,
  decodeWorker,
  type Queue,
  type Run,
  type RunEvent,
  type SigningKeys,
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

export interface RunFilter {
  readonly state: readonly string[];
  readonly kind?: string;
  readonly queue?: string;
  /** `[key, value]`; all of them. */
  readonly labels: readonly (readonly [string, string])[];
}

/** The most that the server puts on one page. */
const PAGE_ITEMS = 200;
/** Others may wait for theirs, and a chain is recomputed before. */
const BUNDLE_TRY_MS = 280_000;
const BUNDLE_TYPES = 'application/vnd.kordloom.loomseal+json, application/problem+json';
const KEY_PATH = 'v1/audit/key';

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
    // A header holds bytes: fetch takes each as one character.
    const headers = { 'idempotency-key': Buffer.from(key, 'utf8').toString('latin1') };
    const request = { ...launch, headers };
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

  cancel(id: string): Promise<Answer<Run>> {
    return this.ask({ method: 'POST', path: `${pathOf(id)}/cancel` }, decodeRun);
  }

  /** Up to `limit` runs, newest first; `next` leads on when there are more. */
  runs(filter: RunFilter, limit: number): Promise<Part<Run>> {
    return this.pages('v1/runs', queryOf(filter), limit, decodeRun);
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

  /** Up to `limit` entries of a chain, newest first. */
  auditEntries(filter: URLSearchParams, limit: number): Promise<Part<AuditEntry>> {
    return this.pages('v1/audit', filter, limit, decodeAuditEntry);
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

function queryOf({ state, kind, queue, labels }: RunFilter): URLSearchParams {
  const query = new URLSearchParams();
  for (const each of state) query.append('state', each);
  if (kind !== undefined) query.set('kind', kind);
  if (queue !== undefined) query.set('queue', queue);
  for (const [key, value] of labels) query.append('label', `${key}:${value}`);
  return query;
}

/** Path of a run. */
export function pathOf(id: string): string {
  return `v1/runs/${encodeURIComponent(id)}`;
}

function workerPath(id: string): string {
  return `v1/workers/${encodeURIComponent(id)}`;
}
