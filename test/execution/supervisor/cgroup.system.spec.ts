/**
 * What a cgroup adds to the process group; without one each of these processes would live on, see end.process.spec.
 * Needs root, and a cgroup of version 2 below which others can be made.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Cgroup } from '../../../src/execution/supervisor/cgroup.js';
import { removeCgroupsOfDead } from '../../../src/execution/supervisor/tool-cgroups.js';
import { Stage } from '../../chaos/stage.fixture.js';
import { compiledSource } from '../../compiled.js';
import { cgroupsIn, needCgroups, ownCgroup } from './cgroup.fixture.js';
import { startReplica } from './replica.js';
import { isRunning, linesOf, livingMembers, type Rig, shell, startRig, until, within } from './rig.js';

beforeAll(needCgroups);

const NOBODY = 65_534;
const AS_NOBODY = `setpriv --reuid ${NOBODY} --regid ${NOBODY} --clear-groups --`;

const toolCgroups = async () => join(await compiledSource(), 'execution/supervisor/tool-cgroups.js');

/** What a script says in a Node of its own, started by way of `through`. */
function run(through: readonly string[], script: string): string {
  const [command = '', ...args] = [...through, process.execPath, '--input-type=module', '-e', script];
  return execFileSync(command, args, { encoding: 'utf8' });
}

/** The name of the cgroups of a supervisor with this number. */
function nameOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  return `capstan-${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}-${pid}-${start}`;
}

/** Of one that has no number any more: larger than any that is given away. */
const nameOfDead = () => nameOf(process.pid).replace(/-\d+-\d+$/, '-4194399-1');

const exhaust = `(fs, open) => { try { for (;;) open.push(fs.openSync('/dev/null')); } catch (error) { if (error.code !== 'EMFILE') throw error; } }`;
const closeAll = `(fs) => { for (const fd of fs.readdirSync('/proc/self/fd')) try { if (fs.readlinkSync('/proc/self/fd/' + fd).endsWith('/cgroup.procs')) fs.closeSync(Number(fd)); } catch {} }`;

/** Everything F064 names: a ticker in the background, one that left by a double fork, one that ignores TERM and INT. */
function stubborn(rig: Rig): { script: string; ticks: string; pids: () => number[] } {
  const [ticks, left] = [join(rig.scratch, 'ticks'), join(rig.scratch, 'left')];
  const ticker = `(while :; do echo x >> ${ticks}; sleep 0.02; done) &`;
  const leaver = `(setsid sh -c 'echo $$ >> ${left}; exec sleep 999' &)`;
  const deaf = `(setsid sh -c 'trap "" TERM INT; echo $$ >> ${left}; sleep 998; sleep 998' &)`;
  const script = `${ticker} ${leaver}; ${deaf}; sh -c 'trap "" TERM INT; sleep 998; sleep 998'`;
  return { script, ticks, pids: () => linesOf(left).map(Number) };
}

describe('a process that left its group by setsid', () => {
  it.each(['cancel', 'timeout', 'deadline', 'drain'] as const)(
    'F064 S4-25 S4-92 is gone with all others when the tool is stopped: %s',
    async (cause) => {
      const rig = await startRig({ graceMs: 500, deadlineMs: cause === 'deadline' ? 3_000 : 60_000 });
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
    await until('what it had made is removed', () => cgroupsIn(base).length === 0);
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
    expect(cgroupsIn(base)).toEqual([]);
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
    expect(cgroupsIn(base)).toEqual([]);
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

describe('what a supervisor that died with its replica left', () => {
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
    // The same number in another namespace of process numbers, and names that are none of ours.
    const strange = [`capstan-1-${replica.supervisor}-1`, 'other-1-1-1', 'capstan-x'];
    for (const name of strange) mkdirSync(join(base.path, name));
    const next = await startRig({ cgroup: base.path });
    await until('what was left is dead', () => !isRunning(left));
    // The one under way waits for nothing that this one doesn't.
    expect(await removeCgroupsOfDead(base.path)).toEqual([]);
    expect(isRunning(keptPid)).toBe(true);
    const names = cgroupsIn(base);
    const ours = names.filter((name) => !strange.includes(name));
    expect(names).toEqual(expect.arrayContaining(strange));
    expect(ours.map((name) => Number(name.split('-')[2])).sort()).toEqual([living.pid, next.pid].sort());
    // A number that was given away again is known by the start of its process.
    const reused = join(base.path, `${names.find((name) => name.includes(`-${next.pid}-`))?.replace(/\d+$/, '7')}`);
    mkdirSync(reused);
    await removeCgroupsOfDead(base.path);
    expect(existsSync(reused)).toBe(false);
    expect(isRunning(keptPid)).toBe(true);
  });

  it("keeps no supervisor from its start when it is another user's, and is told", async () => {
    const base = ownCgroup();
    for (const name of ['', 'cgroup.procs']) chownSync(join(base.path, name), NOBODY, NOBODY);
    const folder = join(base.path, nameOfDead());
    mkdirSync(folder);
    const holder = spawn('sleep', ['600'], { stdio: 'ignore' });
    onTestFinished(() => void holder.kill('SIGKILL'));
    writeFileSync(join(folder, 'cgroup.procs'), String(holder.pid));
    const replica = await startReplica(shell('sleep 600'), {
      graceMs: 500,
      cgroup: base.path,
      // Nobody else may put it where it may make cgroups.
      through: ['sh', '-c', `echo 0 > ${base.path}/cgroup.procs; exec ${AS_NOBODY} "$@"`, 'sh'],
    });
    const tool = () => new Cgroup(join(base.path, cgroupsIn(base).find((name) => name !== nameOfDead()) ?? '', 't1'));
    expect(tool().members(), 'its tools have cgroups').toContain(replica.pgid);
    await until('it is told', () => replica.said().some((line) => 'leftovers' in line));
    expect(replica.said().filter((line) => 'leftovers' in line || 'groupsOnly' in line)).toEqual([
      { leftovers: [folder] },
    ]);
    const saidFirst = replica.said().findIndex((line) => 'leftovers' in line || 'supervisor' in line);
    expect(replica.said()[saidFirst], 'the start waited').toHaveProperty('supervisor');
    expect(isRunning(holder.pid ?? 0)).toBe(true);
    replica.process.kill('SIGKILL');
    await until('the supervisor has ended', () => !isRunning(replica.supervisor), 5_000);
  });

  it("is not taken for left when /proc hides the supervisor, because it is another user's", async () => {
    const living = spawn('sleep', ['600'], { stdio: 'ignore' });
    onTestFinished(() => void living.kill('SIGKILL'));
    const base = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
    onTestFinished(() => rmSync(base, { recursive: true }));
    chownSync(base, NOBODY, NOBODY);
    const [ofLiving, ofDead] = [nameOf(living.pid ?? 0), nameOfDead()];
    for (const name of [ofLiving, ofDead]) mkdirSync(join(base, name));
    const sweep = `const { removeCgroupsOfDead } = await import('${await toolCgroups()}'); await removeCgroupsOfDead('${base}')`;
    const hidden = `mount -t proc -o hidepid=2 proc /proc && exec ${AS_NOBODY} "$@"`;
    run(['unshare', '--mount', 'sh', '-c', hidden, 'sh'], sweep);
    expect(readdirSync(base)).toEqual([ofLiving]);
  });
});

describe('a supervisor', () => {
  it('stays out of the cgroups of its tools, and its tools stay in theirs', async () => {
    const base = ownCgroup();
    const rig = await startRig({ cgroup: base.path });
    const tools = [1, 2, 3].map(() => rig.launch(shell('sleep 600 & wait')));
    const pgids = await Promise.all(tools.map(({ pgid }) => pgid));
    await until('each has its child', () => pgids.every((pgid) => livingMembers(pgid).length === 2));
    const [folder = ''] = cgroupsIn(base);
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

  it('that cannot put a tool into a cgroup starts it without, says so once, and tries again with the next', async () => {
    const base = ownCgroup();
    const said: string[][] = [];
    const rig = await startRig({ cgroup: base.path, onGroupsOnly: (...words) => said.push(words) });
    const limit = (cgroups: string) => writeFileSync(join(base.path, 'cgroup.max.descendants'), cgroups);
    limit('1');
    const outcomes = await Promise.all([1, 2, 3].map(() => rig.launch(shell('exit 3')).outcome));
    expect(outcomes).toMatchObject([{ exitCode: 3 }, { exitCode: 3 }, { exitCode: 3 }]);
    expect(said).toEqual([['one', expect.stringContaining('EAGAIN')]]);
    limit('max');
    const tool = rig.launch({ argv: ['sleep', '600'] });
    const pgid = await tool.pgid;
    const [folder = ''] = cgroupsIn(base);
    expect(new Cgroup(join(base.path, folder, `t${tool.key}`)).members()).toEqual([pgid]);
    expect(said).toHaveLength(1);
  });

  it.each([
    ['comes back from that of a tool although no descriptor is free', exhaust, 'back', true, []],
    [
      'that cannot come back never ends that of the tool, for it would be its own end',
      closeAll,
      'inside',
      false,
      ['later'],
    ],
  ] as const)('%s', async (_name, breakIt, place, hasCgroup, told) => {
    const base = ownCgroup();
    const script = `
      import fs from 'node:fs';
      const { ToolCgroups } = await import('${await toolCgroups()}');
      const told = [];
      const cgroups = ToolCgroups.open('${base.path}', (tools) => told.push(tools));
      const open = [];
      const breakIt = ${breakIt};
      const [, cgroup] = cgroups.spawnIn(1, () => breakIt(fs, open));
      for (const fd of open) fs.closeSync(fd);
      const own = /^0::(.*)$/m.exec(fs.readFileSync('/proc/self/cgroup', 'latin1'))[1];
      const [, next] = cgroups.spawnIn(2, () => undefined);
      console.log(JSON.stringify({ place: own.endsWith('/t1') ? 'inside' : 'back', hasCgroup: cgroup !== null, hasNext: next !== null, told }));`;
    const said = run(['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'], script);
    expect(JSON.parse(said)).toEqual({ place, hasCgroup, hasNext: hasCgroup, told });
  });
});

it('F064 S4-92 a run that is canceled leaves nothing, not even what left its group by setsid', async () => {
  const stage = await Stage.open(['one']);
  onTestFinished(() => stage.close());
  const pids = join(stage.db.scratch, 'pids');
  const deaf = `sh -c 'trap "" TERM INT; echo $$ >> ${pids}; sleep 999; sleep 999'`;
  const id = await stage.submit(['bash', '-c', `(setsid ${deaf} &); ${deaf}; true`]);
  await until('both run', () => linesOf(pids).length === 2);
  const at = stage.get('one');
  expect(await stage.call(at, 'POST', `/v1/runs/${id}/cancel`)).toMatchObject({ status: 202 });
  await stage.untilEnded(20_000);
  expect(linesOf(pids).map(Number).filter(isRunning), 'alive after the run ended').toEqual([]);
  expect(await stage.call(at, 'GET', `/v1/runs/${id}`)).toMatchObject({
    body: {
      state: 'canceled',
      end: { detail: expect.stringMatching(/; what it had started was killed after 1s grace$/) },
    },
  });
});
