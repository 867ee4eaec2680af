/** The link of a stored entry, as the open format says it: for whoever verifies. Appending has its own. */
import type postgres from 'postgres';
import type { Sql } from '../platform/db/db.js';

/** An expression over the row `e` of `audit_entries`. */
export function linkOf(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`pg_catalog.sha256(pg_catalog.convert_to(
    '{"claim":"sha256:' || pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(e.claim, 'UTF8')), 'hex')
    || '","domain":"loomseal-chain-v1","install_id":"' || e.chain_id
    || '","prev":"' || pg_catalog.encode(e.prev, 'hex') || '","seq":' || e.seq || '}', 'UTF8'))`;
}
