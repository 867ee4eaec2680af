/** A queue as the API shows it, and what is said of it. */
import { IsBoolean, IsOptional } from 'class-validator';
import type { InputFault } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import { LIMIT, limitFaults } from '../platform/http/page.js';
import { nullable, orNull } from '../platform/http/schema.js';
import type { QueueView } from './queue.js';
import { queueNameIn } from './queue-cursor.rules.js';

const MAX_REASON = 500;
export const ETAG_EXAMPLE = '"0f4c1d9a6f0b5f4f6f1f6a1f3f0e9a77"';
const ADMINS = 'Of all organizations; null for callers who are no admins of the installation.';

export class PauseDto {
  @Documented((api) => api.ApiProperty({ type: String, format: 'date-time' }))
  at: Date;

  @Documented((api) => api.ApiProperty({ type: String, example: 'tok_01h455vb4pex5vsknk084sn02q' }))
  by: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'admin', description: 'Its name at that moment.' }))
  byName: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'the database is moving' }))
  reason: string;
}

export class QueueDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'default' }))
  name: string;

  @Documented((api) =>
    api.ApiProperty({ ...orNull(api.getSchemaPath(PauseDto)), description: 'Null while runs are claimed out of it.' }),
  )
  paused: PauseDto | null;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: ETAG_EXAMPLE,
      description: 'Of its pause, as `If-Match` takes it, quotes and all: numbers do not change it.',
    }),
  )
  etag: string;

  @Documented((api) =>
    api.ApiProperty({
      ...nullable('integer', { minimum: 0 }),
      example: 3,
      description: `Runs that are pending and due. ${ADMINS}`,
    }),
  )
  depth: number | null;

  @Documented((api) =>
    api.ApiProperty({ type: Boolean, description: 'The depth is large, and estimated from a sample.' }),
  )
  depthIsEstimate: boolean;

  @Documented((api) =>
    api.ApiProperty({
      ...nullable('string', { format: 'date-time' }),
      example: '2030-01-31T08:00:00.000Z',
      description: 'Since when the run longest in line has been due; null when nothing waits, or as `depth` is.',
    }),
  )
  oldestPendingAt: Date | null;

  @Documented((api) =>
    api.ApiProperty({
      ...nullable('integer', { minimum: 0 }),
      example: 1,
      description: `Runs whose tools run. ${ADMINS}`,
    }),
  )
  running: number | null;

  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      example: 2,
      minimum: 0,
      description: 'Connected workers that take runs out of it.',
    }),
  )
  workers: number;
}

export class QueuePageDto {
  @Documented((api) => api.ApiProperty({ type: [QueueDto] }))
  items: QueueDto[];

  @Documented((api) => api.ApiProperty({ ...nullable('string'), description: 'Cursor of the next page.' }))
  next: string | null;
}

function cursorFaults(value: unknown): InputFault[] {
  return queueNameIn(value) === undefined ? [{ pointer: '', message: 'must be a cursor that this list gave' }] : [];
}

export class QueueListQuery {
  @Documented((api) => api.ApiProperty(LIMIT))
  @IsOptional()
  @Holds(limitFaults)
  limit?: string;

  @Documented((api) => api.ApiProperty({ type: String, required: false, description: '`next` of the page before.' }))
  @IsOptional()
  @Holds(cursorFaults)
  cursor?: string;
}

export class PutQueueDto {
  @Documented((api) => api.ApiProperty({ type: Boolean, example: true }))
  @IsBoolean()
  paused: boolean;

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', {
        minLength: 1,
        maxLength: MAX_REASON,
        required: false,
        default: null,
        example: 'the database is moving',
        description: 'For whoever wonders later, and for the record. A pause needs one.',
      }),
    ),
  )
  @Holds(reasonFaults)
  reason: string | null = null;
}

function reasonFaults(value: unknown, owner: object): InputFault[] {
  if (value === null) {
    const isMissing = 'paused' in owner && owner.paused === true;
    return isMissing ? [{ pointer: '', message: 'must say why the queue is paused' }] : [];
  }
  const isReason =
    typeof value === 'string' &&
    value.length <= MAX_REASON &&
    /\S/.test(value) &&
    /^[^\p{Cc}\u2028\u2029]*$/u.test(value);
  const message = `must be 1 to ${MAX_REASON} characters on one line, without control characters, and not blank`;
  return isReason ? [] : [{ pointer: '', message }];
}

export function queueDto({ name, pause, etag, load, workers }: QueueView): QueueDto {
  return {
    name,
    paused: pause,
    etag,
    depth: load?.depth ?? null,
    depthIsEstimate: load?.isEstimate ?? false,
    oldestPendingAt: load?.oldestPendingAt ?? null,
    running: load?.running ?? null,
    workers,
  };
}
