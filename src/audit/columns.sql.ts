/** Whether the columns beside an entry's text, which lists, times and keys are found by, say what the text says. */
import type postgres from 'postgres';
import type { Sql } from '../platform/db/db.js';

/**
 * An expression over the row `e` of `audit_entries`; null where something is. The text is flat and canonical, so a
 * member's name in its quotes meets that member and nothing that a value quotes; an action has no quotes itself, or it
 * could go on into the next member. `to_char` of a time before our era leaves that out.
 *
 * A queue may be called what a run is: the action tells them apart. Of `run_id` it says only whether there must be one: to write out the TypeID would take twice as long as all the rest.
 * So whoever looks for a run also compares the text (`entries.sql.ts`, `bundle.sql.ts`).
 */
export function columnsHold(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    pg_catalog.strpos(e.action, '"') = 0
    and pg_catalog.strpos(e.claim, '"action":"' || e.action || '"') > 0
    and (e.run_id is null) =
        (pg_catalog.strpos(e.claim, '"object":"run_') = 0 or pg_catalog.starts_with(e.action, 'queue.'))
    and e.at >= timestamptz '0001-01-01T00:00:00Z'
    and pg_catalog.starts_with(e.claim, '{"at":"' || pg_catalog.to_char(
          e.at at time zone interval '0', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"')`;
}
