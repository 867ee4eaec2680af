/**
 * Tools that leave a trace of every moment at which they ran, and the verdict on it: who ran, how often, until when.
 * A trace is written by the tool itself to a file that no replica touches, so it proves what really happened.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EndedRun } from './stage.fixture.js';

/** One line of the effects file: this process of this run's tool was at work at this instant of the machine's clock. */
export interface Effect {
  readonly runId: string;
  readonly pid: number;
  readonly atMs: number;
}

const TOOL = `
import os, signal, sys, time
path, seconds, manner = sys.argv[1], float(sys.argv[2]), sys.argv[3]
if manner == 'stubborn': signal.signal(signal.SIGTERM, signal.SIG_IGN)
fd = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o666)
end = time.monotonic() + seconds
while True:
    os.write(fd, b'%s %d %.3f\\n' % (os.environ['CAPSTAN_RUN_ID'].encode(), os.getpid(), time.time() * 1000))
    if time.monotonic() >= end: break
    time.sleep(0.02)
`;

export interface Verdict {
  /** Runs whose tool was started more than once. */
  readonly duplicates: readonly string[];
  /** Runs that read `succeeded` without an effect. */
  readonly losses: readonly string[];
  /** Runs with an effect after their end, and by how many ms. */
  readonly late: readonly { readonly id: string; readonly byMs: number }[];
}

export class Effects {
  private constructor(private readonly file: string) {}

  /** An empty effects file in `folder`. */
  static async in(folder: string): Promise<Effects> {
    const file = join(folder, `effects-${Math.random().toString(36).slice(2)}`);
    await writeFile(file, '', { mode: 0o666 });
    return new Effects(file);
  }

  /** A command that leaves an effect each 20 ms for `seconds`, and at least one. A `stubborn` one ignores TERM. */
  tool(seconds: number, manner: 'polite' | 'stubborn' = 'polite'): string[] {
    return ['python3', '-c', TOOL, this.file, String(seconds), manner];
  }

  async read(): Promise<Effect[]> {
    const lines = (await readFile(this.file, 'utf8')).split('\n').filter((line) => line !== '');
    return lines.map((line) => {
      const [runId = '', pid, atMs] = line.split(' ');
      return { runId, pid: Number(pid), atMs: Number(atMs) };
    });
  }

  /** What became of `runs`, all of which have ended. */
  async judge(runs: readonly EndedRun[]): Promise<Verdict> {
    const byRun = new Map<string, Effect[]>();
    for (const effect of await this.read()) {
      const known = byRun.get(effect.runId);
      if (known) known.push(effect);
      else byRun.set(effect.runId, [effect]);
    }
    const duplicates: string[] = [];
    const losses: string[] = [];
    const late: { id: string; byMs: number }[] = [];
    for (const { id, state, endedAtMs } of runs) {
      const effects = byRun.get(id) ?? [];
      if (new Set(effects.map(({ pid }) => pid)).size > 1) duplicates.push(id);
      if (state === 'succeeded' && effects.length === 0) losses.push(id);
      const byMs = effects.reduce((last, { atMs }) => Math.max(last, atMs), 0) - endedAtMs;
      if (byMs > 0) late.push({ id, byMs });
    }
    return { duplicates, losses, late };
  }
}

/** Nothing ran twice, nothing is missing, nothing happened after an end. */
export const CLEAN: Verdict = { duplicates: [], losses: [], late: [] };
