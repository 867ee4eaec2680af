/** What is answered where a chain doesn't hold. */
import { Problem } from '../kernel/problems.js';
import type { ChainBreak } from './chain.js';

export const WHAT_TO_DO =
  'Somebody or something changed the database past Capstan. Leave it as it is, keep a copy, and compare it with ' +
  'backups, receipts and bundles of before';

/** `consequence` says what isn't done therefore. */
export function brokenChain(chain: string, { brokenAt: seq, check }: ChainBreak, consequence: string): Problem {
  const detail = `the audit chain ${chain} doesn't hold at entry ${seq} (check: ${check}), so ${consequence}`;
  return new Problem('chain_broken', `${detail}. ${WHAT_TO_DO}; the details: GET /v1/audit/verify`, {
    members: { seq, check },
  });
}
