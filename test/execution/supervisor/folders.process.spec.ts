/** Folders of tools that are used again, and pipes in memory. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MEMORY_DIR, makePlaces, removePlaces } from '../../../src/execution/supervisor/places.js';
import { PrivateFolders } from '../../../src/execution/supervisor/private-folders.js';
import { shell, startRig } from './rig.js';

/** Longer than the clock of any file system stands still. */
const SURELY_LATER_MS = 2_600;

function scratch(dir = tmpdir()): string {
  const folder = mkdtempSync(join(dir, 'capstan-spec-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Takes a folder, and lets `use` do what a tool does in it; what another tool gets next. */
async function nextAfter(use: (path: string) => void, { waitMs = 0, isSurelyLeft = true } = {}) {
  const folders = new PrivateFolders(scratch());
  await folders.giveBack(await folders.take([]), true);
  await pause(waitMs);
  const folder = await folders.take([]);
  use(folder.path);
  const isUntouched = await folder.isUntouched();
  await folders.giveBack(folder, isSurelyLeft);
  const next = await folders.take([]);
  return { isUntouched, isSame: next.path === folder.path, isGone: !existsSync(folder.path), next };
}

const TOUCHES: [string, string][] = [
  ['makes a file', ': > file'],
  ['makes a hidden file', ': > .file'],
  ['makes a file and removes it', ': > file; rm file'],
  ['makes a folder', 'mkdir folder'],
  ['changes its permissions', 'chmod 755 .'],
  ['changes its permissions and changes them back', 'chmod 755 .; chmod 700 .'],
  ['sets its times to what they were', 't=$(stat -c %y .); : > x; rm x; touch -d "$t" .'],
  ['puts another in its place', 'cd ..; rmdir "$OLDPWD"; mkdir -m 700 "$OLDPWD"'],
];

describe('the private folder of a tool', () => {
  it('is used again when the tool left it untouched, as nothing but a new one', async () => {
    for (const waitMs of [0, SURELY_LATER_MS]) {
      const { isSame, next } = await nextAfter(() => undefined, { waitMs });
      expect(isSame).toBe(true);
      expect([statSync(next.path).mode & 0o777, readdirSync(next.path)]).toEqual([0o700, []]);
    }
  });

  it('is said to be untouched only when a change would have shown', async () => {
    expect((await nextAfter(() => undefined)).isUntouched).toBe(false);
    expect((await nextAfter(() => undefined, { waitMs: SURELY_LATER_MS })).isUntouched).toBe(true);
  });

  it('is not used again while somebody could have it open', async () => {
    expect(await nextAfter(() => undefined, { isSurelyLeft: false })).toMatchObject({ isSame: false, isGone: true });
  });

  it('is not used again after a tool that changed anything of it, be it back to what it was', async () => {
    const check = async ([what, script]: [string, string]) => {
      const use = (path: string) => void execFileSync('sh', ['-c', script], { cwd: path, stdio: 'ignore' });
      const { isUntouched, isSame, next } = await nextAfter(use, { waitMs: SURELY_LATER_MS });
      return isUntouched || isSame || readdirSync(next.path).length > 0 ? [what] : [];
    };
    expect((await Promise.all(TOUCHES.map(check))).flat(), 'tools whose traces the next one found').toEqual([]);
  });

  it('is another one when somebody tidied it away meanwhile', async () => {
    const folders = new PrivateFolders(scratch());
    const first = await folders.take([]);
    await folders.giveBack(first, true);
    rmSync(first.path, { recursive: true });
    expect(existsSync((await folders.take([])).path)).toBe(true);
  });

  it('with files of a plan in it is removed, and no other takes its place', async () => {
    const folders = new PrivateFolders(scratch());
    await folders.giveBack(await folders.take([]), true);
    const folder = await folders.take([{ name: 'secret', content: 'x' }]);
    expect(readdirSync(folder.path)).toEqual(['secret']);
    await folders.giveBack(folder, true);
    expect(existsSync(folder.path)).toBe(false);
    expect(readdirSync((await folders.take([])).path)).toEqual([]);
  });

  it('is where a report is found, also when the folder is used again', async () => {
    const rig = await startRig();
    for (let n = 0; n < 3; n += 1) expect(await rig.launch({}).outcome).toMatchObject({ exitCode: 0 });
    await pause(SURELY_LATER_MS);
    const silent = rig.launch(shell('pwd'));
    await silent.outcome;
    const reporting = rig.launch(shell('pwd; echo "{}" > $CAPSTAN_OUTPUT_FILE; echo "{}" > $CAPSTAN_EVENTS_FILE'));
    await reporting.outcome;
    expect([reporting.text(3), reporting.text(4)]).toEqual(['{}\n', '{}\n']);
    if (rig.supervisor.hasCgroups) expect(reporting.text(1)).toBe(silent.text(1));
  });
});

describe.skipIf(!existsSync(MEMORY_DIR))('the pipes of tools', () => {
  it('have their names in memory, and on disk where that cannot be had', async () => {
    for (const hasMemory of [true, false]) {
      const rig = await startRig({ hasMemory });
      const tool = rig.launch(shell('dirname "$(readlink /proc/$$/fd/1)"; dirname $HOME; echo err > /dev/stderr'));
      expect(await tool.outcome).toMatchObject({ exitCode: 0 });
      const [pipes = '', root = ''] = tool.text(1).split('\n');
      expect([pipes === root, pipes.startsWith(rig.memory)]).toEqual([!hasMemory, true]);
      expect(tool.text(2)).toBe('err\n');
    }
  });

  it('S4-19 that a dead supervisor left are removed by the next one, those of a living one are left alone', async () => {
    const [temp, memory] = [scratch(), scratch(MEMORY_DIR)];
    const dead = await makePlaces(temp, memory);
    const rig = await startRig();
    const [name = ''] = readdirSync(rig.memory);
    const living = join(rig.memory, name);
    const old = new Date(Date.now() - 3_600_000);
    for (const folder of [dead.root, dead.pipes, living]) utimesSync(folder, old, old);
    await removePlaces(await makePlaces(temp, memory));
    await removePlaces(await makePlaces(temp, rig.memory));
    expect([dead.root, dead.pipes, living].map((folder) => existsSync(folder))).toEqual([false, false, true]);
    const fds = readdirSync(`/proc/${rig.pid}/fd`).map((fd) => readlinkSync(`/proc/${rig.pid}/fd/${fd}`));
    expect(fds).toContain(join(living, 'keeper'));
  });
});
