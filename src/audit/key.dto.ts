/** The wire shapes of signing keys. */

import type { InputFault } from '../kernel/problems.js';
import { publicKeyIn } from '../kernel/signing-key.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import { nullable } from '../platform/http/schema.js';
import type { RecordedKey } from './key.js';
import type { KeyStanding } from './key.service.js';

const PUBLIC_KEY = 'ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=';
const FINGERPRINT = `sha256:${'5f'.repeat(32)}`;
const RECEIPT = `ins_01h455vb4pex5vsknk084sn02q:7:${'5f'.repeat(32)}`;

class RecordedKeyDto {
  @Documented((api) =>
    api.ApiProperty({ type: String, example: FINGERPRINT, description: '`sha256:` of the 32 raw bytes of the key.' }),
  )
  fingerprint: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, example: PUBLIC_KEY, description: 'The 32 raw bytes in base64.' }),
  )
  publicKey: string;

  @Documented((api) => api.ApiProperty({ type: String, example: '2030-01-31T08:00:00.000Z', format: 'date-time' }))
  recordedAt: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, example: RECEIPT, description: 'Of the entry that recorded it.' }),
  )
  receipt: string;
}

export class KeyDto {
  @Documented((api) =>
    api.ApiProperty({
      ...nullable('string'),
      example: FINGERPRINT,
      description: 'Of the current key; null while none was recorded.',
    }),
  )
  fingerprint: string | null;

  @Documented((api) =>
    api.ApiProperty({ ...nullable('string'), example: PUBLIC_KEY, description: 'The 32 raw bytes in base64.' }),
  )
  publicKey: string | null;

  @Documented((api) =>
    api.ApiProperty(nullable('string', { example: '2030-01-31T08:00:00.000Z', format: 'date-time' })),
  )
  recordedAt: string | null;

  @Documented((api) =>
    api.ApiProperty({ ...nullable('string'), example: RECEIPT, description: 'Of the entry that recorded it.' }),
  )
  receipt: string | null;

  @Documented((api) =>
    api.ApiProperty({ type: [RecordedKeyDto], example: [], description: 'Those before it, newest first.' }),
  )
  past: readonly RecordedKey[];

  @Documented((api) =>
    api.ApiProperty({
      type: Boolean,
      example: true,
      description: 'Whether the replica that answers signs with the current key.',
    }),
  )
  signs: boolean;
}

export class NewKeyDto {
  @Documented((api) =>
    api.ApiProperty({
      type: String,
      description: 'The 32 raw bytes of an Ed25519 public key in standard base64.',
      example: PUBLIC_KEY,
    }),
  )
  @Holds(publicKeyFaults)
  publicKey: string;
}

function publicKeyFaults(value: unknown): InputFault[] {
  const isKey = typeof value === 'string' && publicKeyIn(value) !== undefined;
  return isKey ? [] : [{ pointer: '', message: 'must be the 32 bytes of an Ed25519 public key in base64' }];
}

export function keyDto({ current, past, signs }: KeyStanding): KeyDto {
  return {
    fingerprint: current?.fingerprint ?? null,
    publicKey: current?.publicKey ?? null,
    recordedAt: current?.recordedAt ?? null,
    receipt: current?.receipt ?? null,
    past,
    signs,
  };
}
