/** What a cgroup adds to the process group. Without one each of these processes would live on: see end.process.spec. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Cgroup } from '../../../src/execution/supervisor/cgroup.js';
import { removeCgroupsOfDead } from '../../../src/execution/supervisor/tool-cgroups.js';
import { HAS_CGROUPS, ownCgroup } from './cgroup.fixture.js';
import { startReplica } from './replica.js';
import { isRunning, linesOf, livingMembers, type Rig, shell, startRig, until, within } from './rig.js';

/** Everything F064 names: a ticker in the background, one that left by a double fork, one that ignores TERM and INT. */
function stubborn(rig: Rig): { script: string; ticks: string; pids: () => number[] } {
  const [ticks, left] = [join(rig.scratch, 'ticks'), join(rig.scratch, 'left')];
  const ticker = `(while :; do echo x >> ${ticks}; sleep 0.02; done) &`;
  const leaver = `(setsid sh -c 'echo $$ >> ${left}; exec sleep 999' &)`;
  const deaf = `(setsid sh -c 'trap "" TERM INT; echo $$ >> ${left}; sleep 998; sleep 998' &)`;
  const script = `${ticker} ${leaver}; ${deaf}; sh -c 'trap "" TERM INT; sleep 998; sleep 998'`;
  return { script, ticks, pids: () => linesOf(left).map(Number) };
}

describe.skipIf(!HAS_CGROUPS)('a process that left its group by setsid', () => {
  it.each(['cancel', 'timeout', 'deadline', 'drain'] as const)(
    'F064 S4-25 S4-92 is gone with all others when the tool is stopped: %s',
    async (cause) => {
      const rig = await startRig({ graceMs: 500, deadlineMs: cause === 'deadline' ? 1_000 : 60_000 });
      const renewals = setInterval(() => rig.renew(), 100);
      onTestFinished(() => clearInterval(renewals));
      const { script, ticks, pids } = stubborn(rig);
      const tool = rig.launch({ ...shell(script), timeoutMs: cause === 'timeout' ? 5_000 : null });
      const pgid = await tool.pgid;
      await until('all of them run', () => pids().length === 2 && linesOf(ticks).length > 2);
      // The deadline is what comes when this stops.
      clearInterval(renewals);
      if (cause === 'cancel') rig.supervisor.stop(tool.key, 'cancel');
      if (cause === 'drain') void rig.supervisor.shutdown();
      const outcome = await within(10_000, 'the end is told', tool.outcome);
      const grown = linesOf(ticks).length;
      // The shell in front died of TERM; what it had started did not.
      expect(outcome).toMatchObject({ cause, signal: 'SIGTERM', killedAfterMs: expect.any(Number) });
      expect([...pids().filter(isRunning), ...livingMembers(pgid)], 'alive after the end was told').toEqual([]);
      await rig.supervisor.shutdown();
      expect(linesOf(ticks).length, 'the ticker went on').toBe(grown);
    },
  );

  it('F064 S4-26 is killed before the end is told as lost when the supervisor dies', async () => {
    const base = ownCgroup();
    const rig = await startRig({ graceMs: 60_000, cgroup: base.path });
    const { script, pids } = stubborn(rig);
    const tool = rig.launch(shell(script));
    await until('they have left', () => pids().length === 2);
    process.kill(rig.pid, 'SIGKILL');
    expect(await tool.outcome).toMatchObject({ cause: 'lost' });
    expect(pids().filter(isRunning)).toEqual([]);
    await rig.supervisor.gone;
    expect(await base.children(), 'left by the dead supervisor').toEqual([]);
  });

  it('F064 S4-19 is stopped when the replica is killed', async () => {
    const base = ownCgroup();
    const file = join(mkdtempSync(join(tmpdir(), 'capstan-spec-')), 'left');
    onTestFinished(() => rmSync(join(file, '..'), { recursive: true }));
    const script = `(setsid sh -c 'trap "" TERM; echo $$ > ${file}; sleep 998; sleep 998' &); sleep 997`;
    const replica = await startReplica(shell(script), { graceMs: 500, cgroup: base.path });
    await until('it has left', () => linesOf(file).length === 1);
    replica.process.kill('SIGKILL');
    await until('it is gone', () => !linesOf(file).map(Number).some(isRunning), 5_000);
    await until('the supervisor has ended', () => !isRunning(replica.supervisor), 5_000);
    expect(await base.children()).toEqual([]);
  });

  it('cannot escape however fast it is, and counts as left behind when the tool ends by itself', async () => {
    const base = ownCgroup();
    const rig = await startRig({ cgroup: base.path });
    const file = join(rig.scratch, 'left');
    const script = `setsid sh -c '(setsid sh -c "echo \\$\\$ >> ${file}; exec sleep 600" &)' & exit 4`;
    const tools = Array.from({ length: 20 }, () => rig.launch(shell(script)));
    for (const tool of tools) {
      expect(await tool.outcome).toEqual({ exitCode: 4, signal: null, cause: 'self', leftovers: true });
    }
    expect(linesOf(file)).toHaveLength(20);
    expect(linesOf(file).map(Number).filter(isRunning)).toEqual([]);
    await rig.supervisor.shutdown();
    expect(await base.children()).toEqual([]);
  });

  it('gets TERM and its grace period, as those of the group do', async () => {
    const rig = await startRig({ graceMs: 20_000 });
    const file = join(rig.scratch, 'words');
    const handler = `trap "sleep 0.3; echo saved >> ${file}; exit" TERM; echo up; while :; do sleep 0.02; done`;
    const tool = rig.launch(shell(`setsid sh -c '${handler}' & wait`));
    await until('the handler is set', () => tool.text(1) === 'up\n');
    rig.supervisor.stop(tool.key, 'cancel');
    expect(await tool.outcome).toEqual({ exitCode: null, signal: 'SIGTERM', cause: 'cancel', leftovers: false });
    expect(linesOf(file)).toEqual(['saved']);
  });
});

describe.skipIf(!HAS_CGROUPS)('what a supervisor that died with its replica left', () => {
  it('S4-20 is killed and removed by the next one, which leaves alone what is not surely dead', async () => {
    const base = ownCgroup();
    const living = await startRig({ cgroup: base.path });
    const kept = living.launch({ argv: ['sleep', '600'] });
    const keptPid = await kept.pgid;
    const file = join(living.scratch, 'left');
    const script = `setsid sh -c 'echo $$ > ${file}; exec sleep 998' & sleep 997`;
    const replica = await startReplica(shell(script), { graceMs: 60_000, cgroup: base.path });
    await until('it has left', () => linesOf(file).length === 1);
    process.kill(replica.supervisor, 'SIGSTOP');
    replica.process.kill('SIGKILL');
    process.kill(replica.supervisor, 'SIGKILL');
    await until('both are dead', () => !isRunning(replica.supervisor) && !isRunning(replica.process.pid ?? 0));
    const [left = 0] = linesOf(file).map(Number);
    expect(isRunning(left), 'nobody was there to stop it').toBe(true);
    const [, , start = ''] =
      (await base.children()).find((name) => name.includes(`-${living.pid}-`))?.split(/-\d+-/) ?? [];
    // The same number in another namespace of process numbers, and names that are none of ours.
    const strange = [`capstan-1-${replica.supervisor}-1`, `other-${start}`, 'capstan-x'];
    for (const name of strange) mkdirSync(join(base.path, name));
    const next = await startRig({ cgroup: base.path });
    expect(isRunning(left)).toBe(false);
    expect(isRunning(keptPid)).toBe(true);
    const names = await base.children();
    expect(names).toEqual(expect.arrayContaining(strange));
    expect(
      names
        .filter((name) => /^capstan-\d+-\d+-\d{3,}$/.test(name))
        .map((name) => name.split('-')[2])
        .sort(),
    ).toEqual([living.pid, next.pid].map(String).sort());
    // A number that was given away again is known by the start of its process.
    const reused = join(base.path, `${names.find((name) => name.includes(`-${next.pid}-`))?.replace(/\d+$/, '7')}`);
    mkdirSync(reused);
    await removeCgroupsOfDead(base.path);
    expect(existsSync(reused)).toBe(false);
    expect(isRunning(keptPid)).toBe(true);
  });
});

describe.skipIf(!HAS_CGROUPS)('a supervisor', () => {
  it('stays out of the cgroups of its tools, and its tools stay in theirs', async () => {
    const base = ownCgroup();
    const rig = await startRig({ cgroup: base.path });
    const tools = [1, 2, 3].map(() => rig.launch(shell('sleep 600 & wait')));
    const pgids = await Promise.all(tools.map(({ pgid }) => pgid));
    await until('each has its child', () => pgids.every((pgid) => livingMembers(pgid).length === 2));
    const [folder = ''] = await base.children();
    const members = (name: string) => new Cgroup(join(base.path, folder, name)).members().sort();
    for (const [index, pgid] of pgids.entries()) {
      expect(members(`t${tools[index]?.key}`)).toEqual(livingMembers(pgid).sort());
    }
    expect(base.members()).toContain(rig.pid);
    for (const tool of tools) rig.supervisor.kill(tool.key);
    expect(await Promise.all(tools.map(({ outcome }) => outcome))).toMatchObject(
      tools.map(() => ({ cause: 'cancel' })),
    );
    expect(isRunning(rig.pid)).toBe(true);
  });
});

describe('where no cgroup can be had', () => {
  it.each(['/nowhere', '/proc'])('tools run all the same, and it is said once: %s', async (cgroup) => {
    const said: string[] = [];
    const rig = await startRig({ cgroup, onGroupsOnly: (why) => said.push(why) });
    const outcomes = await Promise.all([1, 2, 3].map(() => rig.launch(shell('exit 3')).outcome));
    expect(outcomes).toMatchObject([{ exitCode: 3 }, { exitCode: 3 }, { exitCode: 3 }]);
    expect(said).toEqual([expect.stringContaining('ENOENT')]);
  });

  it.skipIf(!HAS_CGROUPS)('any more: the tools that come then run all the same, and it is said once', async () => {
    const base = ownCgroup();
    const said: string[] = [];
    const rig = await startRig({ cgroup: base.path, onGroupsOnly: (why) => said.push(why) });
    expect(await rig.launch(shell('exit 3')).outcome).toMatchObject({ exitCode: 3 });
    writeFileSync(join(base.path, 'cgroup.max.descendants'), '1');
    const outcomes = await Promise.all([1, 2, 3].map(() => rig.launch(shell('exit 3')).outcome));
    expect(outcomes).toMatchObject([{ exitCode: 3 }, { exitCode: 3 }, { exitCode: 3 }]);
    expect(said).toEqual([expect.stringContaining('EAGAIN')]);
  });
});
