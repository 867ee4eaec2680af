/** The machine's monotonic clock: one for all threads and processes of a machine, unmoved by a change of the wall clock. */

/** ms since some fixed moment. Not `performance.now()`, whose origin differs from thread to thread. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
