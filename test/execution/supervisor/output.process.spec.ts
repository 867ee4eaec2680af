import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { INITIAL_CREDIT_BYTES } from '../../../src/execution/supervisor/protocol.js';
import { shell, startRig, stateOf, until } from './rig.js';

function memoryKib(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

describe('the output of a tool', () => {
  it('is told by stream and unchanged, NUL and broken UTF-8 included', async () => {
    const rig = await startRig();
    const tool = rig.launch(shell(String.raw`printf 'a\000\377\303(\r\n'; printf '\200err' >&2`));
    expect(await tool.outcome).toMatchObject({ exitCode: 0 });
    expect(tool.bytes(1)).toEqual(Buffer.from([97, 0, 255, 195, 40, 13, 10]));
    expect(tool.bytes(2)).toEqual(Buffer.from([128, 101, 114, 114]));
  });

  it('stands still when nobody takes it, in bounded memory, and goes on when it is taken', async () => {
    const rig = await startRig();
    const beforeKib = memoryKib(rig.pid);
    const tool = rig.launch({ argv: ['yes'] }, { credit: 'withheld' });
    const pgid = await tool.pgid;
    await until('the credit is used up', () => tool.spentCredit() >= INITIAL_CREDIT_BYTES);
    let [looks, held] = [0, 0];
    await until('the tool was seen asleep 20 times while nothing came', () => {
      const isStill = stateOf(pgid) === 'S' && tool.bytes().length === held;
      looks = isStill ? looks + 1 : 0;
      held = tool.bytes().length;
      return looks === 20;
    });
    expect(held).toBeLessThan(INITIAL_CREDIT_BYTES + 128 * 1024);
    expect(memoryKib(rig.pid) - beforeKib).toBeLessThan(16 * 1024);
    rig.supervisor.grantCredit(tool.key, 1024 * 1024);
    await until('more came', () => tool.bytes().length >= held + 1024 * 1024);
    rig.supervisor.kill(tool.key);
    expect(await tool.outcome).toMatchObject({ signal: 'SIGKILL', cause: 'cancel' });
    // The rest of the pipe needs no credit: the end of a tool does not wait for its reader.
    expect(tool.bytes().length).toBeLessThan(held + 1024 * 1024 + 256 * 1024);
  });

  it('that comes letter by letter from both streams stands still too, before thousands of chunks are under way', async () => {
    const rig = await startRig();
    const loop = 'import os, time\nwhile True: os.write(1, b"."); os.write(2, b"x"); time.sleep(0.00005)';
    const tool = rig.launch({ argv: ['python3', '-c', loop] }, { credit: 'withheld' });
    // Bounded by what a chunk costs, not by its one byte. (The tool itself goes on until the pipe is full, which takes long.)
    await until('the credit is used up', () => tool.spentCredit() >= INITIAL_CREDIT_BYTES, 25_000);
    let [looks, held] = [0, -1];
    await until('nothing came for 20 looks', () => {
      looks = tool.chunks.length === held ? looks + 1 : 0;
      held = tool.chunks.length;
      return looks === 20;
    });
    expect(held).toBeGreaterThan(1);
    expect(held).toBeLessThan(5_000);
    rig.supervisor.kill(tool.key);
    expect(await tool.outcome).toMatchObject({ signal: 'SIGKILL' });
  });

  it('that the pipe still held when the tool ended comes without being asked for', async () => {
    const rig = await startRig();
    const bytes = INITIAL_CREDIT_BYTES + 60_000;
    const tool = rig.launch({ argv: ['head', '-c', String(bytes), '/dev/zero'] }, { credit: 'withheld' });
    expect(await tool.outcome).toMatchObject({ exitCode: 0 });
    expect(tool.bytes().length).toBe(bytes);
  });

  it('of one tool that is not taken does not hold up another', async () => {
    const rig = await startRig();
    const stuck = rig.launch({ argv: ['yes'] }, { credit: 'withheld' });
    await until('the credit is used up', () => stuck.spentCredit() >= INITIAL_CREDIT_BYTES);
    const other = rig.launch(shell('yes | head -c 3000000'));
    expect(await other.outcome).toMatchObject({ exitCode: 0 });
    expect(other.bytes().length).toBe(3_000_000);
  });
});
