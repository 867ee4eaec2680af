import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startSupervisor } from '../../../src/execution/supervisor/supervisor.client.js';
import { compiledSource } from '../../compiled.js';
import { startReplica } from './replica.js';
import { isRunning, linesOf, livingMembers, shell, startRig, until } from './rig.js';

describe('when the replica is killed', () => {
  it('S4-19 its tools are stopped with all they started, and its files are removed', async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
    onTestFinished(() => rmSync(scratch, { recursive: true }));
    const file = join(scratch, 'effects');
    const loop = `while :; do echo tick >> ${file}; sleep 0.02; done`;
    const replica = await startReplica(shell(`(${loop}) & sleep 600 & wait`), { graceMs: 5_000 });
    await until('the tool has effects', () => linesOf(file).length > 2);
    replica.process.kill('SIGKILL');
    await until('the group is empty', () => livingMembers(replica.pgid).length === 0, 4_000);
    const lines = linesOf(file).length;
    await until('the supervisor has ended', () => !isRunning(replica.supervisor));
    expect(linesOf(file).length).toBe(lines);
    expect(readdirSync(replica.temp)).toEqual([]);
  });

  it('S4-21 a polite tool has its grace period, and its output does not hold it up though nobody reads it', async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
    onTestFinished(() => rmSync(scratch, { recursive: true }));
    const file = join(scratch, 'effects');
    const script = `trap "yes | head -c 2000000; echo cleaned > ${file}; exit" TERM; echo up; while :; do sleep 0.05; done`;
    const replica = await startReplica(shell(script), { graceMs: 20_000 });
    await until('the handler is set', () => replica.said().some((line) => line.output === 'up\n'));
    replica.process.kill('SIGKILL');
    await until('the group is empty', () => livingMembers(replica.pgid).length === 0);
    expect(linesOf(file)).toEqual(['cleaned']);
  });

  it('S4-21 what a tool reported and nobody took holds up nothing', async () => {
    const script = 'echo up; until [ -e go ]; do sleep 0.01; done; head -c 2000000 /dev/zero > "$CAPSTAN_EVENTS_FILE"';
    const replica = await startReplica(shell(script), { graceMs: 20_000 });
    await until('the tool is up', () => replica.said().some((line) => line.output === 'up\n'));
    replica.process.kill('SIGSTOP');
    writeFileSync(`/proc/${replica.pgid}/cwd/go`, '');
    await until('the group is empty', () => livingMembers(replica.pgid).length === 0);
    expect(isRunning(replica.supervisor)).toBe(true);
    replica.process.kill('SIGKILL');
    await until('the supervisor has ended', () => !isRunning(replica.supervisor), 5_000);
    expect(readdirSync(replica.temp)).toEqual([]);
  });

  it('S4-21 a tool that ignores TERM is killed after the grace period', async () => {
    const replica = await startReplica(shell('trap "" TERM; echo up; while :; do sleep 0.05; done'), { graceMs: 800 });
    await until('the handler is set', () => replica.said().some((line) => line.output === 'up\n'));
    const killedAt = performance.now();
    replica.process.kill('SIGKILL');
    await until('the group is empty', () => livingMembers(replica.pgid).length === 0, 10_000);
    expect(performance.now() - killedAt, 'killed before its grace period was over').toBeGreaterThanOrEqual(795);
    await until('the supervisor has ended', () => !isRunning(replica.supervisor));
  });

  it('S4-20 no grandchild has inherited anything that keeps the tool alive', async () => {
    const fd = openSync('/dev/null', 'r');
    // Each shell lists its own: a program that is only being loaded has its libraries open, too.
    const script = `sh -c 'ls /proc/$$/fd; exec sleep 600' & ls /proc/$$/fd; wait`;
    const replica = await startReplica(shell(script), { graceMs: 5_000, fd });
    const output = () =>
      replica
        .said()
        .map((line) => line.output ?? '')
        .join('');
    await until('the descriptors are listed', () => output().split('\n').length >= 7);
    expect(output().match(/^\d+$/gm)?.sort()).toEqual(['0', '0', '1', '1', '2', '2']);
    replica.process.kill('SIGKILL');
    await until('the group is empty', () => livingMembers(replica.pgid).length === 0, 4_000);
  });

  it('S4-20 together with its supervisor, the kernel kills the tool itself', async () => {
    const replica = await startReplica({ argv: ['sleep', '600'] }, { graceMs: 60_000 });
    process.kill(replica.supervisor, 'SIGSTOP');
    replica.process.kill('SIGKILL');
    process.kill(replica.supervisor, 'SIGKILL');
    await until('the tool is gone', () => !isRunning(replica.pgid), 2_000);
  });
});

describe('when the supervisor ends on its own', () => {
  it('S4-26 every group it started is killed, and only then the ends are told as lost', async () => {
    const rig = await startRig({ graceMs: 60_000 });
    const file = join(rig.scratch, 'effects');
    const script = `trap "" TERM; (while :; do echo tick >> ${file}; sleep 0.02; done) & wait`;
    const tools = [rig.launch(shell(script)), rig.launch(shell(script))];
    const pgids = await Promise.all(tools.map((tool) => tool.pgid));
    await until('the tools have effects', () => linesOf(file).length > 2);
    const exits: unknown[] = [];
    rig.supervisor.onExit((exit) => exits.push(exit));
    expect(rig.supervisor.groups()).toEqual(pgids);
    process.kill(rig.pid, 'SIGKILL');
    for (const [index, tool] of tools.entries()) {
      expect(await tool.outcome).toEqual({ exitCode: null, signal: null, cause: 'lost', leftovers: false });
      expect(livingMembers(pgids[index] ?? 0), 'an end was told while its tool was alive').toEqual([]);
    }
    const lines = linesOf(file).length;
    await rig.supervisor.gone;
    expect(exits).toEqual([{ code: null, signal: 'SIGKILL' }]);
    expect(linesOf(file).length).toBe(lines);
    expect(readdirSync(rig.temp)).toEqual([]);
    expect(rig.supervisor.groups()).toEqual([]);
    expect(await rig.launch({}).outcome).toEqual({ refused: 'stopping' });
  });

  it('the keeper’s descriptor stays the keeper’s until it is given back', async () => {
    const rig = await startRig();
    rig.supervisor.destroy();
    await rig.supervisor.gone;
    // Nothing that is opened now may get the number, or the keeper's next frame would land in it.
    const fds = Array.from({ length: 20 }, () => openSync('/dev/null', 'r'));
    expect(fds).not.toContain(rig.supervisor.keeperFd);
    expect(() => rig.renew()).toThrow('EPIPE');
  });

  it('it stops its tools first when it is asked to by SIGTERM, and heeds no hang-up', async () => {
    const rig = await startRig();
    const file = join(rig.scratch, 'effects');
    const tool = rig.launch(shell(`trap "echo cleaned > ${file}; exit 9" TERM; echo up; while :; do sleep 0.05; done`));
    await until('the handler is set', () => tool.text(1) === 'up\n');
    process.kill(rig.pid, 'SIGHUP');
    process.kill(rig.pid, 'SIGINT');
    expect(await rig.launch({}).outcome).toMatchObject({ exitCode: 0 });
    process.kill(rig.pid, 'SIGTERM');
    expect(await tool.outcome).toMatchObject({ exitCode: 9, cause: 'lost' });
    await rig.supervisor.gone;
    expect(linesOf(file)).toEqual(['cleaned']);
  });

  it('shutdown stops the tools with their grace period and ends it', async () => {
    const rig = await startRig({ graceMs: 300 });
    const polite = rig.launch(shell('trap "exit 9" TERM; echo up; while :; do sleep 0.05; done'));
    const stubborn = rig.launch(shell('trap "" TERM; echo up; while :; do sleep 0.05; done'));
    await until('the handlers are set', () => polite.text(1) + stubborn.text(1) === 'up\nup\n');
    const exits: unknown[] = [];
    rig.supervisor.onExit((exit) => exits.push(exit));
    await rig.supervisor.shutdown();
    expect(await polite.outcome).toMatchObject({ exitCode: 9, cause: 'drain' });
    expect(await stubborn.outcome).toMatchObject({ signal: 'SIGKILL', cause: 'drain' });
    expect(exits).toEqual([{ code: 0, signal: null }]);
  });

  it('one that does not come up is an error, and leaves nothing', async () => {
    const temp = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
    onTestFinished(() => rmSync(temp, { recursive: true }));
    const entry = pathToFileURL('/nowhere/supervisor.main.js');
    const options = { incarnation: randomUUID(), graceMs: 1, deadlineMs: 1, entry, tempDir: temp };
    await expect(startSupervisor({ ...options, stderr: 'ignore' })).rejects.toThrow('exit code 1');
    expect(readdirSync(temp)).toEqual([]);
  });
});

describe('a frame that is none', () => {
  it.each([
    ['a length beyond all bounds', Buffer.from([255, 255, 255, 255, 1, 2, 3])],
    ['a command before the greeting', Buffer.from('\0\0\0\x12\x01{"type":"credit"}')],
    ['noise', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ])('ends the supervisor with exit code 1: %s', async (_name, bytes) => {
    const entry = join(await compiledSource(), 'execution/supervisor/supervisor.main.js');
    const keeper = openSync('/dev/null', 'r');
    const child = spawn(process.execPath, [entry], { stdio: ['ignore', 'ignore', 'inherit', 'pipe', keeper] });
    const channel = child.stdio[3];
    if (channel === undefined || channel === null || !('write' in channel)) throw new Error('no channel');
    channel.write(bytes);
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(1);
  });
});
