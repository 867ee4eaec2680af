import { expect, it } from 'vitest';
import { MessageStore } from '../../src/runs/message-store.js';
import { BEGINNING, type Place } from '../../src/runs/place.rules.js';
import type { Message } from '../../src/runs/stream-message.rules.js';

const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
const at = (seq: number): Place => ({ ...BEGINNING, seq });
const messages = (from: number, count: number, bytes: number): Message[] =>
  Array.from({ length: count }, (_, i) => ({ place: at(from + i + 1), bytes: Buffer.alloc(bytes) }));
const storeOf = (maxBytes: number) => new MessageStore({ maxBytes, keepMs: 1_000 }, clock);
const kept = (store: MessageStore, run: string, upTo: number) =>
  Array.from({ length: upTo }, (_, seq) => seq).filter((seq) => store.get(run, at(seq)) !== undefined);

it('keeps what there is room for, of all runs together, and lets the oldest go', () => {
  const store = storeOf(10 * 1_500);
  for (let i = 0; i < 20; i += 1) store.put(i % 2 === 0 ? 'a' : 'b', at(i), messages(i, 1, 1_000));
  expect([...kept(store, 'a', 20), ...kept(store, 'b', 20)].sort((x, y) => x - y)).toEqual([
    10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
  ]);
});

it('counts what is kept twice once', () => {
  const store = storeOf(10 * 1_500);
  for (let i = 0; i < 50; i += 1) store.put('a', at(0), messages(0, 5, 1_000));
  store.put('a', at(5), messages(5, 5, 1_000));
  expect(kept(store, 'a', 20)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

it('keeps the first of a page that is larger than itself, so that whoever waits gets on', () => {
  const store = storeOf(3_000);
  store.put('a', at(0), messages(0, 5, 1_000));
  expect(kept(store, 'a', 5)).toEqual([0, 1]);
  store.put('a', at(2), messages(2, 5, 10_000));
  expect(kept(store, 'a', 9)).toEqual([2]);
});

it('lets go of what is old when something new comes', () => {
  const store = storeOf(1_000_000);
  store.put('a', at(0), messages(0, 5, 10));
  clock.nowMs += 999;
  store.put('a', at(5), messages(5, 1, 10));
  expect(kept(store, 'a', 9)).toEqual([0, 1, 2, 3, 4, 5]);
  clock.nowMs += 2;
  store.put('a', at(6), messages(6, 1, 10));
  expect(kept(store, 'a', 9)).toEqual([5, 6]);
});
