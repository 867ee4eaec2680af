/** What the database is taken for, after what was seen of it. */
import { describe, expect, it } from 'vitest';
import { type DatabaseView, isLookDue, isReady, judge, type Sign, UNSEEN } from '../../src/replica/readiness.rules.js';

const writable: Sign = { sign: 'answered', writable: true };
const readOnly: Sign = { sign: 'answered', writable: false };
const failed: Sign = { sign: 'failed' };
const tick = { sign: 'tick', othersAnswered: false, isAsked: false, wasCut: false } as const;
const idle: Sign = tick;
const quiet: Sign = { ...tick, isAsked: true };
const busy: Sign = { ...tick, othersAnswered: true };
const cut: Sign = { ...busy, wasCut: true };
const looking: Sign = { sign: 'looking' };
const pulse: Sign = { sign: 'pulse', writable: true };
const times = (n: number, ...signs: Sign[]): Sign[] => Array.from({ length: n }, () => signs).flat();

const viewAfter = (...signs: Sign[]) => signs.reduce<DatabaseView>(judge, UNSEEN);
const after = (...signs: Sign[]) => viewAfter(...signs).verdict;

describe('the database', () => {
  it('is not reached until a look was answered, and ok from the first answer on', () => {
    expect(after()).toBe('not reached yet');
    expect(after(quiet, quiet)).toBe('not reached yet');
    expect(after(writable)).toBe('ok');
  });

  it('S4-66 is unreachable after two looks in a row that failed, and ok after one that was answered', () => {
    expect(after(writable, failed)).toBe('ok');
    expect(after(writable, failed, quiet, failed)).toBe('unreachable');
    expect(after(writable, failed, failed, ...times(20, quiet))).toBe('unreachable');
    expect(after(writable, failed, failed, writable)).toBe('ok');
  });

  it('F043 one look that failed is nothing while a look between was answered, or others are', () => {
    expect(after(...times(10, writable, failed))).toBe('ok');
    expect(after(writable, ...times(10, failed, busy))).toBe('ok');
  });

  it('S4-66 gives no answer when nothing at all was answered for nine ticks', () => {
    expect(after(writable, ...times(8, quiet))).toBe('ok');
    expect(after(writable, ...times(9, quiet))).toBe('no answer');
    expect(after(writable, ...times(9, quiet), writable)).toBe('ok');
  });

  it('is not taken for silent while nobody asks it, and may take half a second when somebody does', () => {
    expect(after(writable, ...times(30, idle))).toBe('ok');
    expect(after(writable, ...times(30, idle), quiet, quiet)).toBe('ok');
    expect(after(writable, ...times(30, idle), quiet, quiet, busy)).toBe('ok');
    expect(after(writable, ...times(30, idle), quiet, quiet, quiet)).toBe('no answer');
  });

  it('F043 may be as slow as it likes while anything is answered', () => {
    expect(after(writable, ...times(20, ...times(8, quiet), busy))).toBe('ok');
    expect(after(...times(20, writable, ...times(8, quiet)))).toBe('ok');
  });

  it('that went silent is not taken for ok because others are answered: a look must be', () => {
    expect(after(writable, ...times(9, quiet), busy)).toBe('no answer');
    expect(after(writable, failed, failed, busy)).toBe('unreachable');
  });

  it('is read-only after two looks in a row that said so, whatever others do', () => {
    expect(after(writable, readOnly)).toBe('ok');
    expect(after(...times(10, writable, readOnly))).toBe('ok');
    expect(after(writable, readOnly, busy, readOnly)).toBe('read-only');
    expect(after(writable, readOnly, readOnly, writable)).toBe('ok');
  });

  it('that comes back read-only is not ok', () => {
    expect(after(writable, failed, failed, readOnly)).toBe('unreachable');
    expect(after(writable, failed, failed, readOnly, readOnly)).toBe('read-only');
  });
});

describe('a look', () => {
  const due = (...signs: Sign[]) => isLookDue(viewAfter(...signs), true);
  /** An idle replica's: one pulse in seven ticks. */
  const calm = (pulses: number) => times(pulses, pulse, busy, ...times(6, idle));
  const answered = [looking, writable];

  it('is made every 1.25 s at first, and after a while only when pulses say too little', () => {
    expect([due(), due(...answered, ...times(4, busy)), due(...answered, ...times(5, busy))]).toEqual([
      true,
      false,
      true,
    ]);
    expect(due(...answered, ...calm(1))).toBe(true);
    expect(due(...answered, ...calm(10))).toBe(false);
    expect(due(...answered, ...calm(171))).toBe(false);
    expect(due(...answered, ...calm(172)), 'the schema, every five minutes').toBe(true);
    expect(isLookDue(viewAfter(...answered, ...calm(10)), false), 'a schema that is not there yet').toBe(true);
  });

  it.each<[string, readonly Sign[]]>([
    ['no pulse was answered', times(9, idle)],
    ['a pulse was answered by a server that takes no writes', [{ sign: 'pulse', writable: false }]],
    ['a connection was cut', [cut]],
    ['something took longer than a tick', [quiet, quiet, busy]],
    ['an earlier look said read-only', [looking, readOnly, ...times(5, busy)]],
    ['an earlier look was given up', [looking, ...times(5, busy)]],
    ['an earlier look failed', [looking, failed]],
  ])('is due at once when %s', (_, signs) => {
    const before = [...answered, ...calm(10)];
    expect(due(...before)).toBe(false);
    expect(due(...before, ...signs)).toBe(true);
  });
});

it('a process is ready when nothing speaks against it', () => {
  const checks = { database: 'ok', migrations: 'ok', process: 'ok' } as const;
  expect(isReady(checks)).toBe(true);
  expect(isReady({ ...checks, database: 'no answer' })).toBe(false);
  expect(isReady({ ...checks, migrations: 'pending' })).toBe(false);
  expect(isReady({ ...checks, process: 'starting' })).toBe(false);
});
