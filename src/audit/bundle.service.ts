/**
 * Signed bundles of a chain. Invariants: a chain that doesn't verify is never signed; every export is in the chain
 * before it is made; nothing is sent that our own verifier, pinned to our own key, didn't accept.
 */
import { encodeId, newId } from '../kernel/ids.js';
import { Problem } from '../kernel/problems.js';
import type { SigningKey } from '../kernel/signing-key.js';
import type { RequestCaller } from '../platform/http/caller.js';
import { productVersion } from '../platform/http/product.js';
import type { Logger } from '../platform/log/logger.js';
import type { Pools } from '../platform/platform.js';
import { listAnchors } from './anchors.sql.js';
import type { AuditService } from './audit.service.js';
import { seqAt } from './audit.sql.js';
import { brokenChain, WHAT_TO_DO } from './broken-chain.js';
import { type BundleAnchor, claimsOf, signBundle } from './bundle.js';
import { type Choice, chooseWindow, type EntryRange, MAX_BUNDLE_ENTRIES } from './bundle.rules.js';
import { appendExport, headNow, rangeOfRun, readEntries } from './bundle.sql.js';
import { checkBundle } from './bundle-check.js';
import { Turns } from './bundle-turns.js';
import type { ChainHead } from './chain.js';
import { GONE } from './chain.rules.js';
import type { KeyService } from './key.service.js';

/** Up to here a chain is recomputed for each bundle; of a longer one the window is, and for the rest a former pass counts. */
const WHOLE_CHECK_ENTRIES = 100_000;
/** Looked through for a run by one statement. */
const SEARCHED_ENTRIES = 50_000;
/** One statement each, so that no answer of the database keeps the main thread for long. */
const READ_ENTRIES = 1_000;
/** The newest of a window: a timestamp says of every entry before it that it was there. */
const MAX_ANCHORS = 1_000;
/** Each holds tens of megabytes while it is made, and keeps a processor busy. */
const MAX_WAITING = 16;

/** Either bound is a sequence number or an instant, and included. */
export interface BundleRequest {
  readonly chain: 'installation' | undefined;
  readonly from: number | Date | undefined;
  readonly to: number | Date | undefined;
  /** UUID of a run: its entries and those between them. */
  readonly run: string | undefined;
}

export interface SignedBundle {
  readonly bytes: Buffer;
  readonly fileName: string;
  /** Of the entry that the export made. */
  readonly receipt: string;
}

export class BundleService {
  private readonly turns = new Turns(MAX_WAITING);

  constructor(
    private readonly audit: AuditService,
    private readonly keys: KeyService,
    private readonly pools: Pick<Pools, 'read' | 'submit'>,
    private readonly log: Logger,
  ) {}

  /**
   * The chain is recomputed before, so that who waits for that keeps nobody else; bundles are made one at a time. Throws
   * `forbidden`, `signing_key_missing`, `signing_key_superseded`, `not_found`, `invalid_input` for a range that is too
   * wide, `chain_broken`, `unavailable`, and the reason of `signal`, before anything was written.
   */
  async make(caller: RequestCaller, request: BundleRequest, signal: AbortSignal): Promise<SignedBundle> {
    const chain = await this.audit.chainFor(caller, request.chain);
    await this.keys.signer();
    const { head } = await this.standOf(chain);
    const window = required(await this.choose(chain, head, request));
    await this.requireWhole(chain, head, window, signal);
    return this.turns.take(async () => {
      signal.throwIfAborted();
      // Both may have changed while this one waited.
      this.requireNotBroken(chain);
      const key = await this.keys.signer();
      return this.export(chain, window, key, caller);
    });
  }

  private async choose(chain: string, { seq }: ChainHead, { from, to, run }: BundleRequest): Promise<Choice> {
    if (run !== undefined) {
      const range = await this.rangeOf(chain, run, seq);
      return range ? chooseWindow(range, seq) : 'empty';
    }
    const first = from instanceof Date ? await seqAt(this.pools.read, chain, from) : from;
    // All before the first that is later, to the millisecond, which is what entries are written to.
    const last = to instanceof Date ? (await seqAt(this.pools.read, chain, to, 1)) - 1 : to;
    return chooseWindow({ ...(first && { from: first }), ...(last !== undefined && { to: last }) }, seq);
  }

  /** Where a run's entries are: from the newest entry back to its submit. */
  private async rangeOf(chain: string, run: string, head: number): Promise<EntryRange | undefined> {
    let range: EntryRange | undefined;
    for (let to = head; to >= 1; to -= SEARCHED_ENTRIES) {
      const window = { from: Math.max(1, to - SEARCHED_ENTRIES + 1), to };
      const found = await rangeOfRun(this.pools.read, chain, run, window);
      if (found) range = { from: found.from, to: range?.to ?? found.to };
      if (found?.isBegun) return range;
    }
    return range;
  }

  /** Throws `chain_broken` unless the chain holds, as far as it is to be checked for this window. */
  private async requireWhole(
    chain: string,
    { seq }: ChainHead,
    { from, to }: Window,
    signal: AbortSignal,
  ): Promise<void> {
    const isLong = seq > WHOLE_CHECK_ENTRIES;
    if (isLong) this.requireNotBroken(chain);
    const wasHeld = isLong && this.audit.lastVerified(chain) !== undefined;
    const { brokenAt, check } = await this.audit.verify(chain, wasHeld ? { from, to } : {}, { signal });
    if (brokenAt !== undefined && check !== undefined) throw brokenChain(chain, { brokenAt, check }, UNSIGNED);
  }

  private requireNotBroken(chain: string): void {
    const known = this.audit.brokenAsKnown(chain);
    if (known) throw brokenChain(chain, known, UNSIGNED);
  }

  private async export(
    chain: string,
    { from, to }: Window,
    key: SigningKey,
    { principal }: RequestCaller,
  ): Promise<SignedBundle> {
    const [id, { fingerprint }] = [encodeId('lsb', newId()), key];
    const by = { by: principal.id, byName: principal.name };
    const receipt = await appendExport(this.pools.submit, { chain, bundle: id, from, to, fingerprint, ...by });
    const { head, now } = await this.standOf(chain);
    // Others may have been written between the look at the head and this entry.
    const range = { from, to: to ?? Math.min(seqIn(receipt), from + MAX_BUNDLE_ENTRIES - 1) };
    const bytes = await signBundle(
      {
        id,
        createdAt: now,
        product: { name: 'capstan', version: productVersion() },
        chain,
        // A chain is named by whose it is.
        subject: chain,
        head,
        claims: await this.claimsOf(chain, range),
        anchors: await this.anchorsOf(chain, range),
      },
      key,
    );
    await this.requireAccepted(bytes, { chain, id, fingerprint, receipt, from });
    return { bytes, fileName: `${chain}-${now.slice(0, 10)}.loomseal.json`, receipt };
  }

  private async requireAccepted(
    bytes: Buffer,
    {
      chain,
      id,
      fingerprint,
      receipt,
      from,
    }: { chain: string; id: string; fingerprint: string; receipt: string; from: number },
  ): Promise<void> {
    const { ok, failed } = await checkBundle({ bytes, fingerprint });
    if (ok) return;
    const { stage = 'parse', reason = 'no reason', seq = from } = failed ?? {};
    this.log.error({ code: 'audit_bundle_refused', chain, bundle: id, stage, reason, seq }, 'a bundle was not sent');
    const detail = `the bundle made of it doesn't verify (${stage}: ${reason}); nothing was sent`;
    throw new Problem('chain_broken', `${detail}. ${WHAT_TO_DO}`, { members: { seq, check: stage }, receipt });
  }

  private async claimsOf(chain: string, { from, to }: EntryRange): Promise<Buffer[]> {
    const claims: Buffer[] = [];
    for (let next = from; next <= to; next += READ_ENTRIES) {
      const range = { from: next, to: Math.min(next + READ_ENTRIES - 1, to) };
      claims.push(claimsOf(await readEntries(this.pools.read, chain, range)));
    }
    return claims;
  }

  private async anchorsOf(chain: string, range: EntryRange): Promise<BundleAnchor[]> {
    const anchors = await listAnchors(this.pools.read, chain, range, MAX_ANCHORS);
    return anchors.map(({ seq, link, at, ref, token }) => {
      return { type: 'rfc3161', seq, link, at, ref, proof: Buffer.from(token).toString('base64') };
    });
  }

  private async standOf(chain: string): Promise<{ head: ChainHead; now: string }> {
    const stand = await headNow(this.pools.read, chain);
    if (!stand) throw brokenChain(chain, GONE, UNSIGNED);
    return stand;
  }
}

type Window = Extract<Choice, { readonly from: number }>;

function required(choice: Choice): Window {
  if (choice === 'empty') throw new Problem('not_found', 'the chain has no such entries');
  if ('from' in choice) return choice;
  const { windows } = choice;
  const [first, second] = windows.map(({ from, to }) => `from=${from}&to=${to}`);
  const detail = `a bundle holds up to ${MAX_BUNDLE_ENTRIES} entries: ask for ${windows.length} of them, ${first}, ${second}`;
  throw new Problem('invalid_input', windows.length > 2 ? `${detail} and so on (\`windows\`)` : detail, {
    members: { windows },
  });
}

const UNSIGNED = 'nothing of it is signed';

/** The number in `<chain>:<seq>:<link>`. */
function seqIn(receipt: string): number {
  return Number(receipt.split(':')[1]);
}
