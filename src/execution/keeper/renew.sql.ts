/** The renewal of a worker's lease: the one statement that keeps all runs of a replica its own. */

/** The little of a session that the statement needs; rows come as the driver's plain objects. */
export interface RenewTx {
  query(text: string, values: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
}

export interface RenewedRow {
  readonly state: 'live' | 'draining';
  /** ms since 1970 on the database's clock, like `nowMs`. */
  readonly leaseUntilMs: number;
  readonly nowMs: number;
}

/**
 * Moves the lease to one TTL from now, on the database's clock, and notes how far that of the machine (`wallMs`, ms of
 * the epoch) is ahead of it.
 *
 * guard    this incarnation's row, live or draining. *Not* that the lease is unexpired: until somebody has reaped the
 *          row, a late renewal revives it, and the runs stay with who executes them.
 * outcome  the row, with its state, so that the holder learns of a drain; none: this life is over.
 * locks    the worker row. A reap that commits first makes the guard fail, it is judged again after the wait.
 * index    workers_pkey; updated in place, for no index stands on what it writes.
 */
export async function renewIfAlive(
  tx: RenewTx,
  params: { incarnation: string; ttlMs: number; wallMs: number },
): Promise<RenewedRow | undefined> {
  // Times go as numbers: the driver can't read a timestamp under a DateStyle that the role or database has set.
  const [row] = await tx.query(
    `update workers
     set lease_until = db_clock() + $2::integer * interval '1 millisecond',
         clock_ahead_ms = round($3::float8 - extract(epoch from db_clock()) * 1000)::bigint
     where id = $1::uuid                        -- this life, and no other of the same name
       and state in ('live', 'draining')        -- neither stopped nor reaped
     returning
       state,
       (extract(epoch from lease_until) * 1000)::float8 as lease_until_ms,
       (extract(epoch from db_clock()) * 1000)::float8 as now_ms`,
    [params.incarnation, params.ttlMs, params.wallMs],
  );
  if (!row) return undefined;
  return {
    state: row.state === 'draining' ? 'draining' : 'live',
    leaseUntilMs: Number(row.lease_until_ms),
    nowMs: Number(row.now_ms),
  };
}
