/** What `top` shows: who executes runs, what waits, and what is going on, as tables that fit a screen. */
import { type Column, type Field, Printer, span } from './print.js';
import type { Queue, Run, Worker } from './resources.js';
import type { Outlet } from './shell.js';

export interface Standing {
  readonly workers: readonly Worker[];
  readonly queues: readonly Queue[];
  /** What has been taken, newest first, as far as it was asked for. */
  readonly runs: readonly Run[];
  readonly hasMoreRuns: boolean;
}

export interface Section {
  /** What a row is, in a pipe. */
  readonly word: string;
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Field[])[];
  readonly hasMore: boolean;
}

/** `nowMs`: the clock of this machine, for how long something has been going on. */
export function sectionsOf({ workers, queues, runs, hasMoreRuns }: Standing, nowMs: number): readonly Section[] {
  const now = new Date(nowMs).toISOString();
  const present = workers.filter(({ state }) => state === 'live' || state === 'draining');
  const busy = queues.filter(({ depth, running, paused }) => depth !== 0 || running !== 0 || paused !== null);
  return [
    {
      word: 'worker',
      title: `WORKERS  ${present.length}, slots ${sum(present, 'running')}/${sum(present, 'slots')}`,
      columns: [
        { title: 'NAME' },
        { title: 'STATE' },
        { title: 'SLOTS' },
        { title: 'LEASE' },
        { title: 'QUEUES', isFlexible: true },
      ],
      rows: present.map(({ name, state, connected, running, slots, leaseUntil, queues: served }) => [
        name,
        { state: connected ? state : `${state}, away` },
        `${running}/${slots}`,
        leaseUntil === null ? null : (span(now, leaseUntil) ?? 'over'),
        served.join(','),
      ]),
      hasMore: false,
    },
    {
      word: 'queue',
      title: `QUEUES  ${queues.length}${busy.length === queues.length ? '' : `, ${queues.length - busy.length} idle`}`,
      columns: [
        { title: 'QUEUE' },
        { title: 'STATE' },
        { title: 'WAITING' },
        { title: 'OLDEST' },
        { title: 'RUNNING' },
        { title: 'PAUSED FOR', isFlexible: true },
      ],
      rows: busy.map(({ name, paused, depth, depthIsEstimate, oldestPendingAt, running }) => [
        name,
        { state: paused ? 'paused' : 'open' },
        depth === null ? null : `${depthIsEstimate ? '~' : ''}${depth}`,
        age(oldestPendingAt, now),
        running,
        paused?.reason ?? null,
      ]),
      hasMore: false,
    },
    {
      word: 'run',
      title: `RUNNING  ${runs.length}${hasMoreRuns ? '+' : ''}`,
      columns: [
        { title: 'ID' },
        { title: 'STATE' },
        { title: 'TIME' },
        { title: 'WORKER' },
        { title: 'QUEUE' },
        { title: 'PROGRESS' },
        { title: 'NAME', isFlexible: true },
      ],
      rows: runs.map(({ id, state, startedAt, worker, queue, progress, name }) => [
        id,
        { state },
        age(startedAt, now),
        worker?.name ?? null,
        queue,
        progressOf(progress),
        name,
      ]),
      hasMore: hasMoreRuns,
    },
  ];
}

function sum(workers: readonly Worker[], member: 'running' | 'slots'): number {
  return workers.reduce((total, worker) => total + worker[member], 0);
}

/** Two clocks are compared: what begins in a moment has begun now. */
function age(from: string | null, now: string): string | null {
  return from === null ? null : (span(from, now) ?? '0.00s');
}

/** `40% restore`, as far as a tool has said so. */
export function progressOf(progress: Run['progress']): string | null {
  const { percent, step } = progress ?? {};
  const parts = [typeof percent === 'number' ? `${Math.round(percent)}%` : '', typeof step === 'string' ? step : ''];
  return parts.filter((part) => part !== '').join(' ') || null;
}

/** The lines of a screen: each section has what it needs, and gives way when another has less than its share. */
export async function screenOf(
  head: string,
  sections: readonly Section[],
  size: { readonly columns: number; readonly rows: number; readonly noColor: boolean },
): Promise<string[]> {
  const tables = await Promise.all(sections.map((section) => tableLines(section, size)));
  const heights = shares(
    tables.map((lines) => lines.length),
    size.rows - 1 - 2 * sections.length,
  );
  return [
    head,
    ...sections.flatMap(({ title }, index) => {
      return ['', title, ...cut(tables[index] ?? [], heights[index] ?? 0)];
    }),
  ];
}

async function tableLines(
  { columns, rows }: Section,
  { columns: width, noColor }: { columns: number; noColor: boolean },
) {
  let text = '';
  const outlet: Outlet = {
    isTerminal: true,
    columns: width,
    isLineOpen: false,
    write: async (data) => {
      text += String(data);
    },
  };
  await new Printer(outlet, noColor).table(columns, rows);
  return text === '' ? [] : text.trimEnd().split('\n');
}

/** A table, or as much of it as there is room for, and how many rows are left out. */
function cut(lines: readonly string[], height: number): readonly string[] {
  if (lines.length <= height) return lines;
  if (height === 0) return [];
  // Titles without a row say nothing.
  const shown = height < 3 ? [] : lines.slice(0, height - 1);
  const rows = lines.length - 1;
  return [...shown, `… ${rows - Math.max(0, shown.length - 1)} more`];
}

/** `room` lines for those who need some: nobody gets more than is needed, the rest is shared evenly, the last has what is over. */
function shares(needs: readonly number[], room: number): readonly number[] {
  const heights = needs.map(() => 0);
  let left = Math.max(0, room);
  const byNeed = needs.map((need, index) => ({ need, index })).sort((a, b) => a.need - b.need);
  for (const [rank, { need, index }] of byNeed.entries()) {
    const share = Math.min(need, Math.floor(left / (needs.length - rank)));
    heights[index] = share;
    left -= share;
  }
  return heights;
}
