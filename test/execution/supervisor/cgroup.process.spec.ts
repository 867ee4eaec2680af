/** Tools without cgroups; what cgroups add is proved in cgroup.system.spec. */
import { describe, expect, it } from 'vitest';
import { shell, startRig } from './rig.js';

describe('where no cgroup can be had', () => {
  it.each(['/nowhere', '/proc'])('tools run all the same, and it is said once: %s', async (cgroup) => {
    const said: string[][] = [];
    const rig = await startRig({ cgroup, onGroupsOnly: (...words) => said.push(words) });
    const outcomes = await Promise.all([1, 2, 3].map(() => rig.launch(shell('exit 3')).outcome));
    expect(outcomes).toMatchObject([{ exitCode: 3 }, { exitCode: 3 }, { exitCode: 3 }]);
    expect(said).toEqual([['all', expect.stringContaining('ENOENT')]]);
  });
});
