/**
 * A replica to be killed: starts a supervisor and one tool, renews the lease, and says what it started.
 * argv: folder of the compiled sources, options as JSON. Each line of stdout is one JSON object.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';

const [dist, json] = process.argv.slice(2);
const { temp, plan, graceMs, deadlineMs, cgroup } = JSON.parse(json);
const { startSupervisor } = await import(`${dist}/execution/supervisor/supervisor.client.js`);
const { creditOf } = await import(`${dist}/execution/supervisor/frames.js`);
const { encodeExtension } = await import(`${dist}/execution/supervisor/keeper-frame.js`);

const incarnation = randomUUID();
const say = (message) => console.log(JSON.stringify(message));
const supervisor = await startSupervisor({
  incarnation,
  graceMs,
  deadlineMs,
  cgroup,
  tempDir: temp,
  stderr: 'ignore',
  onGroupsOnly: (tools, why) => say({ groupsOnly: tools, why }),
  onLeftovers: (leftovers) => say({ leftovers }),
});
let seq = 0;
const renew = () => {
  seq += 1;
  writeSync(supervisor.keeperFd, encodeExtension({ incarnation, seq, sentAtNs: process.hrtime.bigint() }));
};
renew();
setInterval(renew, 100);

// A child of the replica that outlives it, as any may: it must not hold the command channel open.
const sibling = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
say({ supervisor: supervisor.pid, sibling: sibling.pid });
supervisor.launch(
  { key: 1, incarnation, runId: randomUUID(), fence: 1, plan },
  {
    onStarted: ({ pgid }) => say({ pgid }),
    onOutput: ({ bytes }) => {
      supervisor.grantCredit(1, creditOf(bytes.length));
      say({ output: bytes.toString() });
    },
    onEnded: (end) => say({ end }),
    onFailed: (failed) => say({ failed }),
    onUnread: () => undefined,
    onRefused: (refused) => say({ refused }),
  },
);
