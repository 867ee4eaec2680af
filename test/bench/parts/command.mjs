/** (f) Processes: how many a second, and how soon one starts. */
import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { figureOfTimes, rate, series } from '../figures.mjs';
import { inParallel, timed } from '../lanes.mjs';
import { Capstan } from '../systems/capstan.mjs';

const SLOTS = 32;
const TRUE = { kind: 'command', spec: { argv: ['true'] } };

export async function command(ground, { sizes }) {
  const { n, starts } = sizes.command;
  const bare = await timed(() => inParallel(n, SLOTS, spawned));
  const took = await new Capstan(ground, SLOTS).drain({ n, workers: 1, warmUp: SLOTS, run: TRUE });
  const replica = await ground.replica();
  await replica.client.runToEnd(TRUE);
  const samples = await series(starts, async () => {
    // Until everything about the run before has settled.
    await pause(20);
    const { createdAt, startedAt } = await replica.client.runToEnd(TRUE);
    return Date.parse(startedAt) - Date.parse(createdAt);
  });
  return [
    rate(`\`true\` in a bare loop, ${SLOTS} at a time`, n, bare),
    { ...rate(`runs of \`true\`, ${SLOTS} slots`, n, took), key: 'command' },
    figureOfTimes('submit to start of a command, idle replica', samples),
  ];
}

function spawned() {
  return new Promise((resolve, reject) => {
    spawn('true', { stdio: ['ignore', 'pipe', 'pipe'] })
      .once('error', reject)
      .once('close', resolve);
  });
}
