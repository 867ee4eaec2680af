/** What a replica hears in what arrives on the channel, and how long it waits before it connects anew. */
import { expect, it } from 'vitest';
import { heardIn, reconnectPauseMs, tellingOf } from '../../../src/platform/db/wake.rules.js';

it('what one replica tells is heard by the others and not by itself', () => {
  const payload = tellingOf('a', ['canceled', 'claimable']);
  expect(heardIn(payload, 'b')).toEqual(['claimable', 'canceled']);
  expect(heardIn(payload, 'a')).toEqual([]);
});

it('what strangers say means nothing', () => {
  const payloads = [
    '',
    'wake up',
    'null',
    '7',
    '{}',
    '["claimable"]',
    '{"what":["claimable"]}',
    '{"from":7,"what":["claimable"]}',
    '{"from":"x"}',
    '{"from":"x","what":"claimable"}',
    '{"from":"x","what":{"0":"claimable"}}',
    '{"from":"x","what":["Claimable",1,null,"ended"]}',
  ];
  for (const payload of payloads) expect(heardIn(payload, 'b'), payload).toEqual([]);
});

it('what is not known yet is passed over', () => {
  expect(heardIn('{"from":"x","what":["sooner","canceled"],"more":1}', 'b')).toEqual(['canceled']);
});

it('a database that is away is asked ever more rarely, but never more rarely than every second', () => {
  expect([0, 1, 2, 3, 4, 5, 1_000_000].map(reconnectPauseMs)).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000]);
});
