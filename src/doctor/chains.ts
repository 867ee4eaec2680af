/** Verifies the audit chains as far as time allows: heads first, then windows of entries from the newest back. */
import { AnchorCheck } from '../audit/anchor-check.js';
import { missingInstallationChain } from '../audit/audit.sql.js';
import type { ChainBreak, ChainStand } from '../audit/chain.js';
import { breakOf, firstBreak } from '../audit/chain.rules.js';
import { chainsAfter, linkBefore, standsOf } from '../audit/chain.sql.js';
import { WINDOW_ENTRIES, Windows } from '../audit/windows.js';
import type { Check, Fault, OnProgress } from '../kernel/diagnosis.js';
import { encodeId } from '../kernel/ids.js';
import type { Pool } from '../platform/db/db.js';
import type { Budget } from './budget.js';

const CHAINS = 100;
/** Outside timestamps that are opened when time is short. */
const OPENED = 200;

/** A chain, and from which entry on it was found to hold. */
interface Walk {
  readonly stand: ChainStand;
  from: number;
  fault: ChainBreak | undefined;
}

/** Looks until the budget has lasted `untilMs`. */
export async function chainsCheck(pool: Pool, budget: Budget, untilMs: number, onProgress: OnProgress): Promise<Check> {
  const { walks, removed, isWhole } = await allStands(pool, budget, untilMs);
  const missing = await missingInstallationChain(pool);
  const windows = new Windows(pool);
  const total = walks.reduce((sum, { stand }) => sum + stand.seq, 0);
  const entries = () => walks.reduce((sum, { stand, from }) => sum + stand.seq + 1 - from, 0);
  for (let open = walks.filter(isOpen); open.length > 0 && budget.lasts(untilMs); open = open.filter(isOpen)) {
    for (const walk of open) {
      if (budget.lasts(untilMs)) await walkBack(pool, windows, walk);
      onProgress(`audit chains: verified ${entries()} of ${total} entries`);
    }
  }
  const anchored = walks.filter(({ stand }) => stand.anchors > 0);
  let opened = 0;
  for (const walk of anchored) if (budget.lasts(untilMs)) opened += await lookAtAnchors(pool, walk, budget.isEndless);
  const timestamps = anchored.reduce((sum, { stand }) => sum + stand.anchors, 0);
  const broken = walks.flatMap(({ stand, fault }) => (fault ? [faultOf(stand.chain, fault)] : []));
  const left = total - entries();
  const notes = [
    ...(isWhole ? [] : ['not all chains were looked at: there are too many for the time']),
    ...(left > 0 && broken.length === 0
      ? [
          `verified the newest ${entries()} of ${total} entries; \`--all\` verifies the rest, as the replicas do all the time`,
        ]
      : []),
    ...(opened < timestamps && broken.length === 0
      ? [`opened ${opened} of ${timestamps} outside timestamps; \`--all\` opens the rest`]
      : []),
  ];
  return {
    name: 'audit',
    summary: `every chain holds; chains: ${walks.length}, entries verified: ${entries()}`,
    faults: [
      ...(missing === undefined ? [] : [goneFault(missing)]),
      ...removed.map((id) => goneFault(encodeId('org', id))),
      ...broken,
    ],
    notes,
  };
}

async function allStands(pool: Pool, budget: Budget, untilMs: number) {
  const walks: Walk[] = [];
  const removed: string[] = [];
  let cursor = '';
  for (;;) {
    const { chains, withoutChain } = await chainsAfter(pool, cursor, CHAINS);
    removed.push(...withoutChain);
    const stands = await standsOf(
      pool,
      chains.map((chain) => ({ chain, seen: undefined })),
    );
    for (const stand of stands) walks.push({ stand, from: stand.seq + 1, fault: breakOf(stand, undefined) });
    cursor = chains.at(-1) ?? '';
    if (chains.length < CHAINS) return { walks, removed, isWhole: true };
    if (!budget.lasts(untilMs)) return { walks, removed, isWhole: false };
  }
}

function isOpen({ from, fault }: Walk): boolean {
  return from > 1 && fault === undefined;
}

/** One window more, up to what is known to hold; in parts, when it takes too long. */
async function walkBack(pool: Pool, windows: Windows, walk: Walk): Promise<void> {
  const { chain } = walk.stand;
  const until = walk.from - 1;
  const first = Math.max(1, walk.from - WINDOW_ENTRIES);
  let after = { seq: first - 1, link: first === 1 ? '' : ((await linkBefore(pool, chain, first)) ?? '') };
  while (after.seq < until) {
    const [found] = await windows.check([{ chain, after, until }]);
    if (!found) return;
    after = { seq: found.brokenAt - 1, link: found.link ?? '' };
    if (found.brokenAt <= found.until) {
      walk.fault = { brokenAt: found.brokenAt, check: found.check ?? 'gap' };
      return;
    }
  }
  // The last link of this window is what the entry behind it was checked against.
  walk.from = first;
}

/** How many of its timestamps were opened; when one of them doesn't hold nobody asks. */
async function lookAtAnchors(pool: Pool, walk: Walk, isAll: boolean): Promise<number> {
  const { chain, seq, anchors } = walk.stand;
  const check = new AnchorCheck(pool);
  const range = { chain, from: 1, until: seq };
  if (isAll) {
    walk.fault = firstBreak(walk.fault, await check.firstFault(range, new AbortController().signal));
    return anchors;
  }
  const { fault, opened } = await check.look(range, OPENED);
  walk.fault = firstBreak(walk.fault, fault);
  return opened;
}

function goneFault(chain: string): Fault {
  return {
    what: `the audit chain ${chain} is gone`,
    remedy: 'somebody removed it: restore it from a backup, and compare with exported bundles (`capstan verify`)',
    object: chain,
  };
}

function faultOf(chain: string, { brokenAt, check }: ChainBreak): Fault {
  return {
    what: `the audit chain ${chain} is broken at entry ${brokenAt} (check: ${check})`,
    remedy: 'somebody changed it: keep the database as it is, and compare with exported bundles (`capstan verify`)',
    object: chain,
  };
}
