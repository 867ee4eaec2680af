import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Printer, span } from '../../src/cli/print.js';

/** Everything that was written to it. */
function paper(isTerminal: boolean, columns?: number, noColor = false) {
  const written: string[] = [];
  const isLineOpen = false;
  const outlet = {
    isTerminal,
    columns,
    isLineOpen,
    write: async (data: string | Uint8Array) => void written.push(String(data)),
  };
  return { printer: new Printer(outlet, noColor), text: () => written.join('') };
}

const COLUMNS = [{ title: 'ID' }, { title: 'STATE' }, { title: 'AT' }, { title: 'NAME', isFlexible: true }];
const AT = '2026-03-02T10:00:00.123Z';

describe('a table', () => {
  it('in a pipe is fields between tabs, no titles, no colors, instants unchanged', async () => {
    const { printer, text } = paper(false);
    await printer.table(COLUMNS, [
      ['run_1', { state: 'failed' }, { at: AT }, 'nightly\tbackup\n2'],
      ['run_2', { state: 'running' }, { at: null }, null],
    ]);
    expect(text()).toBe(`run_1\tfailed\t${AT}\tnightly backup 2\nrun_2\trunning\t\t\n`);
  });

  it('on a terminal is aligned under its titles, with colored states and a dash for nothing', async () => {
    const { printer, text } = paper(true, 200);
    await printer.table(COLUMNS, [
      ['run_1', { state: 'failed' }, { at: null }, 'nightly backup'],
      ['run_22', { state: 'succeeded' }, { at: null }, null],
    ]);
    expect(text()).toContain('\u001b[31mfailed\u001b[39m');
    expect(text()).toContain('\u001b[32msucceeded\u001b[39m');
    const plain = stripVTControlCharacters(text())
      .split('\n')
      .map((line) => line.trimEnd());
    expect(plain).toEqual([
      'ID      STATE      AT  NAME',
      'run_1   failed     -   nightly backup',
      'run_22  succeeded  -   -',
      '',
    ]);
  });

  it('has no color where NO_COLOR is set, and the same layout', async () => {
    const { printer, text } = paper(true, 200, true);
    await printer.table(COLUMNS, [['run_1', { state: 'failed' }, { at: null }, 'x']]);
    expect(text()).toBe('ID     STATE   AT  NAME\nrun_1  failed  -   x\n');
  });

  it('fits a narrow terminal by cutting its flexible column short', async () => {
    const { printer, text } = paper(true, 40, true);
    await printer.table(COLUMNS, [['run_1', { state: 'failed' }, { at: null }, 'a'.repeat(60)]]);
    const lines = text().trimEnd().split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(40);
    expect(lines[1]).toMatch(/^run_1 {2}failed {2}- {3}a+…$/);
  });

  it('aligns wide characters by their width', async () => {
    const { printer, text } = paper(true, 200, true);
    await printer.table(
      [{ title: 'NAME' }, { title: 'N' }],
      [
        ['日本', 1],
        ['abcd', 2],
      ],
    );
    expect(text()).toBe('NAME  N\n日本  1\nabcd  2\n');
  });

  it('without rows is nothing', async () => {
    const { printer, text } = paper(true);
    await printer.table(COLUMNS, []);
    expect(text()).toBe('');
  });
});

describe('other answers', () => {
  it('facts are aligned on a terminal without the empty ones, and all there between tabs in a pipe', async () => {
    const facts = [
      ['id', 'run_1'],
      ['exit code', 0],
      ['signal', null],
    ] as const;
    const [screen, pipe] = [paper(true, 80, true), paper(false)];
    await screen.printer.facts(facts);
    await pipe.printer.facts(facts);
    expect(screen.text()).toBe('id         run_1\nexit code  0\n');
    expect(pipe.text()).toBe('id\trun_1\nexit code\t0\nsignal\t\n');
  });

  it('instants are local on a terminal', async () => {
    const { printer, text } = paper(true, 80, true);
    await printer.facts([['created', { at: AT }]]);
    const [, day, time] = /^created {2}(\S+) (\S+)\n$/.exec(text()) ?? [];
    // Without a zone it is read as local time.
    expect(new Date(`${day}T${time}`).toISOString()).toBe('2026-03-02T10:00:00.000Z');
  });

  it('a JSON document is one line in a pipe and indented on a terminal', async () => {
    const [screen, pipe] = [paper(true), paper(false)];
    await screen.printer.document({ a: [1] });
    await pipe.printer.document({ a: [1] });
    expect(screen.text()).toBe('{\n  "a": [\n    1\n  ]\n}\n');
    expect(pipe.text()).toBe('{"a":[1]}\n');
  });

  it('spans of time have two parts at most', () => {
    const after = (ms: number) =>
      span('2026-03-02T10:00:00.000Z', new Date(Date.parse('2026-03-02T10:00:00Z') + ms).toISOString());
    expect([420, 9_999, 12_600, 185_000, 7_620_000, 273_600_000].map(after)).toEqual([
      '0.42s',
      '9.99s',
      '12s',
      '3m 05s',
      '2h 07m',
      '3d 04h',
    ]);
    expect([span(null, AT), span(AT, null), span(AT, '2026-03-01T00:00:00Z')]).toEqual([null, null, null]);
  });
});
