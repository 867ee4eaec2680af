/** Figures and how they are shown: one table for a person, one document for a program. */
import { availableParallelism, cpus, totalmem } from 'node:os';
import Table from 'cli-table3';

const GIB = 1_073_741_824;
const PLAIN = { head: [], border: [] };
const NO_RULES = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

function percentile(samples, share) {
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

export async function timed(work) {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
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
  const rounded = { part, ...figure, value: round(figure.value) };
  if (figure.p95 !== undefined) rounded.p95 = round(figure.p95);
  return msPerItem === undefined || !commitMs ? rounded : { ...rounded, commits: round(msPerItem / commitMs) };
}

/** Three digits are all that such a measurement is good for. */
function round(value) {
  return Number(value.toPrecision(3));
}

export function tableOf({ machine, figures, failures, quick }) {
  const table = new Table({
    head: ['part', 'what', 'figure', 'p95', 'unit', 'n', 'commits'],
    colAligns: ['left', 'left', 'right', 'right', 'left', 'right', 'right'],
    style: PLAIN,
    chars: NO_RULES,
  });
  for (const { part, what, value, p95, unit, n, commits } of figures) {
    table.push([part, what, shown(value), shown(p95), unit, shown(n), shown(commits)]);
  }
  const { cpus, cpu, memoryGib, platform, node, postgres } = machine;
  return [
    table.toString(),
    `${cpus} × ${cpu}, ${memoryGib} GiB, ${platform}, Node ${node}, PostgreSQL ${postgres}`,
    'Times are medians. commits: what one item takes, in bare committed inserts of the same machine.',
    ...(quick ? ['Measured with --quick: good for trying the bench, not for comparing.'] : []),
    ...failures.map(({ part, error }) => `${part} failed: ${error}`),
    '',
  ].join('\n');
}

function shown(value) {
  return value === undefined ? '' : value.toLocaleString('en-US', { maximumSignificantDigits: 3 });
}
