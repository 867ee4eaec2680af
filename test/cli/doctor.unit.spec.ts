/** How `doctor` says what it found: on a terminal, in a pipe, as JSON. */
import { describe, expect, it } from 'vitest';
import type { Diagnosis } from '../../src/kernel/diagnosis.js';
import { systemTiming } from '../../src/platform/time.js';
import { capstanHere } from './here.fixture.js';

const HEALTHY: Diagnosis = {
  kind: 'looked',
  checks: [
    { name: 'database', summary: 'PostgreSQL 17.2', faults: [], notes: [] },
    { name: 'laws', summary: '21 laws hold', faults: [], notes: ['checked the newest 5 of about 9 runs'] },
  ],
};
const SICK: Diagnosis = {
  kind: 'looked',
  checks: [
    {
      name: 'schema',
      summary: 'not said',
      faults: [{ what: 'old\u001b[2J\nnews', remedy: 'run `capstan migrate`' }],
      notes: [],
    },
    { name: 'laws', summary: '', faults: [], notes: ['not checked'] },
  ],
};

const screen = () => {
  const shown: string[] = [];
  const outlet = {
    isTerminal: true,
    columns: 80,
    isLineOpen: false,
    write: async (data: unknown) => void shown.push(String(data)),
  };
  return { outlet, text: () => shown.join('') };
};
const found = (diagnosis: Diagnosis) => async () => diagnosis;

describe('doctor', () => {
  it('in a pipe says one line for each thing, fields between tabs, and 0 or 1', async () => {
    const healthy = await capstanHere(['doctor'], {}, found(HEALTHY));
    expect(healthy).toEqual({
      code: 0,
      stdout:
        'ok\tdatabase\tPostgreSQL 17.2\nok\tlaws\t21 laws hold\nnote\tlaws\tchecked the newest 5 of about 9 runs\n',
      stderr: '',
    });
    const sick = await capstanHere(['doctor'], {}, found(SICK));
    expect(sick).toEqual({
      code: 1,
      stdout: 'fault\tschema\told\u{FFFD}[2J news; run `capstan migrate`\nnote\tlaws\tnot checked\n',
      stderr: '',
    });
  });

  it('tells three faults of a law and how many more, with what to do once; --json tells all', async () => {
    const fault = (what: string, law: string) => ({ what, remedy: `mend ${law}`, law });
    const faults = [
      fault('a', 'x'),
      fault('b', 'x'),
      fault('c', 'y'),
      fault('d', 'x'),
      fault('e', 'x'),
      fault('f', 'x'),
    ];
    const many: Diagnosis = { kind: 'looked', checks: [{ name: 'laws', summary: '', faults, notes: [] }] };
    const { stdout } = await capstanHere(['doctor'], {}, found(many));
    expect(stdout.split('\n').map((line) => line.split('\t')[2])).toEqual([
      'a; mend x',
      'b',
      'd',
      '… and 2 more of the law x; --json tells each',
      'c; mend y',
      undefined,
    ]);
    const json = await capstanHere(['doctor', '--json'], {}, found(many));
    expect(JSON.parse(json.stdout).checks[0].faults).toEqual(faults);
  });

  it('on a terminal marks each line, in colors unless NO_COLOR asks for none', async () => {
    const [colored, plain] = [screen(), screen()];
    expect((await capstanHere(['doctor'], { stdout: colored.outlet }, found(HEALTHY))).code).toBe(0);
    expect(colored.text()).toContain('\u001b[32m✓\u001b[39m database    PostgreSQL 17.2\n');
    await capstanHere(['doctor'], { stdout: plain.outlet, env: { NO_COLOR: '1' } }, found(SICK));
    expect(plain.text()).toBe('✗ schema      old\u{FFFD}[2J news; run `capstan migrate`\n· laws        not checked\n');
  });

  it('with --json is one document', async () => {
    const { code, stdout } = await capstanHere(['doctor', '--json'], {}, found(SICK));
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({ ok: false, checks: SICK.kind === 'looked' && SICK.checks });
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
  });

  it('ends with 2 for settings that can’t be read, and with 3 where there is no database', async () => {
    const settings = await capstanHere(
      ['doctor'],
      {},
      found({ kind: 'settings', faults: ['CAPSTAN_SLOTS: expected …'] }),
    );
    expect(settings).toMatchObject({ code: 2, stdout: '' });
    expect(settings.stderr).toBe('capstan: settings: CAPSTAN_SLOTS: expected …\n');
    const away = await capstanHere(['doctor', '--json'], {}, found({ kind: 'unreachable', why: 'ECONNREFUSED' }));
    expect(away).toMatchObject({ code: 3, stdout: '' });
    expect((await capstanHere(['doctor'], {}, found({ kind: 'unreachable', why: 'away' }))).stderr).toBe(
      'capstan: database: away\n',
    );
    expect(JSON.parse(away.stderr)).toMatchObject({ title: 'database', detail: 'ECONNREFUSED', code: 'unavailable' });
  });

  it('shows how far it has come with --all on a terminal alone, and leaves nothing of that there', async () => {
    const progressing = async (
      _: unknown,
      { isAll, onProgress }: { isAll: boolean; onProgress: (line: string) => void },
    ) => {
      onProgress(`all: ${isAll}`);
      return HEALTHY;
    };
    // Each look at the clock finds it a second later: what is over at once shows nothing.
    let now = 0;
    const timing = { ...systemTiming, monotonicMs: () => (now += 1_000) };
    const seenBy = async (args: readonly string[]) => {
      const seen: string[] = [];
      const status = {
        show: async (text: string) => void seen.push(text),
        clear: async () => void seen.push('cleared'),
      };
      await capstanHere(args, { status, timing, stderr: screen().outlet }, progressing);
      return seen;
    };
    expect(await seenBy(['doctor', '--all'])).toEqual(['all: true', 'cleared']);
    for (const args of [['doctor'], ['doctor', '--all', '--json']]) expect(await seenBy(args)).toEqual(['cleared']);
  });
});
