/** (c) From the submit to the start and to the end, one run at a time while nothing else is to do. */
import { figureOfSamples } from '../rounds.mjs';

const EVERY_MS = 25;
const TITLES = {
  latency: 'submit to start',
  latencyEnd: 'submit to end',
  latencyKnown: 'submit to the answer that knows the end',
};

export async function latency(_, { sizes, systems, rounds, isLate, say }) {
  const { n } = sizes.latency;
  const taken = new Map();
  const take = async (system, elsewhere) => {
    const { start, end, known } = await system.latencies({ n, everyMs: EVERY_MS, elsewhere });
    for (const [key, samples] of Object.entries({ latency: start, latencyEnd: end, latencyKnown: known })) {
      if (samples === undefined) continue;
      const at = `${system.name} ${key} ${elsewhere ? 'Elsewhere' : ''}`;
      taken.set(at, [...(taken.get(at) ?? []), samples]);
    }
  };
  for (let round = 1; round <= rounds; round += 1) {
    if (round > 1 && isLate()) break;
    for (const system of systems) {
      say(`latency ${round}/${rounds}: ${system.name}`);
      await take(system, false);
      if (system.name === 'capstan') await take(system, true);
    }
  }
  return [...taken].map(([at, samples]) => {
    const [system, key, place] = at.split(' ');
    const what = `${TITLES[key]}${place ? ', another replica' : ''}`;
    return figureOfSamples(`${key}${place}`, system, what, samples);
  });
}
