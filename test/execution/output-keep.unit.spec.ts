import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BATCH_OVERHEAD_BYTES, OutputKeep, type Sized } from '../../src/execution/output-keep.rules.js';
import type { OutputCut } from '../../src/runs/output.js';

const MIB = 1024 * 1024;

interface Kept extends Sized {
  readonly batch: number;
  readonly pos: number;
  readonly streamPos: number;
}

/** Stores groups of batches as the writer does, and checks after each what must always hold. */
function play(limitBytes: number, groups: readonly (readonly Sized[])[]): { kept: Kept[]; cut: OutputCut | undefined } {
  const keep = new OutputKeep(limitBytes);
  let kept: Kept[] = [];
  let cut: OutputCut | undefined;
  for (const written of groups) {
    const group = keep.fitted(written);
    const next = keep.makeRoom(group);
    if (next) {
      const gone = kept.filter(({ batch }) => batch > next.afterBatch && batch <= next.throughBatch);
      expect(gone.length * BATCH_OVERHEAD_BYTES, 'what one statement drops').toBeLessThanOrEqual(2 * limitBytes);
      kept = kept.filter((batch) => !gone.includes(batch));
      cut = next;
    }
    const places = keep.placesOf(group);
    kept.push(...group.map((sized, i) => ({ ...sized, ...places[i]! })));
    keep.add(group);
    const charge = kept.reduce((sum, { bytes }) => sum + bytes + BATCH_OVERHEAD_BYTES, 0);
    expect(charge).toBeLessThanOrEqual(limitBytes);
  }
  return { kept, cut };
}

const group = fc.array(
  fc.record({ stream: fc.constantFrom(1 as const, 2 as const), bytes: fc.integer({ min: 1, max: 9_000 }) }),
  {
    minLength: 1,
    maxLength: 12,
  },
);

it('what is kept and what the cut says is missing make up what was written, of both streams and of each', () => {
  fc.assert(
    fc.property(fc.array(group, { minLength: 1, maxLength: 200 }), (groups) => {
      const { kept, cut } = play(256 * 1024, groups);
      const all = groups.flat();
      const bytesOf = (batches: readonly Sized[], stream?: 1 | 2) =>
        batches.reduce((sum, batch) => sum + (stream === undefined || batch.stream === stream ? batch.bytes : 0), 0);
      expect(bytesOf(kept) + (cut?.bytes ?? 0)).toBe(bytesOf(all));
      expect(bytesOf(kept, 1) + (cut?.stdoutBytes ?? 0)).toBe(bytesOf(all, 1));
      const behind = kept.find(({ batch }) => batch > (cut?.throughBatch ?? Number.POSITIVE_INFINITY));
      if (cut && behind) expect(behind.pos).toBe(cut.pos + cut.bytes);
      const batches = kept.map(({ batch }) => batch);
      const whole = Array.from({ length: batches.at(-1) ?? 0 }, (_, i) => i + 1);
      expect(batches).toEqual(whole.filter((n) => !cut || n <= cut.afterBatch || n > cut.throughBatch));
      if (cut) {
        const half = cut.pos + cut.afterBatch * BATCH_OVERHEAD_BYTES;
        expect(half, 'the whole first half stays').toBeLessThanOrEqual(128 * 1024);
        expect(half).toBeGreaterThan(128 * 1024 - BATCH_OVERHEAD_BYTES - 2);
      }
    }),
  );
});

it('a tool that changes its stream with every byte is bounded in rows, not only in bytes', () => {
  const tiny = Array.from({ length: 200 }, (_, i): Sized => ({ stream: i % 2 ? 1 : 2, bytes: 1 }));
  const { kept } = play(
    MIB,
    Array.from({ length: 200 }, () => tiny),
  );
  expect(kept.length).toBeLessThanOrEqual(MIB / BATCH_OVERHEAD_BYTES);
  expect(kept.length).toBeGreaterThan((MIB / BATCH_OVERHEAD_BYTES) * 0.7);
});

it('under the limit nothing goes', () => {
  const quiet = Array.from({ length: 60 }, (): Sized[] => [{ stream: 1, bytes: 16 * 1024 }]);
  expect(play(MIB, quiet).cut).toBeUndefined();
});
