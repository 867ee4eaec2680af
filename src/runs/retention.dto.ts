/** How long ended runs are kept, as the API shows it, and what is said of it. */
import { formatDuration } from '../kernel/duration.js';
import type { InputFault } from '../kernel/problems.js';
import { LONGEST_RETENTION, parseRetention, SHORTEST_RETENTION } from '../kernel/retention.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import { nullable } from '../platform/http/schema.js';
import type { Retention } from './retention.js';

export const RETENTION_ETAG_EXAMPLE = '"1209600000"';
const RANGE = `${SHORTEST_RETENTION} to ${LONGEST_RETENTION}`;

export class RetentionDto {
  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: '14d',
      description: 'A run goes this long after its end, with its events and output. Its audit entries stay.',
    }),
  )
  retention: string;

  @Documented((api) =>
    api.ApiProperty({ type: Boolean, example: false, description: 'The organization says nothing of its own.' }),
  )
  isDefault: boolean;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: RETENTION_ETAG_EXAMPLE,
      description: 'Of what the organization says, as `If-Match` takes it, quotes and all.',
    }),
  )
  etag: string;
}

export class PutRetentionDto {
  @Documented((api) =>
    api.ApiProperty({
      ...nullable('string'),
      example: '14d',
      description: `A duration of ${RANGE}; null for the installation's own, \`CAPSTAN_RETENTION\`.`,
    }),
  )
  @Holds(retentionFaults)
  retention: string | null;
}

function retentionFaults(value: unknown): InputFault[] {
  if (value === null || (typeof value === 'string' && parseRetention(value) !== undefined)) return [];
  return [{ pointer: '', message: `must be a duration of ${RANGE}, such as 14d, or null` }];
}

export function retentionDto({ retentionMs, isDefault, etag }: Retention): RetentionDto {
  return { retention: formatDuration(retentionMs), isDefault, etag };
}
