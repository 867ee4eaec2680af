/** The peers: installed where they are missing, with the Node that they need, and what is known of them. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, 'peers');
const STAMP = join(FOLDER, 'node_modules/.installed');
const NODE_AT_LEAST = 22.18;
const SET_UP_WELL = 0.7;

/**
 * Their figures in the same settings, measured on two cores with a committed insert of 130 µs: per second, and
 * milliseconds where it is a latency.
 */
export const KNOWN = Object.freeze({
  graphile: { title: 'graphile-worker', submit: 1_535, batch: 69_000, drain: 39_200, drain2: 50_100, latency: 4.3 },
  pgboss: {
    title: 'pg-boss',
    submit: 2_211,
    batch: 50_000,
    batch4: 80_000,
    drain: 28_300,
    drain2: 27_700,
    latency: 5.7,
  },
});

/** Which of a peer's figures say that it was badly set up here. */
export function badlySetUp(figures, commitMs) {
  return figures.flatMap(({ system, what, value, unit, known }) => {
    if (known === undefined) return [];
    const share = unit === 'ms' ? known / value : value / known;
    if (share >= SET_UP_WELL) return [];
    const title = KNOWN[system].title;
    return [
      `${title}: ${what}: ${shown(value)} ${unit} is ${share.toFixed(2)} of the known ${shown(known)}: ` +
        `badly set up, or this machine is slower or was busy (a committed insert: 0.13 ms there, ${shown(commitMs)} ms here)`,
    ];
  });
}

/** Installs the peers by `run`, unless that is done; resolves to the Node that runs them. */
export async function installPeers(run, say) {
  const lock = await readFile(join(FOLDER, 'package-lock.json'));
  const digest = createHash('sha256').update(lock).digest('hex');
  if ((await readFile(STAMP, 'utf8').catch(() => '')) !== digest) {
    say('installing the peers');
    await npmCi(run);
    await writeFile(STAMP, digest);
  }
  const node = join(FOLDER, `node_modules/node-${process.platform}-${process.arch}/bin/node`);
  if (existsSync(node)) return node;
  if (Number.parseFloat(process.versions.node) >= NODE_AT_LEAST) return process.execPath;
  throw new Error(
    `the peers need Node ${NODE_AT_LEAST} or newer, and npm has none for ${process.platform} ${process.arch}`,
  );
}

/** No install script runs: neither the peers nor their Node need one. */
function npmCi(run) {
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  return run('npm', args, { cwd: FOLDER, env: withoutNpm(process.env) });
}

/** `npm run` tells its children of its own project; only what says how to reach the registry is for another. */
function withoutNpm(env) {
  const isOfProject = (name) => /^npm_(package|lifecycle|config_(local_prefix|prefix))/.test(name);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isOfProject(name)));
}

function shown(value) {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 3 });
}
