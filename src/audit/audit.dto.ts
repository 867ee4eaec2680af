/** The wire shape of a chain's verification, and what may be asked of it. */
import { IsOptional } from 'class-validator';
import type { InputFault } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import { CHAIN_CHECKS } from './chain.js';
import { ChainQuery } from './entry.dto.js';
import type { Range } from './verification.js';

export class VerifyQuery extends ChainQuery {
  @Documented((api) =>
    api.ApiProperty({ type: 'integer', minimum: 1, required: false, description: 'The first entry; default: 1.' }),
  )
  @IsOptional()
  @Holds(seqFaults)
  from?: string;

  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      minimum: 1,
      required: false,
      description: 'The last entry; default: the head.',
    }),
  )
  @IsOptional()
  @Holds((value, owner) => [...seqFaults(value), ...orderFaults(value, owner)])
  to?: string;
}

class ChainHeadDto {
  @Documented((api) => api.ApiProperty({ type: 'integer', example: 7, minimum: 0 }))
  seq: number;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: '5f'.repeat(32),
      description: 'Lower-case hex; empty before the first entry.',
    }),
  )
  link: string;
}

export class VerificationDto {
  @Documented((api) =>
    api.ApiProperty({
      type: Boolean,
      example: true,
      description: 'Whether every entry asked for, the head and the anchors hold.',
    }),
  )
  ok: boolean;

  @Documented((api) =>
    api.ApiProperty({ type: String, example: 'org_01h455vb4pex5vsknk084sn02q', description: 'Id of the chain.' }),
  )
  chain: string;

  @Documented((api) =>
    api.ApiProperty({ type: 'integer', example: 7, description: 'Entries that were recomputed and held.' }),
  )
  entries: number;

  @Documented((api) => api.ApiProperty({ type: ChainHeadDto }))
  head: ChainHeadDto;

  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      example: 0,
      description: 'Outside timestamps of the chain that equal their entries.',
    }),
  )
  anchors: number;

  @Documented((api) =>
    api.ApiProperty({ type: 'integer', required: false, description: 'Sequence number of the first that fails.' }),
  )
  brokenAt?: number;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      required: false,
      enum: [...CHAIN_CHECKS],
      description:
        '`gap`: no such entry; `prev`: it follows another entry; `link`: its content is not what was linked; `column`: ' +
        'what it is found by says something else; `head`: the head is another; `behind`: the chain led further before; ' +
        '`anchor`: its timestamp is of another entry, or forged.',
    }),
  )
  check?: string;

  @Documented((api) => api.ApiProperty({ type: 'integer', description: 'Milliseconds that it took.' }))
  tookMs: number;
}

/** `query` was checked. */
export function rangeOf({ from, to }: VerifyQuery): Range {
  return { from: from === undefined ? undefined : Number(from), to: to === undefined ? undefined : Number(to) };
}

function seqFaults(value: unknown): InputFault[] {
  const isSeq = typeof value === 'string' && /^[1-9]\d{0,14}$/.test(value);
  return isSeq ? [] : [{ pointer: '', message: 'must be the number of an entry: 1 or more' }];
}

function orderFaults(value: unknown, owner: object): InputFault[] {
  const isTurned = 'from' in owner && owner.from !== undefined && Number(owner.from) > Number(value);
  return isTurned ? [{ pointer: '', message: 'must not be before `from`' }] : [];
}
