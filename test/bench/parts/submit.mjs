/** (a) Submits: Capstan's over HTTP from another process, the peers' by their own call in a process. */
import { ratesInTurn } from '../rounds.mjs';

const CALLERS = 64;
const BATCH = 1_000;
const MANY = 4;

export async function submit(_, { sizes, ...turns }) {
  const { singles, batched } = sizes.submit;
  const isOurs = ({ name }) => name === 'capstan';
  const single = (keyed) => (system) => system.submits({ n: singles, callers: CALLERS, keyed });
  const batches = (callers) => (system) => system.batches({ n: batched, size: BATCH, callers });
  for (const system of turns.systems) {
    await system.submits({ n: singles, callers: CALLERS });
    await system.batches({ n: BATCH, size: BATCH, callers: 1 });
  }
  return ratesInTurn(turns, [
    { key: 'submit', what: `submits one by one, ${CALLERS} callers`, n: singles, take: single(false) },
    {
      key: 'submitKeyed',
      what: `submits one by one, ${CALLERS} callers, with Idempotency-Key`,
      n: singles,
      take: single(true),
      concerns: isOurs,
    },
    { key: 'batch', what: `submits by batches of ${BATCH}, one caller`, n: batched, take: batches(1) },
    { key: 'batch4', what: `submits by batches of ${BATCH}, ${MANY} callers`, n: batched, take: batches(MANY) },
  ]);
}
