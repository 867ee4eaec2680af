/** Who is connected, as the doctor has it. */
import type postgres from 'postgres';
import type { Sql } from '../platform/db/db.js';
import { CONNECTED_MS } from '../runs/worker.js';

/** An expression: when the life `w` renewed its lease. */
export function seenAt(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`(w.lease_until - w.ttl_ms * interval '1 millisecond')`;
}

/**
 * An expression: the life `w` goes on, and was seen within what people are told is connected; or, where leases are
 * long and renewed seldom, within half of its own, which covers a renewal that was due and one that is late.
 */
export function isConnected(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    (w.ended_at is null
     and ${seenAt(sql)} > db_clock() - greatest(${CONNECTED_MS}::integer, w.ttl_ms / 2) * interval '1 millisecond')`;
}
