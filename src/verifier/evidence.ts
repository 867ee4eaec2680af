/** Evidence: artifacts outside the bundle that entries name by the SHA-256 of their bytes. File names say nothing. */
import type { Bundle } from './bundle.js';
import { Refusal } from './refusal.js';

/** How many different artifacts are named, by what is known of them. */
export interface EvidenceFacts {
  /** The artifact was given, and its bytes have this digest. */
  readonly verified: number;
  /** No artifacts were given. */
  readonly referenced: number;
  /** Artifacts were given, none of them with this digest: it is missing or was changed. */
  readonly missing: number;
}

export interface EvidenceOptions {
  /** Digests of the artifacts at hand; `undefined` when none were given. */
  readonly evidence?: ReadonlySet<string> | undefined;
  /** Anything but `verified` sinks the bundle. */
  readonly requireEvidence?: boolean | undefined;
}

export function digestsOf({ claims }: Bundle): ReadonlySet<string> {
  return new Set(claims.flatMap(({ evidence = [] }) => evidence.map(({ digest }) => digest)));
}

export function checkEvidence(digests: ReadonlySet<string>, options: EvidenceOptions): EvidenceFacts {
  const { evidence: given, requireEvidence } = options;
  const found = [...digests].filter((digest) => given?.has(digest)).length;
  const absent = digests.size - found;
  if (requireEvidence && absent > 0) {
    throw new Refusal(
      'evidence',
      `${absent} of ${digests.size} artifacts are ${given ? 'missing or changed' : 'not given'}`,
    );
  }
  return { verified: found, referenced: given ? 0 : absent, missing: given ? absent : 0 };
}
