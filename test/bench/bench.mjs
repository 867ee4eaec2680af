/**
 * `npm run bench`: what this build does on this machine, so that whoever changes it sees what a change costs. Figures
 * go to standard output, progress to standard error.
 */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { figureOf, machineOf, tableOf } from './figures.mjs';
import { Ground } from './ground.mjs';
import { yardsticks } from './parts/yardsticks.mjs';
import { PARTS, partsOf } from './parts.mjs';
import { badlySetUp, installPeers } from './peers.mjs';
import { ratiosOf } from './ratios.mjs';
import { SIZES } from './sizes.mjs';
import { Capstan } from './systems/capstan.mjs';
import { Peer } from './systems/peer.mjs';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;
const NAMES = Object.keys(PARTS);

const HELP = `Usage: npm run bench -- [options]

Measures a build with replicas and a PostgreSQL of their own, in a temporary folder that is gone afterwards.

  --peers        graphile-worker and pg-boss too, in turn on the same server; installs them when they are missing
  --quick        submits, drains and latencies alone: a few minutes
  --full         everything, at full size: hours
  --only NAME    this part alone; may be given again (${NAMES.join(', ')})
  --lists        the lists alone, with five million ended runs: takes minutes (with --quick, 300,000)
  --json         one JSON object instead of the table, on one line: the last on standard output, before which npm
                 writes what it runs (npm run --silent bench writes nothing else)
  --dist FOLDER  the build to measure (default: dist)
  --help         this text
`;

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        peers: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        full: { type: 'boolean', default: false },
        tiny: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
        lists: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        dist: { type: 'string', default: join(import.meta.dirname, '../../dist') },
        help: { type: 'boolean', default: false },
      },
    });
    const unknown = values.only.filter((name) => !NAMES.includes(name));
    if (unknown.length > 0) throw new Error(`there is no part ${unknown.join(', ')}: it is one of ${NAMES.join(', ')}`);
    if (values.quick && values.full) throw new Error('--quick and --full exclude each other');
    const mode = ['tiny', 'quick', 'full'].find((name) => values[name]) ?? 'usual';
    return { ...values, mode, only: values.lists ? [...values.only, 'lists'] : values.only };
  } catch (error) {
    process.stderr.write(`bench: ${error.message}\n`);
    process.exit(EXIT_USAGE);
  }
}

async function measure(ground, options) {
  const node = options.peers ? await installPeers((...how) => ground.run(...how), say) : undefined;
  say('starting PostgreSQL');
  await ground.open();
  const machine = await machineOf(ground.sql);
  const sizes = SIZES[options.mode];
  const bare = await yardsticks(ground, sizes);
  const commitMs = bare[1].msPerItem;
  const figures = bare.map((figure) => figureOf('yardstick', figure, commitMs));
  const failures = [];
  const chosen = options.only.length > 0 ? NAMES.filter((name) => options.only.includes(name)) : partsOf(options.mode);
  const begunAt = performance.now();
  const isLate = () => performance.now() - begunAt > (sizes.roundsUntilMs ?? Number.POSITIVE_INFINITY);
  for (const part of chosen) {
    say(`measuring ${part}`);
    try {
      await ground.renew();
      const systems = [new Capstan(ground, sizes.slots), ...(node ? peersOn(ground, node) : [])];
      const found = await PARTS[part](ground, { sizes, systems, rounds: sizes.rounds, isLate, say });
      figures.push(...found.map((figure) => figureOf(part, figure, commitMs)));
    } catch (error) {
      failures.push({ part, error: error.message });
      say(`${part} failed: ${error.message}`);
    } finally {
      await ground.endRunning();
    }
  }
  for (const error of badlySetUp(figures, commitMs)) failures.push({ part: 'peers', error });
  return { machine, mode: options.mode, figures, ...ratiosOf(figures), failures };
}

function peersOn(ground, node) {
  return ['graphile', 'pgboss'].map((name) => new Peer(ground, name, node));
}

function say(line) {
  process.stderr.write(`bench: ${line}\n`);
}

const options = readOptions();
if (options.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const ground = new Ground(resolve(options.dist));
const interrupted = new Promise((done) => {
  // Further signals change nothing: ending everything is under way.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => done(undefined));
});
const measured = measure(ground, options);
try {
  const result = await Promise.race([measured, interrupted]);
  if (result === undefined) {
    say('ending what was started');
    process.exitCode = EXIT_INTERRUPTED;
  } else {
    process.stdout.write(options.json ? `${JSON.stringify(result)}\n` : tableOf(result));
    for (const { part, error } of result.failures) say(`${part} failed: ${error}`);
    if (result.failures.length > 0) process.exitCode = EXIT_FAILED;
  }
} catch (error) {
  say(error.message);
  process.exitCode = EXIT_FAILED;
} finally {
  measured.catch(() => undefined);
  await ground.close();
}
process.exit();
