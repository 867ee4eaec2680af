/** Many runs made by one request, in one statement: a batch of submits, each item with an answer of its own. */

import { encodeId, newId } from '../kernel/ids.js';
import { Problem } from '../kernel/problems.js';
import type { Bearing } from '../platform/http/bearing.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Platform } from '../platform/platform.js';
import { findSummaries } from './bulk.sql.js';
import type { RunRow } from './read.sql.js';
import type { RunMetrics } from './run.metrics.js';
import { type EarlierKey, findMade, freeKey, type NewRun, type WholeKey } from './submit.sql.js';
import {
  type Fate,
  type Incoming,
  incomingRun,
  isTakenId,
  keyReused,
  lookUpSubmits,
  problemOf,
  rowOfNew,
  type Sent,
  type SubmitRequest,
  sendSubmits,
  sendWhole,
} from './submits.js';
import type { Turns } from './turns.js';

const ATTEMPTS = 5;

/** An item that was decoded and checked, or what is wrong with it. */
export type BatchRequest = SubmitRequest | Problem;

export type BatchItem = { readonly run: RunRow; readonly replayed: boolean } | { readonly problem: Problem };

export interface BatchAnswer {
  /** In the order given. */
  readonly items: readonly BatchItem[];
  /** True when the same request, or one for each of its items, was answered before. */
  readonly replayed: boolean;
  readonly receipt: string | null;
}

/** What became of runs that were sent together, in their order; or, when the same request came before, what it kept. */
export type Made = { readonly fates: readonly Fate[] } | { readonly earlier: EarlierKey };

export class BatchService {
  constructor(
    private readonly platform: Platform,
    private readonly metrics: RunMetrics,
    private readonly turns: Turns,
  ) {}

  /**
   * Makes what is new of a batch, and answers with what equal keys and ids made before. `bearing` is the whole request's.
   * Throws `idempotency_key_reused` when its key came with another one.
   */
  async submit(caller: RequestCaller, requests: readonly BatchRequest[], bearing: Bearing): Promise<BatchAnswer> {
    const incoming = requests.map((request) =>
      request instanceof Problem ? request : incomingRun(caller, request, null),
    );
    const sent = incoming.flatMap((item) => (item instanceof Problem ? [] : [item]));
    // What was refused has an id too: so each keeps its place among those that the key stands for. The last is nobody's:
    // by it the request knows itself again, though the caller may have chosen all others.
    const ids = [...incoming.map((item) => (item instanceof Problem ? newId() : item.run.id)), newId()];
    const chosenHere = new Set(ids.filter((_, i) => !isNamed(requests[i])));
    const whole = wholeKey(caller, bearing, ids);
    const made = sent.length === 0 ? { fates: [] } : await this.make(sent, whole, chosenHere);
    const fates = 'fates' in made ? made.fates : await this.fatesBefore(incoming, made.earlier);
    if (whole && fates.length > 0 && fates.every((fate) => 'clash' in fate)) {
      const runIds = 'earlier' in made ? (made.earlier.runIds ?? []) : ids;
      await this.turns.persist(() => freeKey(this.platform.pools.submit, { ...whole, runIds }));
    }
    const rest = fates.values();
    return this.answer(
      caller,
      incoming.map((item) => (item instanceof Problem ? item : { run: item.run, fate: rest.next().value ?? AGAIN })),
      chosenHere,
    );
  }

  /**
   * Makes runs, under one key for all of them if there is one: nothing is made when the same request came before.
   * `chosenHere` are the ids that no caller knows. Throws `idempotency_key_reused`.
   */
  async make(
    incoming: readonly Incoming[],
    whole: WholeKey | undefined,
    chosenHere: ReadonlySet<string>,
  ): Promise<Made> {
    const fates = new Map<NewRun, Fate>();
    let key = whole;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const left = incoming.filter(({ run }) => !fates.has(run));
      const sent = await this.send(left, key);
      if (sent === undefined) continue;
      if ('holding' in sent) {
        const { holding } = sent;
        if (!holding) continue; // It was freed meanwhile.
        if (holding.digest !== whole?.digest) throw keyReused();
        // Ours already: nothing of it was new, or the answer was lost.
        if (!holding.runIds?.some((id) => chosenHere.has(id))) return { earlier: holding };
      } else this.note(left, sent.fates, fates);
      key = undefined;
      if (fates.size === incoming.length) return { fates: incoming.map(({ run }) => fates.get(run) ?? AGAIN) };
    }
    throw new Problem('unavailable', 'the runs kept colliding with others: send them again', { retryAfterSeconds: 1 });
  }

  /** One try; undefined when somebody is making a run of one of these ids at this moment. */
  private send(left: readonly Incoming[], key: WholeKey | undefined): Promise<Sent | undefined> {
    const { submit } = this.platform.pools;
    const runs = left.map(({ run }) => run);
    const bytes = left.reduce((sum, item) => sum + item.bytes, 0);
    const sent = this.turns.take<Sent>(bytes, async () =>
      key ? sendWhole(submit, runs, key) : { fates: await sendSubmits(submit, runs) },
    );
    return sent.catch((error: unknown) => {
      if (isTakenId(error)) return undefined;
      throw error;
    });
  }

  private note(left: readonly Incoming[], sent: readonly Fate[], fates: Map<NewRun, Fate>): void {
    left.forEach(({ run }, i) => {
      const fate = sent[i] ?? AGAIN;
      if ('again' in fate) return;
      fates.set(run, fate);
      if ('made' in fate) this.metrics.countSubmitted(run);
    });
    if (sent.some((fate) => 'made' in fate)) this.platform.bells.claimable.ring();
  }

  /** What became of the items of a request that came before: what is not there was removed, or refused then. */
  private async fatesBefore(incoming: readonly (Incoming | Problem)[], earlier: EarlierKey): Promise<readonly Fate[]> {
    const before = incoming.flatMap((item, i) =>
      item instanceof Problem ? [] : [{ ...item.run, id: earlier.runIds?.[i] ?? item.run.id }],
    );
    const { submit } = this.platform.pools;
    const fates = await this.turns.persist(() => lookUpSubmits(submit, before));
    const missing = before.filter((_, i) => fates[i] && 'again' in fates[i]);
    const made = missing.length === 0 ? new Set() : await this.turns.persist(() => findMade(submit, missing));
    const chosen = new Set(incoming.flatMap((item) => (item instanceof Problem ? [] : [item.run.id])));
    return before.map((run, i): Fate => {
      const fate = fates[i] ?? AGAIN;
      if (!('again' in fate)) return fate;
      // By its key or by an id of its caller's it clashed with what is gone since: it is refused as it was then.
      const isRefused = !made.has(run.id) && (run.key !== null || chosen.has(run.id));
      return isRefused ? { clash: run.key === null ? 'id' : 'key' } : { removed: encodeId('run', run.id) };
    });
  }

  private async answer(
    { organizationId }: RequestCaller,
    sent: readonly (Problem | { readonly run: NewRun; readonly fate: Fate })[],
    chosenHere: ReadonlySet<string>,
  ): Promise<BatchAnswer> {
    const replays = sent.flatMap((item) => ('fate' in item && 'replayOf' in item.fate ? [item.fate.replayOf] : []));
    const known = await this.summaries(organizationId, replays);
    const items = sent.map((item): BatchItem => {
      if (item instanceof Problem) return { problem: item };
      const { run, fate } = item;
      if ('made' in fate) return { run: rowOfNew(run, fate.made.createdAt, fate.made.receipt), replayed: false };
      if (!('replayOf' in fate)) return { problem: problemOf('again' in fate ? { removed: run.object } : fate) };
      const row = known.get(fate.replayOf);
      // Our own id under a name that was chosen here: an earlier try of this very request whose answer was lost.
      if (row) return { run: row, replayed: !(chosenHere.has(run.id) && row.id === run.id) };
      return { problem: problemOf({ removed: encodeId('run', fate.replayOf) }) };
    });
    const taken = items.filter((item) => 'run' in item);
    const made = taken.filter(({ replayed }) => !replayed);
    return {
      items,
      replayed: taken.length > 0 && made.length === 0,
      receipt: newestReceipt((made.length > 0 ? made : taken).map(({ run }) => run.submittedReceipt)),
    };
  }

  private async summaries(organizationId: string, ids: readonly string[]): Promise<ReadonlyMap<string, RunRow>> {
    if (ids.length === 0) return new Map();
    const rows = await this.turns.persist(() => findSummaries(this.platform.pools.read, organizationId, ids));
    return new Map(rows.map((row) => [row.id, row]));
  }
}

const AGAIN = { again: true } as const;

/** The key of a whole request that makes runs of these ids, if it bears one. */
export function wholeKey(
  { organizationId }: RequestCaller,
  { key, requestDigest }: Bearing,
  runIds: readonly string[],
): WholeKey | undefined {
  return key === null ? undefined : { organizationId, key, digest: requestDigest, runIds };
}

/** Of receipts of one chain the one with the highest number. */
export function newestReceipt(receipts: readonly (string | null)[]): string | null {
  const seqOf = (receipt: string): number => Number(receipt.split(':')[1]);
  return receipts.reduce(
    (newest, receipt) => (newest === null || (receipt !== null && seqOf(receipt) > seqOf(newest)) ? receipt : newest),
    null,
  );
}

function isNamed(request: BatchRequest | undefined): boolean {
  return request !== undefined && !(request instanceof Problem) && request.id !== undefined;
}
