/**
 * What a command shows on standard output: for a person on a terminal, for a pipe, or as JSON.
 * Invariant: on a terminal and in a pipe a field never holds a control character, and colors only reach a terminal.
 */
import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import type { Outlet } from './shell.js';
import { printable, printableJson } from './text.js';

/** A field: a text, an instant, a run's or worker's state, or nothing. */
export type Field = string | number | null | { readonly at: string | null } | { readonly state: string };

export interface Column {
  readonly title: string;
  /** Is cut short when the line would be wider than the terminal. */
  readonly isFlexible?: boolean;
}

export type Mark = 'ok' | 'fault' | 'note';

const ABOUT_WIDTH = 11;
const COLUMN_GAP = 2;
const FLEXIBLE_MIN = 12;

type Paint = (text: string) => string;
type Colors = ReturnType<typeof pc.createColors>;

export class Printer {
  private readonly colors: Colors;

  constructor(
    private readonly outlet: Outlet,
    noColor: boolean,
  ) {
    this.colors = pc.createColors(outlet.isTerminal && !noColor);
  }

  /** One JSON document: indented for a person, one line for a program. */
  document(value: unknown): Promise<void> {
    return this.line(printableJson(value, this.outlet.isTerminal ? 2 : undefined));
  }

  line(text: string): Promise<void> {
    return this.outlet.write(`${text}\n`);
  }

  /** Ids or names, one a line; nothing for none. */
  lines(texts: readonly string[]): Promise<void> {
    return this.outlet.write(texts.map((text) => `${printable(text)}\n`).join(''));
  }

  /** A table: aligned columns under their titles on a terminal, tab-separated fields without titles in a pipe. */
  async table(columns: readonly Column[], rows: readonly (readonly Field[])[]): Promise<void> {
    if (!this.outlet.isTerminal) {
      const lines = rows.map((row) => `${row.map((field) => this.shown(field)).join('\t')}\n`);
      return this.outlet.write(lines.join(''));
    }
    if (rows.length === 0) return;
    const cells = rows.map((row) => row.map((field) => this.shown(field) || this.colors.dim('-')));
    return this.aligned([columns.map(({ title }) => this.colors.dim(title)), ...cells], columns);
  }

  /** A line of an examination: a mark on a terminal, a word in a pipe; what it is about, and what there is to say. */
  verdict(mark: Mark, about: string, text: string): Promise<void> {
    if (!this.outlet.isTerminal) return this.line([mark, about, text].map(printable).join('\t'));
    const { green, red, yellow } = this.colors;
    const shown = { ok: green('✓'), fault: red('✗'), note: yellow('·') }[mark];
    return this.line(`${shown} ${printable(about).padEnd(ABOUT_WIDTH)} ${printable(text)}`);
  }

  /** Names and what they stand for, one a line; on a terminal those that stand for nothing are left out. */
  async facts(facts: readonly (readonly [name: string, field: Field])[]): Promise<void> {
    const shown = facts.map(([name, field]) => [name, this.shown(field)] as const);
    if (!this.outlet.isTerminal) {
      return this.outlet.write(shown.map(([name, text]) => `${name}\t${text}\n`).join(''));
    }
    const width = Math.max(...facts.map(([name]) => name.length)) + COLUMN_GAP;
    const lines = shown.filter(([, text]) => text !== '');
    return this.outlet.write(lines.map(([name, text]) => `${this.colors.dim(name.padEnd(width))}${text}\n`).join(''));
  }

  private shown(field: Field): string {
    if (field === null) return '';
    if (typeof field !== 'object') return printable(String(field));
    if ('state' in field) return this.paintOf(field.state)(printable(field.state));
    if (field.at === null) return '';
    return this.outlet.isTerminal ? localTime(field.at) : printable(field.at);
  }

  private paintOf(state: string): Paint {
    const { green, red, yellow, cyan, dim } = this.colors;
    if (/^(succeeded|live|yes|ok)$/.test(state)) return green;
    if (/^(failed|timed_out|interrupted|rejected|lost|no|broken)$/.test(state)) return red;
    if (/^(claimed|running)$/.test(state)) return cyan;
    if (/^(held|parked|paused|canceled|draining)$/.test(state)) return yellow;
    return /^(pending|stopped)$/.test(state) ? dim : (text) => text;
  }

  private async aligned(cells: string[][], columns: readonly Column[]): Promise<void> {
    // 34 ms to load, which only a table on a terminal pays.
    const { default: Table } = await import('cli-table3');
    const table = new Table({
      chars: NO_BORDERS,
      style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
      colWidths: this.widths(cells, columns),
    });
    table.push(...cells);
    const lines = table.toString().split('\n');
    await this.outlet.write(`${lines.map((line) => line.trimEnd()).join('\n')}\n`);
  }

  /** Only a flexible column gets a width of its own, and only when the terminal is too narrow. */
  private widths(cells: readonly string[][], columns: readonly Column[]): (number | null)[] {
    const natural = columns.map((_, index) => Math.max(...cells.map((row) => visibleWidth(row[index] ?? ''))));
    const whole = natural.reduce((sum, width) => sum + width + COLUMN_GAP, -COLUMN_GAP);
    const excess = whole - (this.outlet.columns ?? Number.POSITIVE_INFINITY);
    return columns.map(({ isFlexible }, index) => {
      const width = natural[index] ?? 0;
      return isFlexible && excess > 0 && width > FLEXIBLE_MIN ? Math.max(FLEXIBLE_MIN, width - excess) : null;
    });
  }
}

const NO_BORDERS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: ' '.repeat(COLUMN_GAP),
};

function visibleWidth(text: string): number {
  return stripVTControlCharacters(text).length;
}

let localFormat: Intl.DateTimeFormat | undefined;

/** In the time zone of this machine, to the second. */
function localTime(at: string): string {
  // The Swedish way of writing is the one that sorts: 2026-03-02 10:00:00.
  localFormat ??= new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' });
  const instant = new Date(at);
  return Number.isNaN(instant.getTime()) ? printable(at) : localFormat.format(instant);
}

/** Time between two instants as a person reads it: `0.42s`, `12s`, `3m 05s`, `2h 07m`, `3d 04h`. */
export function span(from: string | null, to: string | null): string | null {
  if (from === null || to === null) return null;
  const ms = Date.parse(to) - Date.parse(from);
  return ms >= 0 ? lasting(ms) : null;
}

/** So many milliseconds as a person reads them. */
export function lasting(ms: number): string {
  if (ms < 10_000) return `${(Math.floor(ms / 10) / 100).toFixed(2)}s`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return pair(seconds, 60, 'm', 1, 's');
  return seconds < 86_400 ? pair(seconds, 3_600, 'h', 60, 'm') : pair(seconds, 86_400, 'd', 3_600, 'h');
}

function pair(seconds: number, big: number, bigUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((seconds % big) / small);
  return `${Math.floor(seconds / big)}${bigUnit} ${String(rest).padStart(2, '0')}${smallUnit}`;
}
