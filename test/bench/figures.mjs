/** Figures and how they are shown: one table for a person, one document for a program. */
import { availableParallelism, cpus, totalmem } from 'node:os';
import Table from 'cli-table3';

const GIB = 1_073_741_824;
export const MIB = 1_048_576;
const PLAIN = { head: [], border: [] };
const NO_RULES = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

export function percentile(samples, share) {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(samples) {
  return percentile(samples, 0.5);
}

/** A figure made of times in milliseconds, one an item. */
export function figureOfTimes(what, samples) {
  return {
    what,
    value: median(samples),
    unit: 'ms',
    n: samples.length,
    p95: percentile(samples, 0.95),
    msPerItem: median(samples),
  };
}

/** Items of which all together took so long. */
export function rate(what, n, tookMs) {
  return { what, value: (n * 1_000) / tookMs, unit: 'per second', n, msPerItem: tookMs / n };
}

export async function series(n, work) {
  const samples = [];
  for (let i = 0; i < n; i += 1) samples.push(await work(i));
  return samples;
}

/** The machine that measured, as far as it explains the figures. */
export async function machineOf(sql) {
  const { rows } = await sql.query('show server_version');
  return {
    cpus: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGib: Math.round(totalmem() / GIB),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    postgres: rows[0].server_version,
  };
}

/** Rounded, and with what one item takes in commits of this machine's PostgreSQL where that says something. */
export function figureOf(part, { msPerItem, ...figure }, commitMs) {
  const rounded = { part, ...figure };
  for (const key of ROUNDED) if (figure[key] !== undefined) rounded[key] = round(figure[key]);
  if (figure.rounds !== undefined) rounded.rounds = figure.rounds.map(round);
  return msPerItem === undefined || !commitMs ? rounded : { ...rounded, commits: round(msPerItem / commitMs) };
}

const ROUNDED = ['value', 'p95', 'p99', 'min', 'max'];

/** Three digits are all that such a measurement is good for. */
function round(value) {
  return Number(value.toPrecision(3));
}

export function tableOf({ machine, figures, ratios, otherRatios, failures, mode }) {
  const table = new Table({
    head: ['part', 'system', 'what', 'figure', 'unit', 'rounds', 'p95', 'p99', 'known', 'n', 'commits'],
    colAligns: ['left', 'left', 'left', 'right', 'left', 'left', 'right', 'right', 'right', 'right', 'right'],
    style: PLAIN,
    chars: NO_RULES,
  });
  for (const { part, system = '', what, value, unit, min, max, p95, p99, known, n, commits } of figures) {
    const spread = min === undefined ? '' : `${shown(min)}–${shown(max)}`;
    table.push([part, system, what, shown(value), unit, spread, ...[p95, p99, known, n, commits].map(shown)]);
  }
  const { cpus, cpu, memoryGib, platform, node, postgres } = machine;
  const shares = Object.entries({ ...ratios, ...otherRatios }).map(([name, value]) => `${name} ${shown(value)}`);
  return [
    table.toString(),
    ...(shares.length > 0 ? [`Ratios, more is better for Capstan: ${shares.join(', ')}.`] : []),
    `${cpus} × ${cpu}, ${memoryGib} GiB, ${platform}, Node ${node}, PostgreSQL ${postgres}`,
    'Figures are medians; rounds: least and most. commits: what one item takes, in bare committed inserts of the same',
    'machine. known: what the peer did elsewhere in the same settings.',
    ...(mode === 'quick' ? ['Measured with --quick: (a), (b) and (c) only.'] : []),
    ...failures.map(({ part, error }) => `${part} failed: ${error}`),
    '',
  ].join('\n');
}

function shown(value) {
  return value === undefined ? '' : value.toLocaleString('en-US', { maximumSignificantDigits: 3 });
}
