/** The conformance vectors of the open format, where somebody has them: the folder that `LOOMSEAL_VECTORS` names. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyBundle } from '../../src/verifier/verify.js';

interface Manifest {
  readonly vectors: readonly {
    readonly name: string;
    readonly file: string;
    readonly must_verify: boolean;
    readonly level?: string;
    readonly failing_check?: string;
  }[];
}

const folder = process.env.LOOMSEAL_VECTORS;

describe('the conformance vectors of LoomSeal 0.1', () => {
  // Named and not there is a failure of this file: nothing would be proven, and nobody would notice.
  const { vectors }: Manifest =
    folder === undefined ? { vectors: [] } : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));

  for (const { name, file, must_verify, level, failing_check } of vectors) {
    it(`S4-104 ${name} ${must_verify ? `verifies as ${level}` : `fails at ${failing_check}`}`, () => {
      const verdict = verifyBundle(readFileSync(join(folder ?? '', file)));
      expect({ ok: verdict.ok, level: verdict.level, stage: verdict.failed?.stage }).toEqual({
        ok: must_verify,
        level: must_verify ? level : 'not verified',
        stage: failing_check,
      });
    });
  }

  it('are named by LOOMSEAL_VECTORS, all of them or none', () => {
    expect(vectors).toHaveLength(folder === undefined ? 0 : 33);
  });
});
