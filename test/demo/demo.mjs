/**
 * `npm run demo`: three replicas, two accidents, and what became of each run. Exit code 0 says that all it claims held.
 */
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Fleet } from './fleet.mjs';
import { prove } from './proof.mjs';
import { Screen } from './screen.mjs';
import { Story } from './story.mjs';
import { claimsOf, effectsOf, fatesOf } from './verdict.mjs';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const HELP = `Usage: npm run demo -- [options]

Starts three Capstan replicas on a PostgreSQL of their own, gives them work, kills one and stops another, and shows what
became of each run. About a minute. Asks nothing, needs nothing, and leaves no process and no file; Ctrl-C ends it at any
moment.

  --json         the story to standard error, and one JSON document of what came of it to standard output
  --dist FOLDER  the build to show (default: dist)
  --help         this text

Exit codes: 0 all that it claims held   1 something did not   2 wrong usage   130 Ctrl-C
`;

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        json: { type: 'boolean', default: false },
        dist: { type: 'string', default: join(import.meta.dirname, '../../dist') },
        help: { type: 'boolean', default: false },
      },
    });
    return values;
  } catch (error) {
    process.stderr.write(`demo: ${error.message}\n`);
    process.exit(EXIT_USAGE);
  }
}

async function play(fleet, screen, signal) {
  const story = new Story(fleet, screen, signal);
  await story.start();
  const stream = await story.work();
  await story.strike(stream);
  await story.wake();
  const { runs } = await story.finish();
  const effects = effectsOf(await readFile(story.effectsFile, 'utf8'));
  const { plans, before, lateWrites, newLife, faults } = story;
  const fates = fatesOf({ plans, submitted: story.client.submitted, runs, effects, faults });
  showFates(screen, fates);
  const claims = claimsOf({ fates, runs, before, lateWrites, newLife, effects });
  return { fates, ...(await prove(fleet, screen, claims)) };
}

function showFates(screen, fates) {
  const { paint } = screen;
  screen.title('5. What became of each run');
  screen.table(
    ['run', 'taken by', 'ran on', 'steps', 'ended', 'why'],
    fates.map(({ name, takenBy, ranOn, did, of, state, why }) => [
      name,
      takenBy,
      ranOn,
      `${did} of ${of}`,
      state === 'succeeded' ? paint.green(state) : paint.red(state),
      why,
    ]),
  );
}

const options = readOptions();
if (options.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const interruption = new AbortController();
// Further signals change nothing: ending everything is under way.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interruption.abort());
const out = options.json ? process.stderr : process.stdout;
const screen = new Screen(out, process.env);
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', () => {
    screen.close();
    interruption.abort();
  });
}
const begunMs = performance.now();
const fleet = new Fleet(resolve(options.dist), interruption.signal);
let result;
try {
  screen.say(
    screen.paint.bold('Capstan: three replicas, one database, and two accidents. It takes about a minute.'),
    'Whatever is started here is ended, and every file removed, at the end. Ctrl-C does that at any moment.',
  );
  result = await play(fleet, screen, interruption.signal);
} catch (error) {
  process.exitCode = interruption.signal.aborted ? EXIT_INTERRUPTED : EXIT_FAILED;
  if (!interruption.signal.aborted) screen.say(`demo: it broke off: ${error.message}`, ...fleet.complaints());
} finally {
  screen.say('', 'Ending what was started, removing the folder.');
  await fleet.close();
}
if (result) {
  const seconds = Math.round((performance.now() - begunMs) / 1000);
  const { ok } = result;
  if (!ok) process.exitCode = EXIT_FAILED;
  screen.say(`Done in ${seconds} s: ${ok ? 'all of it held.' : 'NOT all of it held.'}`);
  if (options.json) process.stdout.write(`${JSON.stringify({ ok, seconds, ...result }, null, 2)}\n`);
}
