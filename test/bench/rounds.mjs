/** Systems side by side: in turn, round by round, so that what else the machine does strikes them alike. */
import { median, percentile } from './figures.mjs';
import { KNOWN } from './peers.mjs';

/**
 * @typedef {object} Measure
 * @property {string} key under which ratios and known figures are kept
 * @property {string} what
 * @property {number} n
 * @property {(system: object) => Promise<number>} take milliseconds for all `n`
 * @property {(system: object) => boolean} [concerns]
 */

/** Rates per second of each system in each measure. @param {Measure[]} measures */
export async function ratesInTurn({ systems, rounds, isLate, say }, measures) {
  const figures = [];
  for (const { key, what, n, take, concerns = () => true } of measures) {
    const rates = new Map(systems.filter(concerns).map(({ name }) => [name, []]));
    for (let round = 1; round <= rounds; round += 1) {
      if (round > 1 && isLate()) break;
      for (const system of systems.filter(concerns)) {
        const perSecond = (n * 1_000) / (await take(system));
        rates.get(system.name).push(perSecond);
        say(`${key} ${round}/${rounds}: ${system.name} ${Math.round(perSecond)} per second`);
      }
    }
    for (const [system, taken] of rates) {
      const value = median(taken);
      figures.push(
        figureOfRounds(taken, { key, system, what, value, unit: 'per second', n, msPerItem: 1_000 / value }),
      );
    }
  }
  return figures;
}

/** Of samples in milliseconds, round by round: the medians' median, and tails over all samples. */
export function figureOfSamples(key, system, what, rounds) {
  const all = rounds.flat();
  const [value, p95, p99] = [median(rounds.map(median)), percentile(all, 0.95), percentile(all, 0.99)];
  return figureOfRounds(rounds.map(median), { key, system, what, value, unit: 'ms', n: all.length, p95, p99 });
}

function figureOfRounds(taken, figure) {
  const known = KNOWN[figure.system]?.[figure.key];
  return {
    ...figure,
    rounds: taken,
    min: Math.min(...taken),
    max: Math.max(...taken),
    ...(known !== undefined && { known }),
  };
}
