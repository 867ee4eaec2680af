import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  childrenOf,
  isRunning,
  linesOf,
  livingMembers,
  parentOf,
  shell,
  startRig,
  stateOf,
  until,
  within,
} from './rig.js';

describe('how a tool ends', () => {
  it('with the code or the signal that the kernel gave', async () => {
    const rig = await startRig();
    const byCode = rig.launch(shell('exit 200')).outcome;
    const bySignal = rig.launch(shell('kill -SEGV $$')).outcome;
    expect(await byCode).toEqual({ exitCode: 200, signal: null, cause: 'self', leftovers: false });
    expect(await bySignal).toEqual({ exitCode: null, signal: 'SIGSEGV', cause: 'self', leftovers: false });
  });

  it('F109 (1) with its own code and whole output, in under 5 s, when a background process holds the pipe', async () => {
    const rig = await startRig();
    const tool = rig.launch(shell('sleep 600 & echo hi; exit 3'));
    const outcome = await within(5_000, 'the end is told', tool.outcome);
    expect(outcome).toEqual({ exitCode: 3, signal: null, cause: 'self', leftovers: true });
    expect(tool.text()).toBe('hi\n');
  });

  it('F109 (2) with every byte, 50 times over', async () => {
    const rig = await startRig();
    for (let batch = 0; batch < 10; batch += 1) {
      const tools = Array.from({ length: 5 }, () => rig.launch(shell('yes | head -c 5000000; exit 0')));
      for (const tool of tools) {
        expect(await tool.outcome).toEqual({ exitCode: 0, signal: null, cause: 'self', leftovers: false });
        const bytes = tool.bytes(1);
        expect(bytes.length).toBe(5_000_000);
        expect(bytes.equals(Buffer.alloc(5_000_000, 'y\n'))).toBe(true);
      }
    }
  });

  it('F109 (3) although a background loop goes on writing, which is stopped and not stored later', async () => {
    const rig = await startRig();
    const tool = rig.launch(shell('(while :; do echo spam; sleep 0.1; done) & exit 0'));
    const pgid = await tool.pgid;
    expect(await tool.outcome).toEqual({ exitCode: 0, signal: null, cause: 'self', leftovers: true });
    expect(livingMembers(pgid), 'its group is gone when the end is told').toEqual([]);
    expect(tool.text(1).length).toBeLessThan(200);
  });

  it('F109 (4) at once when it is canceled or out of time, with what it started', async () => {
    const rig = await startRig({ graceMs: 20_000 });
    const timedOut = rig.launch({ ...shell('sleep 30; true'), timeoutMs: 200 });
    const canceled = rig.launch(shell('sleep 30; true'));
    await canceled.pgid;
    rig.supervisor.stop(canceled.key, 'cancel');
    const byTerm = { exitCode: null, signal: 'SIGTERM', leftovers: false };
    const ends = Promise.all([canceled.outcome, timedOut.outcome]);
    expect(await within(10_000, 'both ends are told, long before the grace period is over', ends)).toEqual([
      { ...byTerm, cause: 'cancel' },
      { ...byTerm, cause: 'timeout' },
    ]);
  });

  it('with the last words of a process that reads the shell’s output and ends by itself', async () => {
    const rig = await startRig();
    const tool = rig.launch(shell('{ read line; sleep 0.1; echo "last: $line"; } <<E &\nword\nE\nexit 0'));
    expect(await tool.outcome).toEqual({ exitCode: 0, signal: null, cause: 'self', leftovers: false });
    expect(tool.text(1)).toBe('last: word\n');
  });

  it('although nobody reaps the zombies of its group, but not while one of the group lives', async () => {
    const rig = await startRig({ cgroup: null });
    const [member, stubborn] = [join(rig.scratch, 'member'), join(rig.scratch, 'stubborn')];
    // The subshell leaves the group, is the parent of a process in it, and reaps nothing.
    const zombie = `(sleep 600 & echo $! > ${member}; exec setsid sleep 601) &`;
    const other = `(trap "" TERM; echo up > ${stubborn}; while :; do sleep 0.05; done) &`;
    const tool = rig.launch(shell(`${zombie} ${other} until [ -s ${member} -a -s ${stubborn} ]; do :; done; exit 7`));
    const pgid = await tool.pgid;
    expect(await tool.outcome).toEqual({
      exitCode: 7,
      signal: null,
      cause: 'self',
      leftovers: true,
      killedAfterMs: 1_000,
    });
    const pid = Number(linesOf(member)[0]);
    expect(stateOf(pid)).toBe('Z');
    process.kill(parentOf(pid), 'SIGKILL');
    expect(livingMembers(pgid)).toEqual([]);
  });

  it.each([
    ['now and then', 'setInterval(() => console.log("spam"), 10)'],
    ['without end', 'for (;;) fs.writeSync(1, "spam".repeat(1000))'],
  ])('although a process that left the group writes to its pipe %s', async (_often, script) => {
    const rig = await startRig({ cgroup: null });
    const file = join(rig.scratch, 'stranger');
    const stranger = `fs.writeFileSync("${file}", String(process.pid)); ${script}`;
    const tool = rig.launch(
      shell(`setsid ${process.execPath} -e '${stranger}' & until [ -s ${file} ]; do :; done; exit 7`),
    );
    expect(await tool.outcome).toMatchObject({ exitCode: 7, cause: 'self' });
    process.kill(Number(linesOf(file)[0]), 'SIGKILL');
  });

  it('F032 without leaving zombies: 60 tools later the supervisor has no child, dead or alive', async () => {
    const rig = await startRig();
    for (let batch = 0; batch < 5; batch += 1) {
      const scripts = Array.from({ length: 6 }, () => ['(sleep 1 &) ; exit 0', 'setsid sleep 2 & exit 0']).flat();
      const outcomes = await Promise.all(scripts.map((script) => rig.launch(shell(script)).outcome));
      expect(outcomes).toMatchObject(scripts.map(() => ({ exitCode: 0, cause: 'self' })));
    }
    // What lost its parent is for process 1 to collect.
    await until('its own are collected', () => childrenOf(rig.pid, 'dead or alive').length === 0);
  });

  it('S4-25 without a process that left the group by setsid, which without a cgroup is out of reach of a cancel too', async () => {
    const rig = await startRig({ cgroup: null });
    const file = join(rig.scratch, 'pid');
    const tool = rig.launch(shell(`setsid sh -c 'echo $$ > ${file}; exec sleep 600' & sleep 600`));
    await until('the process has left', () => linesOf(file).length === 1);
    const pid = Number(linesOf(file)[0]);
    onTestFinished(() => {
      process.kill(pid, 'SIGKILL');
    });
    rig.supervisor.stop(tool.key, 'cancel');
    expect(await tool.outcome).toMatchObject({ cause: 'cancel', signal: 'SIGTERM' });
    expect(isRunning(pid)).toBe(true);
  });
});

describe('how a tool is stopped', () => {
  it('S4-21 S4-93 politely: TERM first, and what its handler writes is kept', async () => {
    const rig = await startRig({ graceMs: 20_000 });
    const tool = rig.launch(shell('trap "echo cleaned; exit 9" TERM; echo up; while :; do sleep 0.05; done'));
    await until('the handler is set', () => tool.text(1) === 'up\n');
    rig.supervisor.stop(tool.key, 'drain');
    expect(await tool.outcome).toEqual({ exitCode: 9, signal: null, cause: 'drain', leftovers: false });
    expect(tool.text(1)).toBe('up\ncleaned\n');
  });

  it('S4-21 by KILL after the grace period when it ignores TERM, and not before', async () => {
    const rig = await startRig({ graceMs: 700 });
    const tool = rig.launch(shell('trap "" TERM; echo up; while :; do sleep 0.05; done'));
    await until('the handler is set', () => tool.text(1) === 'up\n');
    const stoppedAt = performance.now();
    rig.supervisor.stop(tool.key, 'cancel');
    const outcome = await within(10_000, 'it is killed', tool.outcome);
    expect(performance.now() - stoppedAt, 'killed before its grace period was over').toBeGreaterThanOrEqual(695);
    const killed = { exitCode: null, signal: 'SIGKILL', killedAfterMs: 700 };
    expect(outcome).toEqual({ ...killed, cause: 'cancel', leftovers: false });
  });

  it('with the whole grace period for its children when the shell in front of them dies at once', async () => {
    const rig = await startRig({ graceMs: 20_000 });
    const file = join(rig.scratch, 'effects');
    const child = `trap "sleep 0.6; echo saved >> ${file}; exit" TERM; echo up; while :; do sleep 0.05; done`;
    const tool = rig.launch(shell(`sh -c '${child}'; true`));
    await until('the handler is set', () => tool.text(1) === 'up\n');
    rig.supervisor.stop(tool.key, 'cancel');
    expect(await tool.outcome).toEqual({ exitCode: null, signal: 'SIGTERM', cause: 'cancel', leftovers: false });
    expect(linesOf(file)).toEqual(['saved']);
  });

  it('never before a timeout of a month, which is longer than a timer of Node can be', async () => {
    const rig = await startRig();
    const file = join(rig.scratch, 'go');
    const script = `until [ -e ${file} ]; do sleep 0.02; done; exit 5`;
    const tool = rig.launch({ ...shell(script), timeoutMs: 30 * 24 * 3_600_000 });
    await tool.pgid;
    // A timer that fell short would have fired before this one.
    const other = rig.launch({ argv: ['sleep', '600'], timeoutMs: 100 });
    expect(await other.outcome).toMatchObject({ cause: 'timeout' });
    writeFileSync(file, '');
    expect(await tool.outcome).toMatchObject({ exitCode: 5, cause: 'self' });
  });

  it('for the first cause that was given', async () => {
    const rig = await startRig({ graceMs: 20_000 });
    const tool = rig.launch(shell('trap "" TERM; echo up; while :; do sleep 0.05; done'));
    await until('the handler is set', () => tool.text(1) === 'up\n');
    rig.supervisor.stop(tool.key, 'drain');
    rig.supervisor.stop(tool.key, 'cancel');
    rig.supervisor.kill(tool.key);
    expect(await tool.outcome).toEqual({ exitCode: null, signal: 'SIGKILL', cause: 'drain', leftovers: false });
  });

  it('before it started, when the stop overtakes it: refused, and no tool runs', async () => {
    const rig = await startRig();
    const file = join(rig.scratch, 'effects');
    // While it stands still, both commands come to lie in its channel: it reads the stop together with the start.
    process.kill(rig.pid, 'SIGSTOP');
    await until('the supervisor is stopped', () => stateOf(rig.pid) === 'T');
    const tools = Array.from({ length: 20 }, () => rig.launch(shell(`echo ran >> ${file}; sleep 600`)));
    for (const tool of tools) rig.supervisor.stop(tool.key, 'cancel');
    await new Promise((resolve) => setImmediate(resolve));
    process.kill(rig.pid, 'SIGCONT');
    const outcomes = await Promise.all(tools.map((tool) => tool.outcome));
    expect(outcomes).toEqual(tools.map(() => ({ refused: 'stopping' })));
    // The turn of this one comes after all of theirs; a tool among them would still be there, or have left its line.
    expect(await rig.launch({}).outcome).toMatchObject({ exitCode: 0 });
    expect(childrenOf(rig.pid), 'a tool was started although its start was refused').toEqual([]);
    expect(linesOf(file)).toEqual([]);
  });

  it('F112 never for being silent or standing still: liveness is the lease and the process', async () => {
    const rig = await startRig({ deadlineMs: 600, graceMs: 300 });
    const renewals = setInterval(() => rig.renew(), 50);
    onTestFinished(() => clearInterval(renewals));
    const tool = rig.launch(shell('sleep 600 & wait $!; exit 6'));
    const pgid = await tool.pgid;
    process.kill(-pgid, 'SIGSTOP');
    await until('the tool is stopped', () => stateOf(pgid) === 'T');
    const silentSince = performance.now();
    await until('three deadlines went by', () => performance.now() - silentSince > 1_800);
    expect(stateOf(pgid)).toBe('T');
    expect(rig.supervisor.groups()).toEqual([pgid]);
    process.kill(-pgid, 'SIGCONT');
    rig.supervisor.stop(tool.key, 'cancel');
    expect(await tool.outcome).toMatchObject({ cause: 'cancel' });
  });

  it('also while it is stopped by SIGSTOP: it goes on to take TERM', async () => {
    const rig = await startRig({ graceMs: 20_000 });
    const tool = rig.launch(shell('trap "echo cleaned; exit 9" TERM; echo up; while :; do sleep 0.05; done'));
    await until('the handler is set', () => tool.text(1) === 'up\n');
    const pgid = await tool.pgid;
    process.kill(-pgid, 'SIGSTOP');
    // D: a shell between fork and exec of a child that was stopped first.
    await until('the tool is stopped', () => ['T', 'D'].includes(stateOf(pgid) ?? ''));
    rig.supervisor.stop(tool.key, 'cancel');
    expect(await tool.outcome).toMatchObject({ exitCode: 9, cause: 'cancel' });
  });
});
