/**
 * What a run of the demo executes: `tool.mjs FILE STEPS MS`. Each step appends one line to the effects file, which no
 * replica touches, so the file tells what really happened: which run, in which process, when.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const [, , file = '', steps = '', ms = ''] = process.argv;
for (let step = 1; step <= Number(steps); step += 1) {
  appendFileSync(file, `${process.env.CAPSTAN_RUN_ID} ${process.pid} ${Date.now()}\n`);
  console.log(`step ${step} of ${steps}`);
  await pause(Number(ms));
}
