import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { linesOf, type Rig, shell, startRig, stateOf, until } from './rig.js';

/** Appends a line with the time in ms every 20 ms, and one for TERM, which it survives. */
function stubborn(file: string) {
  const line = (word: string) => `echo "${word} $(date +%s%3N)" >> ${file}`;
  return shell(`trap '${line('term')}' TERM; while :; do ${line('tick')}; sleep 0.02; done`);
}

function effects(file: string): { word: string; atMs: number }[] {
  return linesOf(file).map((line) => {
    const [word = '', at] = line.split(' ');
    return { word, atMs: Number(at) };
  });
}

async function stopped(rig: Rig, act: () => Promise<void>): Promise<void> {
  process.kill(rig.pid, 'SIGSTOP');
  await until('the supervisor is stopped', () => stateOf(rig.pid) === 'T');
  await act();
  process.kill(rig.pid, 'SIGCONT');
}

async function passes(ms: number): Promise<void> {
  const endAt = performance.now() + ms;
  await until(`${ms} ms went by`, () => performance.now() > endAt);
}

const DEADLINE_MS = 1_000;
const GRACE_MS = 600;

describe('the deadline', () => {
  it('S4-23 stops a tool when no renewal gets through: TERM at the deadline, KILL after the grace period', async () => {
    const rig = await startRig({ deadlineMs: DEADLINE_MS, graceMs: GRACE_MS });
    const renewedAtMs = Date.now();
    rig.renew();
    const file = join(rig.scratch, 'effects');
    const tool = rig.launch(stubborn(file));
    expect(await tool.outcome).toMatchObject({
      exitCode: null,
      signal: 'SIGKILL',
      cause: 'deadline',
      leftovers: false,
    });
    const endedAtMs = Date.now();
    const seen = effects(file);
    const termAtMs = seen.find(({ word }) => word === 'term')?.atMs ?? 0;
    expect(termAtMs - renewedAtMs).toBeGreaterThanOrEqual(DEADLINE_MS - 5);
    expect(termAtMs - renewedAtMs).toBeLessThan(DEADLINE_MS + 550);
    expect(seen.at(-1)?.atMs).toBeGreaterThan(termAtMs);
    expect(endedAtMs - renewedAtMs).toBeGreaterThanOrEqual(DEADLINE_MS + GRACE_MS - 5);
    expect(endedAtMs - renewedAtMs).toBeLessThan(DEADLINE_MS + GRACE_MS + 700);
    expect(linesOf(file).length, 'a line was written after the end was told').toBe(seen.length);
  });

  it('moves with every renewal', async () => {
    const rig = await startRig({ deadlineMs: 400, graceMs: GRACE_MS });
    const renewals = setInterval(() => rig.renew(), 50);
    onTestFinished(() => clearInterval(renewals));
    const tool = rig.launch(shell('sleep 1.5; exit 5'));
    expect(await tool.outcome).toMatchObject({ exitCode: 5, cause: 'self' });
  });

  it('gives no reprieve to a tool that was told to stop, but a new one may start', async () => {
    const rig = await startRig({ deadlineMs: 500, graceMs: 700 });
    const file = join(rig.scratch, 'effects');
    const tool = rig.launch(stubborn(file));
    await until('TERM reached the tool', () => effects(file).some(({ word }) => word === 'term'));
    rig.renew();
    const renewals = setInterval(() => rig.renew(), 20);
    onTestFinished(() => clearInterval(renewals));
    const next = rig.launch(shell('exit 5'));
    expect(await next.outcome).toMatchObject({ exitCode: 5, cause: 'self' });
    expect(await tool.outcome).toMatchObject({ signal: 'SIGKILL', cause: 'deadline' });
  });

  it('is not moved by the renewal of another incarnation, nor by one that was sent long ago', async () => {
    const rig = await startRig({ deadlineMs: 500, graceMs: 10_000 });
    const renewals = setInterval(() => {
      rig.renew({ incarnation: randomUUID() });
      rig.renew({ sentAtNs: process.hrtime.bigint() - 10_000_000_000n });
    }, 20);
    onTestFinished(() => clearInterval(renewals));
    expect(await rig.launch(shell('sleep 600')).outcome).toMatchObject({ signal: 'SIGTERM', cause: 'deadline' });
  });

  it('acknowledges each extension', async () => {
    const rig = await startRig();
    const acks: number[] = [];
    rig.supervisor.onAck((seq) => acks.push(seq));
    rig.renew();
    rig.renew({ incarnation: randomUUID() });
    await until('all are acknowledged', () => acks.length >= 3);
    expect(acks).toEqual([1, 2, 3]);
  });
});

describe('a start is refused', () => {
  it('before the first extension', async () => {
    const rig = await startRig({ isRenewed: false });
    const file = join(rig.scratch, 'effects');
    expect(await rig.launch(shell(`echo ran >> ${file}`)).outcome).toEqual({ refused: 'deadline' });
    rig.renew();
    expect(await rig.launch(shell(`echo ran >> ${file}`)).outcome).toMatchObject({ exitCode: 0 });
    expect(linesOf(file)).toEqual(['ran']);
  });

  it('after the deadline', async () => {
    const rig = await startRig({ isRenewed: false, deadlineMs: 1_000 });
    rig.renew({ sentAtNs: process.hrtime.bigint() - 1_000_000_000n });
    expect(await rig.launch({}).outcome).toEqual({ refused: 'deadline' });
  });

  it('for another incarnation', async () => {
    const rig = await startRig();
    const other = randomUUID();
    rig.renew({ incarnation: other });
    expect(await rig.launch({}, { incarnation: other }).outcome).toEqual({ refused: 'incarnation' });
  });

  it('S4-18 when it waited in a stopped supervisor until the deadline was over', async () => {
    const rig = await startRig({ deadlineMs: 500 });
    const file = join(rig.scratch, 'effects');
    let late: Promise<unknown> = Promise.resolve();
    await stopped(rig, async () => {
      late = rig.launch(shell(`echo ran >> ${file}`)).outcome;
      await passes(600);
    });
    expect(await late).toEqual({ refused: 'deadline' });
    expect(linesOf(file)).toEqual([]);
  });
});

describe('a supervisor that was stopped itself', () => {
  it('kills at once what should be gone by now, however politely it was asked to end', async () => {
    const rig = await startRig({ deadlineMs: 500, graceMs: 1_000 });
    const file = join(rig.scratch, 'effects');
    const tool = rig.launch(stubborn(file));
    await until('the tool runs', () => effects(file).length > 0);
    await stopped(rig, () => passes(1_600));
    expect(await tool.outcome).toMatchObject({ signal: 'SIGKILL', cause: 'deadline' });
    expect(effects(file).filter(({ word }) => word === 'term')).toEqual([]);
  });

  it('counts a renewal that waited in the pipe from when it was sent', async () => {
    const rig = await startRig({ deadlineMs: 800, graceMs: 200 });
    const kept = rig.launch(shell('sleep 600'));
    await kept.pgid;
    await stopped(rig, async () => {
      await passes(900);
      rig.renew();
    });
    // Renewed while it was stopped: the lease never ended, so the tool goes on.
    expect(await rig.launch(shell('exit 5')).outcome).toMatchObject({ exitCode: 5 });
    expect(rig.supervisor.groups()).toEqual([await kept.pgid]);
    await stopped(rig, async () => {
      rig.renew();
      await passes(900);
    });
    expect(await kept.outcome).toMatchObject({ cause: 'deadline' });
  });
});
