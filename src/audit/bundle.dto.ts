/** What is asked of a bundle: a window of a chain. */
import { IsIn, IsOptional } from 'class-validator';
import { decodeId } from '../kernel/ids.js';
import { parseInstant } from '../kernel/instant.js';
import type { InputFault } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import type { BundleRequest } from './bundle.service.js';

const BOUND = { type: String, required: false } as const;

export class BundleQuery {
  @Documented((api) =>
    api.ApiProperty({ ...BOUND, description: 'The first entry: its number, or an instant (RFC 3339); included.' }),
  )
  @IsOptional()
  @Holds(boundFaults)
  from?: string;

  @Documented((api) =>
    api.ApiProperty({ ...BOUND, description: 'The last entry: its number, or an instant (RFC 3339); included.' }),
  )
  @IsOptional()
  @Holds((value, owner) => [...boundFaults(value), ...orderFaults(value, owner)])
  to?: string;

  @Documented((api) =>
    api.ApiProperty({ ...BOUND, description: 'A run: all its entries, and those that stand between them.' }),
  )
  @IsOptional()
  @Holds(runFaults)
  run?: string;

  @Documented((api) =>
    api.ApiProperty({ ...BOUND, enum: ['installation'], description: "The installation's own chain, for its admins." }),
  )
  @IsOptional()
  @IsIn(['installation'])
  chain?: 'installation';
}

/** `query` was checked. */
export function bundleRequest({ from, to, run, chain }: BundleQuery): BundleRequest {
  return {
    chain,
    from: boundIn(from),
    to: boundIn(to),
    run: run === undefined ? undefined : decodeId('run', run),
  };
}

function boundFaults(value: unknown): InputFault[] {
  const message = 'must be the number of an entry, or an instant with its offset (RFC 3339)';
  return typeof value === 'string' && boundIn(value) !== undefined ? [] : [{ pointer: '', message }];
}

function orderFaults(value: unknown, owner: object): InputFault[] {
  const [from, to] = ['from' in owner ? boundIn(owner.from) : undefined, boundIn(value)];
  const isTurned = from !== undefined && to !== undefined && typeof from === typeof to && from > to;
  return isTurned ? [{ pointer: '', message: 'must not be before `from`' }] : [];
}

function runFaults(value: unknown, owner: object): InputFault[] {
  if (typeof value !== 'string' || decodeId('run', value) === undefined) {
    return [{ pointer: '', message: 'must be the id of a run' }];
  }
  const isBounded = ('from' in owner && owner.from !== undefined) || ('to' in owner && owner.to !== undefined);
  return isBounded ? [{ pointer: '', message: 'stands alone, without `from` and `to`' }] : [];
}

function boundIn(value: unknown): number | Date | undefined {
  if (typeof value !== 'string') return undefined;
  return /^[1-9]\d{0,14}$/.test(value) ? Number(value) : parseInstant(value);
}
