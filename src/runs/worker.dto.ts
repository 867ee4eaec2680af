/** A worker as the API shows it. */
import { IsOptional } from 'class-validator';
import { encodeId } from '../kernel/ids.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import { cursorFaultsOf, LIMIT, limitFaults } from '../platform/http/page.js';
import { nullable } from '../platform/http/schema.js';
import { WORKER_STATES, type WorkerView } from './worker.js';

export class WorkerDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'wrk_01h455vb4pex5vsknk084sn02q' }))
  id: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, example: 'r1', description: 'Its stable name, the same in each life.' }),
  )
  name: string;

  @Documented((api) => api.ApiProperty({ type: String, enum: ['replica', 'worker'] }))
  kind: string;

  @Documented((api) => api.ApiProperty({ type: String, enum: WORKER_STATES }))
  state: string;

  @Documented((api) => api.ApiProperty({ type: 'integer', example: 4, minimum: 0 }))
  slots: number;

  @Documented((api) => api.ApiProperty({ type: [String], example: ['default'] }))
  queues: readonly string[];

  @Documented((api) => api.ApiProperty({ type: String, example: '0.1.0' }))
  version: string;

  @Documented((api) => api.ApiProperty({ type: String, format: 'date-time' }))
  leaseUntil: Date;

  @Documented((api) =>
    api.ApiProperty({ type: String, format: 'date-time', description: 'When it last renewed its lease.' }),
  )
  seenAt: Date;

  @Documented((api) => api.ApiProperty({ type: Boolean, example: true, description: 'Seen within the last 30 s.' }))
  connected: boolean;

  @Documented((api) => api.ApiProperty({ type: 'integer', description: 'Runs whose tools it runs.' }))
  running: number;

  @Documented((api) => api.ApiProperty({ type: String, format: 'date-time' }))
  startedAt: Date;

  @Documented((api) => api.ApiProperty(nullable('string', { format: 'date-time' })))
  endedAt: Date | null;
}

export class WorkerPageDto {
  @Documented((api) => api.ApiProperty({ type: [WorkerDto] }))
  items: WorkerDto[];

  @Documented((api) => api.ApiProperty({ ...nullable('string'), description: 'Cursor of the next page.' }))
  next: string | null;
}

export class WorkerListQuery {
  @Documented((api) => api.ApiProperty(LIMIT))
  @IsOptional()
  @Holds(limitFaults)
  limit?: string;

  @Documented((api) => api.ApiProperty({ type: String, required: false, description: '`next` of the page before.' }))
  @IsOptional()
  @Holds(cursorFaultsOf('wrk'))
  cursor?: string;
}

export function workerDto(worker: WorkerView): WorkerDto {
  const { id, name, kind, state, slots, queues, version, leaseUntil, seenAt, connected } = worker;
  const { running, startedAt, endedAt } = worker;
  return {
    id: encodeId('wrk', id),
    name,
    kind,
    state,
    slots,
    queues,
    version,
    leaseUntil,
    seenAt,
    connected,
    running,
    startedAt,
    endedAt,
  };
}
