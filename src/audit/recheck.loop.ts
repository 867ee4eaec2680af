/**
 * Verifies all chains again and again, each from its first entry to its head, in small steps: one window's worth of
 * entries, of one long chain or of several short ones. Invariant: a chain moves on only behind entries that held, so a
 * step that failed is simply done again.
 */
import { encodeId } from '../kernel/ids.js';
import type { Pool } from '../platform/db/db.js';
import type { Loop } from '../platform/loop.js';
import type { Timing } from '../platform/time.js';
import type { AnchorCheck } from './anchor-check.js';
import type { ChainBreak, ChainHead, ChainStand } from './chain.js';
import { breakOf, firstBreak, GONE } from './chain.rules.js';
import { chainsAfter, standsOf } from './chain.sql.js';
import type { ChainKnowledge } from './chain-knowledge.js';
import { WINDOW_ENTRIES, Windows } from './windows.js';

const CHAINS = 20;
/** Timestamps of a step that were not seen before: some 50 ms. */
const OPENED = 100;
/** Between two passes: behind one that met new entries, and behind one that met none. */
const REST_MS = 10_000;
const QUIET_REST_MS = 30_000;
/** Between two steps of a pass. */
const PAUSE_MS = 1_000;
/**
 * For each millisecond that a step took so many go by: every replica does this, on one database. A step of 20,000
 * entries takes some 90 ms, so one replica keeps 2.5 % of a core busy, and passes a million entries in three minutes.
 */
const IDLE_SHARE = 40;
const LONGEST_PAUSE_MS = 60_000;

/** A chain on its way through a pass. */
interface Walk {
  readonly stand: ChainStand;
  readonly standBreak: ChainBreak | undefined;
  /** The break that was known when it was taken up. */
  readonly before: ChainBreak | undefined;
  after: ChainHead;
  /** The timestamps before this number hold. */
  anchorsFrom: number;
  fault?: ChainBreak;
}

export class RecheckLoop implements Loop {
  readonly name = 'recheck';
  private walks: Walk[] = [];
  /** The last chain that this pass has taken up; the first pass begins before all of them. */
  private cursor = '';
  /** Chains that were there when this pass began, and that it has not come to yet. */
  private unmet = new Set<string>();
  private isPassOver = false;
  /** This pass has met a head that was not known. */
  private hasMoved = false;
  private tookMs = 0;
  private readonly windows: Windows;

  constructor(
    private readonly pool: Pool,
    readonly knowledge: ChainKnowledge,
    private readonly anchors: AnchorCheck,
    private readonly timing: Pick<Timing, 'monotonicMs'>,
  ) {
    this.windows = new Windows(pool);
  }

  /** Time to the next step, asked after each. */
  intervalMs(): number {
    const rest = this.hasMoved ? REST_MS : QUIET_REST_MS;
    const least = this.isPassOver ? rest : PAUSE_MS;
    return Math.min(Math.max(least, this.tookMs * IDLE_SHARE), LONGEST_PAUSE_MS);
  }

  /** At most three statements, and a few for each chain that has timestamps. */
  async step(): Promise<'idle'> {
    const begunAtMs = this.timing.monotonicMs();
    if (this.walks.length === 0) await this.takeUp();
    await this.walkOn();
    await this.lookAtAnchors();
    for (const walk of this.walks.filter(isOver)) this.judge(walk);
    this.walks = this.walks.filter((walk) => !isOver(walk));
    this.isPassOver = this.cursor === '' && this.walks.length === 0;
    this.tookMs = this.timing.monotonicMs() - begunAtMs;
    return 'idle';
  }

  /** The next chains in line, as they stand now. */
  private async takeUp(): Promise<void> {
    const { chains, withoutChain } = await chainsAfter(this.pool, this.cursor, CHAINS);
    if (this.cursor === '') this.beginPass(withoutChain);
    const asked = chains.map((chain) => ({ chain, seen: this.knowledge.seen(chain) }));
    const stands = chains.length === 0 ? [] : await standsOf(this.pool, asked);
    const seenOf = new Map(asked.map(({ chain, seen }) => [chain, seen]));
    this.walks = stands.map((stand) => ({
      stand,
      standBreak: breakOf(stand, seenOf.get(stand.chain)),
      before: this.knowledge.broken(stand.chain),
      after: { seq: 0, link: '' },
      anchorsFrom: stand.anchors > 0 ? 1 : stand.seq + 1,
    }));
    this.hasMoved ||= stands.some(({ chain, seq }) => seq > (seenOf.get(chain)?.seq ?? 0));
    for (const { chain, seq } of stands) {
      this.unmet.delete(chain);
      this.knowledge.noteHead(chain, seq);
    }
    this.cursor = chains.length < CHAINS ? '' : (chains.at(-1) ?? '');
    if (this.cursor === '') for (const chain of this.unmet) this.knowledge.noteBroken(chain, GONE);
  }

  /** A chain that was removed is met by nobody: it is missed. */
  private beginPass(removed: readonly string[]): void {
    for (const id of removed) this.knowledge.noteBroken(encodeId('org', id), GONE);
    this.unmet = new Set(this.knowledge.chainsSeen);
    this.hasMoved = false;
  }

  private async walkOn(): Promise<void> {
    let left = WINDOW_ENTRIES;
    const windows = this.walks.flatMap((walk) => {
      const until = Math.min(walk.stand.seq, walk.after.seq + left);
      left -= until - walk.after.seq;
      return until > walk.after.seq ? [{ chain: walk.stand.chain, after: walk.after, until, walk }] : [];
    });
    if (windows.length === 0) return;
    for (const { chain, brokenAt, until, link, check } of await this.windows.check(windows)) {
      const walk = windows.find((each) => each.chain === chain)?.walk;
      if (!walk) continue;
      walk.after = { seq: brokenAt - 1, link: link ?? '' };
      if (brokenAt <= until) walk.fault = { brokenAt, check: check ?? 'gap' };
      this.knowledge.noteVerified(chain, walk.after.seq);
    }
  }

  /** Those of chains whose entries hold. */
  private async lookAtAnchors(): Promise<void> {
    let left = OPENED;
    for (const walk of this.walks) {
      const { stand, after, anchorsFrom, fault } = walk;
      if (left <= 0 || fault || after.seq < stand.seq || anchorsFrom > stand.seq) continue;
      const range = { chain: stand.chain, from: anchorsFrom, until: stand.seq };
      const found = await this.anchors.look(range, left);
      left -= found.opened;
      walk.anchorsFrom = found.from;
      if (found.fault) walk.fault = found.fault;
    }
  }

  private judge({ stand, standBreak, before, fault }: Walk): void {
    const broken = firstBreak(fault, standBreak);
    if (broken) this.knowledge.noteBroken(stand.chain, broken);
    else this.knowledge.noteHeld(stand.chain, stand, before);
  }
}

function isOver({ stand, after, anchorsFrom, fault }: Walk): boolean {
  return fault !== undefined || (after.seq === stand.seq && anchorsFrom > stand.seq);
}
