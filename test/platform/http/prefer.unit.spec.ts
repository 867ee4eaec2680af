import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { preferredWaitOf } from '../../../src/platform/http/prefer.js';

const waitIn = (prefer: string | string[] | undefined) =>
  preferredWaitOf({ headers: { prefer } } as unknown as FastifyRequest);

describe('a preference to wait', () => {
  const understood: [string | string[], number][] = [
    ['wait=30', 30],
    ['wait=1', 1],
    ['wait=060', 60],
    ['WAIT = 5', 5],
    ['wait="7"', 7],
    ['respond-async, wait=10', 10],
    ['foo="a, wait=3", wait=10; bar="x,y"', 10],
    [['respond-async', 'wait=10'], 10],
    ['wait=10, wait=20', 10],
  ];
  it.each(understood)('%j is %d seconds', (header, seconds) => {
    expect(waitIn(header)).toBe(seconds);
  });

  it.each(['wait=61', 'wait=3600', `wait=${'9'.repeat(400)}`])('%s is applied as a minute', (header) => {
    expect(waitIn(header)).toBe(60);
  });

  const ignored = [
    undefined,
    '',
    ',,',
    'wait',
    'wait=',
    'wait=0',
    'wait=-1',
    'wait=1.5',
    'wait=30s',
    'wait=1e1',
    'wait="',
    'wait=""',
    'waiting=30',
    'foo="wait=30"',
    'foo="a, wait=30"',
    'wait=x, wait=30',
    '"wait"=30',
  ];
  it.each(ignored)('%j says nothing', (header) => {
    expect(waitIn(header)).toBeUndefined();
  });
});
