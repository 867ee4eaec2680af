/**
 * A chain as its rows are, recomputed with nothing of the product: what the open format says of a link, and which number
 * is the first that fails. The second opinion on every verification.
 */
import { createHash } from 'node:crypto';
import type pg from 'pg';

export interface StoredEntry {
  readonly seq: number;
  readonly claim: string;
  /** Lower-case hex. */
  readonly prev: string;
  readonly link: string;
  readonly beside: Columns;
}

/** What the columns say that entries are found by. */
export interface Columns {
  readonly action: string;
  /** RFC 3339. */
  readonly at: string;
  readonly runId: string | null;
}

export interface StoredChain {
  readonly entries: readonly StoredEntry[];
  readonly head: { readonly seq: number; readonly link: string };
}

export interface Break {
  readonly brokenAt: number;
  readonly check: 'gap' | 'prev' | 'link' | 'column' | 'head' | 'behind' | 'anchor';
}

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

/** The link of `loomseal-chain-v1`, unkeyed. */
export function linkOf(chain: string, { seq, prev, claim }: Pick<StoredEntry, 'seq' | 'prev' | 'claim'>): string {
  const claimDigest = `sha256:${sha256(claim)}`;
  return sha256(JSON.stringify({ claim: claimDigest, domain: 'loomseal-chain-v1', install_id: chain, prev, seq }));
}

/** The first number that fails, and why; undefined when the chain holds. */
export function recompute(chain: string, { entries, head }: StoredChain): Break | undefined {
  const breaks = [walk(chain, entries, head.seq), checkHead(entries, head)].filter((found) => found !== undefined);
  return breaks.sort((a, b) => a.brokenAt - b.brokenAt)[0];
}

function walk(chain: string, entries: StoredChain['entries'], until: number): Break | undefined {
  let before = { seq: 0, link: '' };
  for (const entry of [...entries].sort((a, b) => a.seq - b.seq)) {
    if (entry.seq > until) break;
    if (entry.seq !== before.seq + 1) return { brokenAt: before.seq + 1, check: 'gap' };
    if (entry.prev !== before.link) return { brokenAt: entry.seq, check: 'prev' };
    if (entry.link !== linkOf(chain, entry)) return { brokenAt: entry.seq, check: 'link' };
    if (!isBeside(entry)) return { brokenAt: entry.seq, check: 'column' };
    before = entry;
  }
  return before.seq < until ? { brokenAt: before.seq + 1, check: 'gap' } : undefined;
}

function isBeside({ claim, beside }: StoredEntry): boolean {
  const { at, payload } = JSON.parse(claim);
  const isAboutRun = typeof payload.object === 'string' && payload.object.startsWith('run_');
  return beside.action === payload.action && beside.at === at && (beside.runId !== null) === isAboutRun;
}

function checkHead(entries: StoredChain['entries'], head: StoredChain['head']): Break | undefined {
  const named = entries.find(({ seq }) => seq === head.seq);
  if (named && named.link !== head.link) return { brokenAt: head.seq, check: 'head' };
  return entries.some(({ seq }) => seq > head.seq) ? { brokenAt: head.seq + 1, check: 'behind' } : undefined;
}

/** Everything that is stored of a chain. */
export async function readChain(sql: Pick<pg.Client, 'query'>, chain: string): Promise<StoredChain> {
  const { rows: entries } = await sql.query<StoredEntry>(
    `select seq::integer, claim, encode(prev, 'hex') as prev, encode(link, 'hex') as link,
            json_build_object('action', action, 'at', at at time zone 'UTC', 'runId', run_id) as beside
     from audit_entries where chain_id = $1 order by seq`,
    [chain],
  );
  const { rows: heads } = await sql.query<StoredChain['head']>(
    `select seq::integer, encode(link, 'hex') as link from audit_heads where chain_id = $1`,
    [chain],
  );
  const isoOf = (at: string) => new Date(`${at}Z`).toISOString();
  const stored = entries.map(({ beside, ...rest }) => ({ ...rest, beside: { ...beside, at: isoOf(beside.at) } }));
  return { entries: stored, head: heads[0] ?? { seq: 0, link: '' } };
}
