import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Cgroup, findOwnCgroup } from '../../../src/execution/supervisor/cgroup.js';
import { Processes } from '../../../src/execution/supervisor/processes.js';
import { emptyCgroupFolder } from '../../../src/execution/supervisor/tool-cgroups.js';

describe('the cgroup of this process', () => {
  const v1 = '32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu';
  const mount = (root: string, point: string) => `38 31 0:35 ${root} ${point} rw shared:9 - cgroup2 cgroup2 rw`;
  it.each([
    [
      'of a service',
      mount('/', '/sys/fs/cgroup'),
      '0::/system.slice/capstan.service',
      '/sys/fs/cgroup/system.slice/capstan.service',
    ],
    [
      'beside version 1',
      `${v1}\n${mount('/', '/sys/fs/cgroup/unified')}`,
      '4:memory:/x\n0::/',
      '/sys/fs/cgroup/unified',
    ],
    [
      'in a container that sees its own part',
      mount('/pod/one', '/sys/fs/cgroup'),
      '0::/pod/one/inner',
      '/sys/fs/cgroup/inner',
    ],
    ['in a container that is that part', mount('/pod/one', '/sys/fs/cgroup'), '0::/pod/one', '/sys/fs/cgroup'],
    ['below a path with a blank', mount('/', '/mnt/c\\040g'), '0::/a', '/mnt/c g/a'],
    ['out of sight', mount('/pod/one', '/sys/fs/cgroup'), '0::/pod/oneself', null],
    ['of version 1 only', v1, '4:memory:/x', null],
    ['of a system without them', '', '', null],
  ])('%s', (_name, mountinfo, own, path) => {
    expect(findOwnCgroup(mountinfo, `${own}\n`)).toBe(path);
  });
});

/** What the kernel would show of a cgroup, as plain files; without `cgroup.kill`, as before Linux 5.14. */
function oldCgroup(pids: Record<string, number>): Cgroup {
  const root = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [folder, pid] of Object.entries(pids)) {
    mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, folder, 'cgroup.procs'), `${pid}\n`);
  }
  return new Cgroup(root);
}

function sleeper(): { pid: number; signal: Promise<string | null> } {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return { pid: child.pid ?? 0, signal: new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal))) };
}

it('S4-25 a kernel that cannot kill a cgroup at once is asked for each process, those of inner cgroups among them', async () => {
  const [outer, inner] = [sleeper(), sleeper()];
  oldCgroup({ '.': outer.pid, 'a/b': inner.pid }).kill();
  expect(await Promise.all([outer.signal, inner.signal])).toEqual(['SIGKILL', 'SIGKILL']);
});

it('TERM comes once to each: to the group as a whole, and to those that left it one by one', async () => {
  const [leader, left] = [sleeper(), sleeper()];
  const cgroup = oldCgroup({ '.': leader.pid, left: left.pid });
  const kill = vi.spyOn(process, 'kill');
  onTestFinished(() => kill.mockRestore());
  new Processes(leader.pid, cgroup).term();
  expect(kill.mock.calls).toEqual([
    [-leader.pid, 'SIGTERM'],
    [left.pid, 'SIGTERM'],
    [-leader.pid, 'SIGCONT'],
    [left.pid, 'SIGCONT'],
  ]);
  expect(await Promise.all([leader.signal, left.signal])).toEqual(['SIGTERM', 'SIGTERM']);
});

it('a cgroup that is gone is empty, and nothing that is asked of it fails', async () => {
  const gone = new Cgroup('/nowhere/at/all');
  gone.kill();
  await gone.remove();
  expect([gone.isPopulated(), gone.members(), await gone.empty()]).toEqual([false, [], true]);
});

it('what a dead supervisor left counts as gone when nothing lives in it, however long its folders stay', async () => {
  // Its files keep the folder from being removed.
  const { path } = oldCgroup({ '.': 0 });
  writeFileSync(join(path, 'cgroup.events'), 'populated 0\nfrozen 0\n');
  const gone = emptyCgroupFolder(path).then(() => 'gone');
  const later = new Promise((resolve) => setImmediate(() => resolve('it waits')));
  expect(await Promise.race([gone, later])).toBe('gone');
});

it('what cannot be ended is tried so many times and no more', async () => {
  const { path } = oldCgroup({ '.': 0 });
  writeFileSync(join(path, 'cgroup.events'), 'populated 1\nfrozen 0\n');
  expect(await new Cgroup(path).empty(3)).toBe(false);
});
