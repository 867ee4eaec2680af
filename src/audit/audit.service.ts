/** Verification of a chain: recomputed from the stored text in windows, with flat memory and no long snapshot. */
import { Bug, invalidInput, Problem } from '../kernel/problems.js';
import type { Pool } from '../platform/db/db.js';
import type { RequestCaller } from '../platform/http/caller.js';
import { AnchorCheck } from './anchor-check.js';
import { installationChain } from './audit.sql.js';
import type { ChainBreak, ChainHead, ChainStand } from './chain.js';
import { breakOf, firstBreak, GONE } from './chain.rules.js';
import { linkBefore, standsOf } from './chain.sql.js';
import { ChainKnowledge } from './chain-knowledge.js';
import { type Asking, ChainLine } from './chain-line.js';
import type { Progress, Range, Verification } from './verification.js';
import { Windows } from './windows.js';

export class AuditService {
  private readonly lines = new Map<string, ChainLine>();
  private installation: string | undefined;

  constructor(
    private readonly pool: Pool,
    readonly knowledge = new ChainKnowledge(),
    readonly anchors = new AnchorCheck(pool),
  ) {}

  /** The chain that a request is about: the caller's own, or the installation's, which its admins may see. */
  async chainFor(caller: RequestCaller, choice: 'installation' | undefined): Promise<string> {
    if (choice === undefined) return caller.chain;
    if (!caller.isInstallationAdmin) {
      throw new Problem('forbidden', "the installation's chain is for its admins alone");
    }
    return this.installationChain();
  }

  /** Id of the installation's own chain, which never changes. */
  async installationChain(): Promise<string> {
    this.installation ??= await installationChain(this.pool);
    if (this.installation === undefined) throw new Bug('the installation has no chain');
    return this.installation;
  }

  /** Where this process last found the chain broken, until it finds it whole again. */
  brokenAsKnown(chain: string): ChainBreak | undefined {
    return this.knowledge.broken(chain);
  }

  /** The head of the last whole verification of this process that held; undefined before one, and after a break. */
  lastVerified(chain: string): number | undefined {
    return this.knowledge.heldSeq(chain);
  }

  /**
   * Recomputes a chain, or a window of it, up to the head it has now. A broken chain is an answer, not an error. One
   * recomputation of a chain runs at a time; who asks for the same meanwhile shares the one after it. The head and the
   * outside timestamps are checked in any case. Throws `not_found`, `invalid_input` for a window behind the head, and
   * the reason of `asking.signal`, if nobody else waits for the same.
   */
  verify(chain: string, range: Range = {}, asking: Asking = {}): Promise<Verification> {
    const line = this.lines.get(chain) ?? new ChainLine((...asked) => this.verifyNow(chain, ...asked));
    this.lines.set(chain, line);
    return line.ask(range, asking).finally(() => {
      if (line.isEmpty && this.lines.get(chain) === line) this.lines.delete(chain);
    });
  }

  private async verifyNow(
    chain: string,
    range: Range,
    onProgress: (progress: Progress) => void,
    signal: AbortSignal,
  ): Promise<Verification> {
    const begun = performance.now();
    const { knowledge } = this;
    const [seen, before] = [knowledge.seen(chain), knowledge.broken(chain)];
    const [stand] = await standsOf(this.pool, [{ chain, seen }]);
    if (!stand) return this.gone(chain, begun);
    knowledge.noteHead(chain, stand.seq);
    const { from, to } = boundsOf(range, stand);
    const standBreak = breakOf(stand, seen);
    const begin = { seq: from - 1, link: from === 1 ? '' : ((await linkBefore(this.pool, chain, from)) ?? '') };
    const { held, fault } = await this.recompute(chain, begin, to, onProgress, signal);
    const dated = { chain, from: 1, until: stand.anchors > 0 ? stand.seq : 0 };
    const broken = firstBreak(fault, standBreak, await this.anchors.firstFault(dated, signal));
    const isWhole = from === 1 && to === stand.seq;
    const known = knowledge.broken(chain)?.brokenAt ?? Number.POSITIVE_INFINITY;
    // A window knows nothing of what stands before it.
    if (broken && (isWhole || broken.brokenAt < known)) knowledge.noteBroken(chain, broken);
    if (!broken && isWhole) knowledge.noteHeld(chain, stand, before);
    return {
      ok: broken === undefined,
      chain,
      entries: held,
      head: { seq: stand.seq, link: stand.link },
      anchors: stand.anchors,
      ...broken,
      tookMs: Math.round(performance.now() - begun),
    };
  }

  /** Each organization has a chain from its first moment on, and so has the installation. */
  private gone(chain: string, begun: number): Verification {
    this.knowledge.noteBroken(chain, GONE);
    const tookMs = Math.round(performance.now() - begun);
    return { ok: false, chain, entries: 0, head: { seq: 0, link: '' }, anchors: 0, ...GONE, tookMs };
  }

  private async recompute(
    chain: string,
    begin: ChainHead,
    to: number,
    onProgress: (progress: Progress) => void,
    signal: AbortSignal,
  ): Promise<{ held: number; fault: ChainBreak | undefined }> {
    const windows = new Windows(this.pool);
    let after = begin;
    while (after.seq < to) {
      signal.throwIfAborted();
      const [found] = await windows.check([{ chain, after, until: to }]);
      if (!found) throw new Bug('a window of a chain was not checked');
      const { brokenAt, until, link, check } = found;
      after = { seq: brokenAt - 1, link: link ?? '' };
      if (after.seq < until) return { held: after.seq - begin.seq, fault: { brokenAt, check: check ?? 'gap' } };
      onProgress({ verified: after.seq - begin.seq, of: to - begin.seq });
    }
    return { held: after.seq - begin.seq, fault: undefined };
  }
}

/** A window ends at the head; beyond it there is nothing to say anything about. */
function boundsOf({ from = 1, to }: Range, { seq }: ChainStand): { from: number; to: number } {
  if (from > Math.max(seq, 1)) throw invalidInput([{ pointer: '?from', message: `must be at most ${seq}, the head` }]);
  return { from, to: Math.min(to ?? seq, seq) };
}
