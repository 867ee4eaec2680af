/** A replica in a process of its own, to be killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import type { ToolPlan } from '../../../src/execution/supervisor/plan.js';
import { compiledSource } from '../../compiled.js';
import { planOf, until } from './rig.js';

export interface Replica {
  readonly process: ChildProcess;
  readonly supervisor: number;
  readonly pgid: number;
  readonly temp: string;
  said(): Record<string, unknown>[];
}

/** A replica in a process of its own, with one tool that is running; `through` is a command in front of it. */
export async function startReplica(
  plan: Partial<ToolPlan>,
  options: { graceMs: number; fd?: number; cgroup?: string; through?: readonly string[] },
): Promise<Replica> {
  const temp = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
  // It may be another user's.
  chmodSync(temp, 0o777);
  const { graceMs, cgroup, through = [] } = options;
  const settings = { temp, plan: planOf(plan), graceMs, deadlineMs: 60_000, cgroup };
  const fixture = new URL('./replica.fixture.mjs', import.meta.url).pathname;
  // A descriptor that somebody left open, far above those that Node itself keeps to itself.
  const foreign = options.fd === undefined ? [] : [...Array(37).fill('ignore'), options.fd];
  const [command = '', ...args] = [...through, process.execPath, fixture, await compiledSource()];
  const child = spawn(command, [...args, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'inherit', ...foreign],
  });
  const lines: Record<string, unknown>[] = [];
  if (child.stdout === null) throw new Error('no stdout');
  createInterface(child.stdout).on('line', (line) => lines.push(JSON.parse(line)));
  const find = (name: string) => Number(lines.find((line) => name in line)?.[name] ?? 0);
  onTestFinished(() => {
    child.kill('SIGKILL');
    for (const pid of [find('sibling'), -find('pgid')]) {
      if (pid === 0) continue;
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Gone, as it should be.
      }
    }
    rmSync(temp, { recursive: true, force: true });
  });
  await until('the tool runs', () => find('pgid') > 0);
  return { process: child, supervisor: find('supervisor'), pgid: find('pgid'), temp, said: () => lines };
}
