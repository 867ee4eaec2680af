/**
 * Entry of the lease keeper's thread. It imports `pg` and Node alone, to stay small, and shares no pool, loop or lock
 * with the main thread: whatever that one does, leases are renewed.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { FromKeeper, KeeperThreadData, ToKeeper } from './keeper.js';
import { Outage } from './outage.js';
import { Renewer } from './renewer.js';
import { SharedMemory } from './shared-memory.js';
import { StallWatch } from './stall.js';

const port = parentPort;
if (!port) throw new Error('keeper.thread is the entry of a worker thread');

const { settings, memory: buffer } = workerData as KeeperThreadData;
const memory = new SharedMemory(buffer);
const report = (message: FromKeeper) => port.postMessage(message);
const outage = new Outage(report);

let renewer: Renewer | undefined;
let isGivenUp = false;

function endLife(): void {
  renewer?.end();
  renewer = undefined;
}

const watch = new StallWatch(settings, memory, () => {
  isGivenUp = true;
  endLife();
});
watch.start();

port.on('message', (message: ToKeeper) => {
  endLife();
  if (message.type === 'begin' && !isGivenUp) {
    renewer = new Renewer(message.life, { settings, memory, outage, report, wallMs: () => Date.now() });
    void renewer.run();
  }
  if (message.type === 'close') {
    watch.stop();
    // The thread ends by itself once the last session has said farewell.
    port.close();
  }
});
