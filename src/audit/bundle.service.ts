/**
 * Signed bundles of a chain. Invariants: a chain that doesn't verify is never signed; every export is in the chain
 * before it is made; nothing is sent that our own verifier, pinned to our own key, didn't accept.
 */
import { encodeId, newId } from '../kernel/ids.js';
import { Bug, Problem } from '../kernel/problems.js';
import type { SigningKey } from '../kernel/signing-key.js';
import type { RequestCaller } from '../platform/http/caller.js';
import { productVersion } from '../platform/http/product.js';
import type { Logger } from '../platform/log/logger.js';
import type { Pools } from '../platform/platform.js';
import { listAnchors } from './anchors.sql.js';
import type { AuditService } from './audit.service.js';
import { seqAt } from './audit.sql.js';
import { type BundleAnchor, claimsOf, signBundle } from './bundle.js';
import { type Choice, chooseWindow, type EntryRange, MAX_BUNDLE_ENTRIES } from './bundle.rules.js';
import { appendExport, headNow, rangeOfRun, readEntries } from './bundle.sql.js';
import { checkBundle } from './bundle-check.js';
import { Turns } from './bundle-turns.js';
import type { ChainBreak, ChainHead } from './chain.js';
import type { KeyService } from './key.service.js';

/** Up to here a chain is recomputed for each bundle; of a longer one the window is, and for the rest a former pass counts. */
const WHOLE_CHECK_ENTRIES = 100_000;
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
   * One at a time, the others wait. Throws `forbidden`, `signing_key_missing`, `signing_key_superseded`, `not_found`,
   * `invalid_input` for a range that is too wide, `chain_broken`.
   */
  async make(caller: RequestCaller, request: BundleRequest): Promise<SignedBundle> {
    const chain = await this.audit.chainFor(caller, request.chain);
    return this.turns.take(async () => {
      const key = await this.keys.signer();
      const { head } = await this.standOf(chain);
      const window = required(await this.choose(chain, head, request));
      await this.requireWhole(chain, head, window);
      return this.export(chain, window, key, caller);
    });
  }

  private async choose(chain: string, { seq }: ChainHead, { from, to, run }: BundleRequest): Promise<Choice> {
    if (run !== undefined) {
      const range = await rangeOfRun(this.pools.read, chain, run);
      return range ? chooseWindow(range, seq) : 'empty';
    }
    const first = from instanceof Date ? await seqAt(this.pools.read, chain, from) : from;
    // All before the first that is later, to the millisecond, which is what entries are written to.
    const last = to instanceof Date ? (await seqAt(this.pools.read, chain, new Date(to.getTime() + 1))) - 1 : to;
    return chooseWindow({ ...(first && { from: first }), ...(last !== undefined && { to: last }) }, seq);
  }

  /** Throws `chain_broken` unless the chain holds, as far as it is to be checked for this window. */
  private async requireWhole(chain: string, { seq }: ChainHead, { from, to }: Window): Promise<void> {
    const isLong = seq > WHOLE_CHECK_ENTRIES;
    const known = isLong ? this.audit.brokenAsKnown(chain) : undefined;
    if (known) throw brokenChain(chain, known);
    const wasHeld = isLong && this.audit.lastVerified(chain) !== undefined;
    const { brokenAt, check } = await this.audit.verify(chain, wasHeld ? { from, to } : {});
    if (brokenAt !== undefined && check !== undefined) throw brokenChain(chain, { brokenAt, check });
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

  private async anchorsOf(chain: string, { from, to }: EntryRange): Promise<BundleAnchor[]> {
    const anchors = await listAnchors(this.pools.read, chain, from, to);
    return anchors.slice(-MAX_ANCHORS).map(({ seq, link, at, ref, token }) => {
      return { type: 'rfc3161', seq, link, at, ref, proof: Buffer.from(token).toString('base64') };
    });
  }

  private async standOf(chain: string): Promise<{ head: ChainHead; now: string }> {
    const stand = await headNow(this.pools.read, chain);
    if (!stand) throw new Bug(`there is no chain ${chain}`);
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

const WHAT_TO_DO =
  'Somebody or something changed the database past Capstan. Leave it as it is, keep a copy, and compare it with ' +
  'backups, receipts and bundles of before';

function brokenChain(chain: string, { brokenAt: seq, check }: ChainBreak): Problem {
  const detail = `the audit chain ${chain} doesn't hold at entry ${seq} (check: ${check}), so nothing of it is signed`;
  return new Problem('chain_broken', `${detail}. ${WHAT_TO_DO}; the details: GET /v1/audit/verify`, {
    members: { seq, check },
  });
}

/** The number in `<chain>:<seq>:<link>`. */
function seqIn(receipt: string): number {
  return Number(receipt.split(':')[1]);
}
