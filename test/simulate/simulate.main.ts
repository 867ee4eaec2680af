/** `npm run simulate`: histories for as long as one likes; the first that breaks a law is kept as a file. */
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { campaign, type Failure, report, type Tally } from './campaign.js';
import { startServer } from './server.js';

const SEEDS = new URL('./test/simulate/seeds/', `file://${process.cwd()}/`);
const MINUTE_MS = 60_000;
const TELL_EVERY_MS = 10_000;
const EXIT_INTERRUPTED = 130;

const HELP = `npm run simulate -- [options]

Runs random histories of a cluster, and looks at the laws after every step. The same seed makes the same histories.
Progress goes to stderr. A history that breaks a law is made small, printed, and kept in test/simulate/seeds.

  --minutes N    how long (default 10)
  --seed S       of the first history; each has a seed of its own, one more than the last (default: by chance)
  --replicas N   1 to 5 (default 3)
  --lanes N      histories side by side, 1 to 8 (default 3)
  --shrink N     seconds for making a history small that broke a law (default 120)
  --json         one line of JSON on stdout at the end
  --help         this

Exit status: 0 when every law held, 1 when one broke, 2 when an option is wrong, 130 when every law held up to a Ctrl-C.
`;

interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly replicas: number;
  readonly lanes: number;
  readonly shrinkForMs: number;
  readonly json: boolean;
}

class Usage extends Error {}

function readOptions(args: string[]): Options | 'help' {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const options = { minutes: text, seed: text, replicas: text, lanes: text, shrink: text, json: flag, help: flag };
  let values: ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];
  try {
    ({ values } = parseArgs({ args, options }));
  } catch (error) {
    throw new Usage(error instanceof Error ? error.message : String(error));
  }
  if (values.help) return 'help';
  return {
    minutes: numberIn('minutes', values.minutes ?? '10', 0.01, 100_000),
    seed: wholeIn('seed', values.seed ?? String(Math.floor(Math.random() * 1_000_000_000)), 0, 2_000_000_000),
    replicas: wholeIn('replicas', values.replicas ?? '3', 1, 5),
    lanes: wholeIn('lanes', values.lanes ?? '3', 1, 8),
    shrinkForMs: numberIn('shrink', values.shrink ?? '120', 0, 3_600) * 1_000,
    json: values.json ?? false,
  };
}

function numberIn(name: string, text: string, min: number, max: number): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (value >= min && value <= max) return value;
  throw new Usage(`--${name} takes a number from ${min} to ${max}`);
}

function wholeIn(name: string, text: string, min: number, max: number): number {
  const value = numberIn(name, text, min, max);
  if (Number.isInteger(value)) return value;
  throw new Usage(`--${name} takes a whole number`);
}

/** Tells now and then how far it is, until the returned function is called. */
function tellProgress(tally: () => Tally, begunAtMs: number): () => void {
  const tell = () => {
    const seconds = (performance.now() - begunAtMs) / 1_000;
    const { steps, histories } = tally();
    const rate = Math.round(steps / seconds);
    const load = loadavg()[0]?.toFixed(1);
    process.stderr.write(
      `${Math.round(seconds)} s: ${histories} histories, ${steps} steps, ${rate}/s (load ${load})\n`,
    );
  };
  const timer = setInterval(tell, TELL_EVERY_MS);
  return () => {
    clearInterval(timer);
    tell();
  };
}

async function keep(failure: Failure): Promise<string> {
  const { trace: _, fact, ...kept } = failure;
  const file = new URL(`${failure.seed}.json`, SEEDS);
  const date = new Date().toISOString().slice(0, 10);
  await writeFile(file, `${JSON.stringify({ ...kept, date, comment: fact }, null, 2)}\n`);
  return file.pathname;
}

/** The exit status. */
export async function simulate(args: string[]): Promise<number> {
  const options = readOptions(args);
  if (options === 'help') {
    process.stdout.write(HELP);
    return 0;
  }
  let isStopping = false;
  const stop = () => {
    isStopping = true;
  };
  // npm passes on a Ctrl-C that the terminal has sent to all already: it may come twice.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
  const { seed, replicas, lanes, minutes, shrinkForMs } = options;
  process.stderr.write(`seed ${seed}, ${replicas} replicas, ${lanes} lanes, ${minutes} minutes\n`);
  const server = await startServer();
  const begunAtMs = performance.now();
  let latest: Tally = { histories: 0, steps: 0 };
  const endProgress = tellProgress(() => latest, begunAtMs);
  const isEnough = (tally: Tally) => {
    latest = tally;
    return isStopping || performance.now() - begunAtMs > minutes * MINUTE_MS;
  };
  try {
    const { failure, steps, histories } = await campaign(server, {
      seed,
      replicas,
      lanes,
      isEnough,
      shrinkForMs,
    });
    endProgress();
    if (failure) process.stderr.write(`${report(failure)}\nkept in ${await keep(failure)}\n`);
    else process.stderr.write('every law held\n');
    const seconds = Math.round((performance.now() - begunAtMs) / 1_000);
    const broken = failure && { seed: failure.seed, law: failure.law, fact: failure.fact };
    if (options.json)
      process.stdout.write(`${JSON.stringify({ seed, replicas, histories, steps, seconds, broken })}\n`);
    if (failure) return 1;
    return isStopping ? EXIT_INTERRUPTED : 0;
  } finally {
    await server.stop();
  }
}

/** Says what is wrong with the options. */
export async function main(args: string[]): Promise<void> {
  try {
    process.exitCode = await simulate(args);
  } catch (error) {
    if (!(error instanceof Usage)) throw error;
    process.stderr.write(`${error.message}; see --help\n`);
    process.exitCode = 2;
  }
}
