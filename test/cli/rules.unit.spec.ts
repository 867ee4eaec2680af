import { describe, expect, it } from 'vitest';
import { CutLines, OutputCount } from '../../src/cli/cut.rules.js';
import { EXIT_CODES, exitCodeOf } from '../../src/cli/exit-codes.js';
import { waitingLine } from '../../src/cli/follow.js';
import { interpreterOf } from '../../src/cli/script.rules.js';
import { brief, printable, quoted } from '../../src/cli/text.js';
import { cutLine as serversCutLine } from '../../src/runs/output.rules.js';

describe('the exit code of --wait', () => {
  const cases: [state: string, exitCode: number | null, code: number][] = [
    ['succeeded', 0, 0],
    ['succeeded', 3, 0],
    ['failed', 7, 7],
    ['failed', 255, 255],
    ['failed', 0, 1],
    ['failed', 256, 1],
    ['failed', null, 1],
    ['canceled', 0, 1],
    ['canceled', 143, 1],
    ['timed_out', 0, 1],
    ['interrupted', null, 1],
    ['rejected', null, 1],
  ];
  it.each(cases)('is, for a run that is %s with exit code %s, %s', (state, exitCode, code) => {
    expect(exitCodeOf({ state, end: { exitCode } })).toBe(code);
  });

  it('is one of the documented ones, which are all different', () => {
    const codes = Object.values(EXIT_CODES).map(({ code }) => code);
    expect(codes).toEqual([0, 1, 2, 3, 124, 130, 141]);
  });
});

describe('what a run that has not begun waits for', () => {
  const cases: [state: string, notBefore: string | null, line: string | undefined][] = [
    ['pending', null, 'run_1 is pending; no worker has taken it yet (queue gpu)'],
    ['pending', '2026-03-02T10:00:00.000Z', 'run_1 is pending; it is due at 2026-03-02T10:00:00.000Z'],
    ['held', null, 'run_1 is held'],
    ['claimed', null, undefined],
    ['running', null, undefined],
  ];
  it.each(cases)('is, for one that is %s and due at %s, told as %j', (state, notBefore, line) => {
    expect(waitingLine({ id: 'run_1', queue: 'gpu', state, notBefore })).toBe(line);
  });
});

describe('the line in the place of dropped output', () => {
  it('is the one of the text as the server answers it, as far as its place is known', () => {
    const ofServer = serversCutLine(undefined, 100, 4_196).toString().trim();
    const cuts = new CutLines('run_1', 'capstan');
    expect(cuts.next({ from: 100, bytes: 4_096 })).toBe(ofServer);
    expect(cuts.next({ from: null, bytes: 4_096 })).toBe(ofServer.replace('bytes 100-4195', '4096 bytes'));
  });

  it('says once where the rest is to be had, when nobody knows how much was dropped', () => {
    const cuts = new CutLines('run_1', 'capstan');
    expect(cuts.next({ from: 100, bytes: null })).toContain('all that is kept: capstan logs run_1]');
    expect(cuts.next({ from: null, bytes: null })).toBeUndefined();
    expect(cuts.next({ from: null, bytes: 7 }), 'an amount is worth telling each time').toContain('7 bytes');
  });

  it('counts under each fence anew, and knows no place behind an unknown number of bytes or part of the output', () => {
    const whole = new OutputCount(true);
    const steps: [fence: number, bytes: number | null][] = [
      [1, 5],
      [1, 10],
      [1, 1],
      [2, 7],
      [2, null],
      [2, 3],
      [3, 1],
    ];
    expect(steps.map(([fence, bytes]) => whole.add(fence, bytes))).toEqual([0, 5, 15, 0, 7, null, 0]);
    const part = new OutputCount(false);
    expect(steps.map(([fence, bytes]) => part.add(fence, bytes))).toEqual(steps.map(() => null));
  });
});

describe('a JSON value on one line', () => {
  it('is cut short, never between the halves of a character, and null is nothing', () => {
    expect([brief(null), brief({ a: ['x\n'] }), brief(0)]).toEqual([null, '{"a":["x\\n"]}', '0']);
    expect(brief('x'.repeat(300))).toBe(`"${'x'.repeat(199)}…`);
    expect(brief(`${'x'.repeat(198)}🚀`)).toBe(`"${'x'.repeat(198)}…`);
  });
});

describe('the interpreter of a script', () => {
  const cases: [content: string, file: string, interpreter: unknown][] = [
    ['echo', '-', 'bash'],
    ['echo', 'backup', 'bash'],
    ['echo', 'backup.sh', 'bash'],
    ['print()', 'dir.js/train.PY', 'python3'],
    ['', 'a.mjs', 'node'],
    ['', 'a.cjs', 'node'],
    ['', 'notes.txt', 'bash'],
    ['#!/bin/sh\necho', 'a.py', 'sh'],
    ['#! /usr/bin/bash\r\necho', '-', 'bash'],
    ['#!/usr/bin/env node', '-', 'node'],
    ['#!/usr/bin/env python', '-', 'python3'],
    ['#!/usr/bin/env perl\n', 'a.sh', ['/usr/bin/env', 'perl']],
    ['#!/usr/bin/env -S node --enable-source-maps\n', 'a.sh', ['/usr/bin/env', '-S node --enable-source-maps']],
    ['#!/bin/bash -eu\n', '-', ['/bin/bash', '-eu']],
    ['#!/opt/ruby/bin/ruby\n', '-', ['/opt/ruby/bin/ruby']],
    ['#!\necho', 'a.py', 'python3'],
    ['\n#!/bin/sh', 'a.py', 'python3'],
  ];
  it.each(cases)('of %j in %s is %j', (content, file, interpreter) => {
    expect(interpreterOf(content, file)).toEqual(interpreter);
  });
});

describe('text of others', () => {
  it('can neither steer a terminal nor begin another field or line', () => {
    expect(printable('a\tb\nc\rd\u001b[31me\u0007\u009bf\u2028g\u202eh')).toBe(
      'a b c d\u{FFFD}[31me\u{FFFD}\u{FFFD}f\u{FFFD}g\u{FFFD}h',
    );
    expect(printable('grüße 🚀 日本')).toBe('grüße 🚀 日本');
  });

  it('is quoted as a shell would need it', () => {
    expect(['a/b-c=1', 'two words', "it's", ''].map(quoted)).toEqual(['a/b-c=1', "'two words'", "'it'\\''s'", "''"]);
  });
});
