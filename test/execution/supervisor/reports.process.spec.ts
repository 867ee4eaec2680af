import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  INITIAL_CREDIT_BYTES,
  MAX_EVENTS_FILE_BYTES,
  MAX_OUTPUT_FILE_BYTES,
} from '../../../src/execution/supervisor/protocol.js';
import { type LaunchedTool, livingMembers, type Rig, shell, startRig, until, within } from './rig.js';

const EVENTS = '"$CAPSTAN_EVENTS_FILE"';
const OUTPUT = '"$CAPSTAN_OUTPUT_FILE"';

/** A shell that does each step when the test says so. */
function stepwise(rig: Rig, ...steps: string[]): { tool: LaunchedTool; go: () => void } {
  const wait = (step: number) => `until [ -e ${rig.scratch}/${step} ]; do sleep 0.01; done`;
  const tool = rig.launch(shell(steps.flatMap((step, i) => (i === 0 ? [step] : [wait(i), step])).join('\n')));
  let step = 0;
  const go = () => {
    step += 1;
    writeFileSync(join(rig.scratch, String(step)), '');
  };
  return { tool, go };
}

describe('what a tool reports', () => {
  it('goes into files of its private folder that are not there yet, whatever its plan calls them', async () => {
    const rig = await startRig();
    const env = { PATH: '/usr/bin:/bin', CAPSTAN_EVENTS_FILE: '/nowhere/a', CAPSTAN_OUTPUT_FILE: '/nowhere/b' };
    const script = `pwd; dirname ${EVENTS}; dirname ${OUTPUT}; ls -A; echo 1 > ${EVENTS}; echo 2 > ${OUTPUT}`;
    const tool = rig.launch({ ...shell(script), env });
    expect(await tool.outcome).toMatchObject({ exitCode: 0 });
    const [folder, ...seen] = tool.text(1).split('\n');
    expect(seen).toEqual([folder, folder, '']);
    expect([tool.text(3), tool.text(4)]).toEqual(['1\n', '2\n']);
  });

  it('in the events file comes while the file grows, its rest and then the output when the group is empty', async () => {
    const rig = await startRig();
    const { tool, go } = stepwise(
      rig,
      `printf '{"a":1}\\n{"b' > ${EVENTS}`,
      `echo '":2}' >> ${EVENTS}; echo '{}' > ${OUTPUT}`,
    );
    await until('the first bytes came', () => tool.text(3) === '{"a":1}\n{"b');
    go();
    expect(await tool.outcome).toMatchObject({ exitCode: 0, cause: 'self' });
    expect([tool.text(3), tool.text(4)]).toEqual(['{"a":1}\n{"b":2}\n', '{}\n']);
    expect(tool.chunks.at(-1)?.stream).toBe(4);
  });

  it('by processes that it left behind is read as well: only an empty group ends the reading', async () => {
    const rig = await startRig();
    const last = `trap 'echo last >> ${EVENTS}; exit' TERM; : > ready; sleep 60 & wait`;
    const script = `(${last}) & until [ -e ready ]; do sleep 0.01; done; echo first > ${EVENTS}`;
    const tool = rig.launch(shell(script));
    expect(await tool.outcome).toMatchObject({ exitCode: 0, leftovers: true });
    expect(tool.text(3)).toBe('first\nlast\n');
  });

  it('is read to its end when the file is renamed, and the new one from its beginning', async () => {
    const rig = await startRig();
    const { tool, go } = stepwise(
      rig,
      `printf 'a\\n' > ${EVENTS}`,
      `printf 'b\\nunfinished' >> ${EVENTS}; mv ${EVENTS} old; printf 'c\\n' > new; mv new ${EVENTS}`,
      `rm ${EVENTS}; printf 'd\\n' > ${EVENTS}`,
    );
    await until('the first line came', () => tool.text(3) === 'a\n');
    go();
    await until('the new file was read', () => tool.text(3) === 'a\nb\nunfinished\nc\n');
    go();
    await tool.outcome;
    expect(tool.text(3)).toBe('a\nb\nunfinished\nc\nd\n');
  });

  it('begins anew when the file was emptied', async () => {
    const rig = await startRig();
    const { tool, go } = stepwise(rig, `printf 'a long line' > ${EVENTS}`, `printf 'b\\n' > ${EVENTS}`);
    await until('the first line came', () => tool.text(3) === 'a long line');
    go();
    await tool.outcome;
    expect(tool.text(3)).toBe('a long line\nb\n');
  });

  it.each([
    ['emptied first', '>'],
    ['in place', '1<>'],
  ])('begins anew when the file was written over with as many bytes, %s', async (_how, redirection) => {
    const rig = await startRig();
    const write = (letter: string) => `printf '${letter}\\n' ${redirection} ${EVENTS}`;
    const { tool, go } = stepwise(rig, write('a'), write('b'), write('c'));
    await until('the first line came', () => tool.text(3) === 'a\n');
    go();
    await until('the second came while the tool runs', () => tool.text(3) === 'a\nb\n');
    go();
    await tool.outcome;
    expect(tool.text(3)).toBe('a\nb\nc\n');
  });

  it('that was written over and then renamed comes before the file that took its place', async () => {
    const rig = await startRig();
    const rename = `mv ${EVENTS} old; printf 'c\\n' > new; mv new ${EVENTS}`;
    const { tool, go } = stepwise(rig, `printf 'a\\n' > ${EVENTS}`, `printf 'b\\n' 1<> ${EVENTS}; ${rename}`, 'true');
    await until('the first line came', () => tool.text(3) === 'a\n');
    go();
    await until('the last line came while the tool runs', () => tool.text(3).endsWith('c\n'));
    go();
    await tool.outcome;
    expect(tool.text(3)).toBe('a\nb\nc\n');
  });
});

describe('what stands in the place of a report and is no file of the tool', () => {
  const told = [
    { source: 3, reason: 'not_a_file', after: 0 },
    { source: 4, reason: 'not_a_file', after: 0 },
  ];

  it.each([
    ['a named pipe', (path: string) => `mkfifo ${path}`],
    ['a named pipe that somebody writes to', (path: string) => `mkfifo ${path}; (yes > ${path}) & `],
    ['a folder', (path: string) => `mkdir ${path}`],
    ['a link to a file', (path: string) => `echo secret > there; ln -s there ${path}`],
    ['a link to a device', (path: string) => `ln -s /dev/zero ${path}`],
    ['a link to nothing', (path: string) => `ln -s nothing ${path}`],
    [
      'a socket',
      (path: string) => `python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' ${path}`,
    ],
  ])('%s is not read, is told once, and holds up nothing', async (_name, put) => {
    const rig = await startRig();
    const { tool, go } = stepwise(rig, `${put(EVENTS)}\n${put(OUTPUT).replace('there', 'there2')}`, 'exit 3');
    await until('it was told while the tool runs', () => tool.unread.length > 0);
    go();
    expect(await within(10_000, 'the end of the tool', tool.outcome)).toMatchObject({ exitCode: 3 });
    expect(tool.unread).toEqual(told);
    expect(tool.chunks).toEqual([]);
  });

  it('is told for the output also at the end of a tool that ends at once', async () => {
    const rig = await startRig();
    const tool = rig.launch(shell(`mkdir ${OUTPUT}; ln -s /etc/passwd ${EVENTS}`));
    await tool.outcome;
    expect(tool.unread).toEqual(told);
    expect(tool.chunks).toEqual([]);
  });

  it('is told behind what was read of the file before, of which a line that was not finished gets an end', async () => {
    const rig = await startRig();
    const { tool, go } = stepwise(rig, `printf half > ${EVENTS}`, `rm ${EVENTS}; mkdir ${EVENTS}`);
    await until('the first bytes came', () => tool.text(3) === 'half');
    go();
    await tool.outcome;
    expect(tool.text(3)).toBe('half\n');
    expect(tool.unread).toEqual([{ source: 3, reason: 'not_a_file', after: 1 }]);
  });

  it('a folder that the tool removed is nothing to be told', async () => {
    const rig = await startRig();
    const tool = rig.launch(shell('rm -rf "$HOME"; exit 0'));
    expect(await tool.outcome).toMatchObject({ exitCode: 0 });
    expect(tool.chunks).toEqual([]);
    expect(tool.unread).toEqual([]);
  });
});

describe('a report that is read', () => {
  it('is taken up to its bound and a byte, in bounded memory', async () => {
    const rig = await startRig();
    const memoryKib = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${rig.pid}/status`, 'utf8'))?.[1]);
    await rig.launch({ argv: ['true'] }).outcome;
    const before = memoryKib();
    const tool = rig.launch(shell(`head -c 40000000 /dev/zero > ${EVENTS}; truncate -s 1T ${OUTPUT}`));
    expect(await tool.outcome).toMatchObject({ exitCode: 0 });
    expect(tool.bytes(3).length).toBe(MAX_EVENTS_FILE_BYTES + 1);
    expect(tool.bytes(4).length).toBe(MAX_OUTPUT_FILE_BYTES + 1);
    expect(memoryKib() - before).toBeLessThan(32 * 1024);
  });

  it('of any size leaves no descriptor open', async () => {
    const rig = await startRig();
    const descriptors = () => readdirSync(`/proc/${rig.pid}/fd`).length;
    await rig.launch({ argv: ['true'] }).outcome;
    const before = descriptors();
    const script = `echo 1 > ${EVENTS}; echo 2 > ${OUTPUT}; until [ -e ${rig.scratch}/go ]; do sleep 0.05; done`;
    const tools = Array.from({ length: 8 }, () => rig.launch(shell(script)));
    await until('all are being read', () => tools.every((tool) => tool.text(3) === '1\n'));
    writeFileSync(join(rig.scratch, 'go'), '');
    await Promise.all(tools.map((tool) => tool.outcome));
    await until('all descriptors are closed', () => descriptors() <= before);
  });
});

describe('a report that nobody takes', () => {
  /** A tool that has ended, with more in its events file than its credit. */
  async function stuck(rig: Rig, bytes: number, last = `echo 1 > ${OUTPUT}`): Promise<LaunchedTool> {
    const script = `head -c ${bytes} /dev/zero > ${EVENTS}; ${last}`;
    const tool = rig.launch(shell(script), { credit: 'withheld' });
    const pgid = await tool.pgid;
    await until('the group is empty', () => livingMembers(pgid).length === 0);
    await until('the credit is used up', () => tool.spentCredit() >= INITIAL_CREDIT_BYTES);
    return tool;
  }

  it('holds the end of the tool until it is taken, in bounded memory', async () => {
    const rig = await startRig();
    const bytes = INITIAL_CREDIT_BYTES * 3;
    // A stranger keeps the pipes open, so that they are closed after the group was seen empty.
    const tool = await stuck(rig, bytes, `echo 1 > ${OUTPUT}; setsid sleep 3 &`);
    let isEnded = false;
    void tool.outcome.then(() => {
      isEnded = true;
    });
    // Another tool begins and ends meanwhile.
    expect(await rig.launch(shell('sleep 0.4')).outcome).toMatchObject({ exitCode: 0 });
    expect(tool.bytes(3).length).toBeLessThan(INITIAL_CREDIT_BYTES + 64 * 1024);
    expect(isEnded).toBe(false);
    rig.supervisor.grantCredit(tool.key, bytes);
    expect(await tool.outcome).toMatchObject({ exitCode: 0, cause: 'self' });
    expect([tool.bytes(3).length, tool.text(4)]).toEqual([bytes, '1\n']);
  });

  it.each([
    ['told to stop, after the grace period', (rig: Rig, key: number) => rig.supervisor.stop(key, 'cancel')],
    ['killed, at once', (rig: Rig, key: number) => rig.supervisor.kill(key)],
  ])('is cut, and says so, when the tool is %s; its own end stays', async (_how, stop) => {
    const rig = await startRig({ graceMs: 300 });
    const tool = await stuck(rig, INITIAL_CREDIT_BYTES * 3);
    stop(rig, tool.key);
    expect(await within(5_000, 'the end of the tool', tool.outcome)).toMatchObject({ exitCode: 0, cause: 'self' });
    const after = tool.chunks.length;
    expect(tool.unread).toEqual([
      { source: 3, reason: 'cut', after },
      { source: 4, reason: 'cut', after },
    ]);
  });

  it('holds up no shutdown, and of an output that is not there nothing is told', async () => {
    const rig = await startRig({ graceMs: 300 });
    const tool = await stuck(rig, INITIAL_CREDIT_BYTES * 3, 'true');
    await within(5_000, 'the end of the supervisor', rig.supervisor.shutdown());
    expect(await tool.outcome).toMatchObject({ exitCode: 0, cause: 'self' });
    expect(tool.unread).toEqual([{ source: 3, reason: 'cut', after: tool.chunks.length }]);
  });

  it('gets its share of the credit beside output that uses up all there is', async () => {
    const rig = await startRig();
    const script = `yes & until [ -e ${rig.scratch}/go ]; do sleep 0.01; done; echo late > ${EVENTS}; wait`;
    const tool = rig.launch(shell(script), { credit: 'withheld' });
    await until('the credit is used up', () => tool.spentCredit() >= INITIAL_CREDIT_BYTES);
    writeFileSync(join(rig.scratch, 'go'), '');
    let granted = INITIAL_CREDIT_BYTES;
    await until('the report came', () => {
      // Enough for one read of one of the three.
      const wanted = tool.spentCredit() + 1;
      rig.supervisor.grantCredit(tool.key, Math.max(0, wanted - granted));
      granted = Math.max(granted, wanted);
      return tool.text(3) === 'late\n';
    });
    rig.supervisor.kill(tool.key);
    await tool.outcome;
  });
});
