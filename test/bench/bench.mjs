/**
 * `npm run bench`: what this build does on this machine, so that whoever changes it sees what a change costs. Figures
 * go to standard output, progress to standard error.
 */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { figureOf, machineOf, tableOf } from './figures.mjs';
import { Ground } from './ground.mjs';
import { LONG_PARTS, PARTS, yardsticks } from './parts.mjs';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;
const ALL = { ...PARTS, ...LONG_PARTS };
const NAMES = Object.keys(ALL);

const HELP = `Usage: npm run bench -- [options]

Measures a build with replicas and a PostgreSQL of their own, in a temporary folder that is gone afterwards.

  --only NAME    this part alone; may be given again (${NAMES.join(', ')})
  --lists        the lists alone, with five million ended runs: takes minutes (with --quick, 300,000)
  --quick        fewer items: to try the bench, not to compare
  --json         one JSON document instead of the table
  --dist FOLDER  the build to measure (default: dist)
  --help         this text
`;

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string', multiple: true, default: [] },
        lists: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        dist: { type: 'string', default: join(import.meta.dirname, '../../dist') },
        help: { type: 'boolean', default: false },
      },
    });
    const unknown = values.only.filter((name) => !NAMES.includes(name));
    if (unknown.length > 0) throw new Error(`there is no part ${unknown.join(', ')}: it is one of ${NAMES.join(', ')}`);
    return { ...values, only: values.lists ? [...values.only, 'lists'] : values.only };
  } catch (error) {
    process.stderr.write(`bench: ${error.message}\n`);
    process.exit(EXIT_USAGE);
  }
}

async function measure(ground, { only, quick }) {
  say('starting PostgreSQL');
  await ground.open();
  const machine = await machineOf(ground.sql);
  const bare = await yardsticks(ground, { quick });
  const commitMs = bare[1].msPerItem;
  const figures = bare.map((figure) => figureOf('yardstick', figure, commitMs));
  const failures = [];
  const chosen = only.length > 0 ? NAMES.filter((name) => only.includes(name)) : Object.keys(PARTS);
  for (const part of chosen) {
    say(`measuring ${part}`);
    try {
      figures.push(...(await ALL[part](ground, { quick })).map((figure) => figureOf(part, figure, commitMs)));
    } catch (error) {
      failures.push({ part, error: error.message });
      say(`${part} failed: ${error.message}`);
    } finally {
      await ground.endReplicas();
    }
  }
  return { machine, quick, figures, failures };
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
    process.stdout.write(options.json ? `${JSON.stringify(result, null, 2)}\n` : tableOf(result));
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
