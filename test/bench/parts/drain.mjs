/** (b) Queued runs of kind `noop`, by one and by two replicas that have drained some before. */
import { ratesInTurn } from '../rounds.mjs';

export async function drain(_, { sizes, ...turns }) {
  const { n, warmUp } = sizes.drain;
  const by = (workers) => (system) => system.drain({ n, workers, warmUp });
  return ratesInTurn(turns, [
    { key: 'drain', what: 'drain of queued `noop` runs, one replica', n, take: by(1) },
    { key: 'drain2', what: 'drain of queued `noop` runs, two replicas', n, take: by(2) },
  ]);
}
