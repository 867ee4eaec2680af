/** A run as the API shows it, whole and in lists. */

import { formatDuration } from '../kernel/duration.js';
import { encodeId } from '../kernel/ids.js';
import { KINDS, ORIGINS, RUN_STATES } from '../kernel/run-words.js';
import { Documented } from '../platform/http/document.js';
import { nullable, orNull } from '../platform/http/schema.js';
import { endOf } from './end.rules.js';
import { HttpSpec } from './http-spec.dto.js';
import type { RunRow } from './read.sql.js';
import { CANCEL_KINDS, END_CODES, type Principal } from './run.js';
import { CommandSpec, NoopSpec, ScriptSpec } from './spec.dto.js';

const RECEIPT = `org_01h455vb4pex5vsknk084sn02q:7:${'5f'.repeat(32)}`;

class PrincipalDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'token', enum: ['token', 'system'] }))
  type: Principal['type'];

  @Documented((api) => api.ApiProperty({ type: String, example: 'tok_01h455vb4pex5vsknk084sn02q' }))
  id: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'admin', description: 'Its name at that moment.' }))
  name: string;
}

class RunWorkerDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'wrk_01h455vb4pex5vsknk084sn02q' }))
  id: string;

  @Documented((api) => api.ApiProperty(nullable('string', { example: 'r1' })))
  name: string | null;

  @Documented((api) =>
    api.ApiProperty(nullable('string', { format: 'date-time', description: 'While it holds the run.' })),
  )
  leaseUntil: Date | null;
}

class EndDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'tool_failed', enum: END_CODES }))
  code: string;

  @Documented((api) => api.ApiProperty(nullable('string', { enum: CANCEL_KINDS, description: 'Of a cancel.' })))
  kind: string | null;

  @Documented((api) => api.ApiProperty({ type: String, example: 'exit code 7' }))
  detail: string;

  @Documented((api) => api.ApiProperty(nullable('integer', { example: 7 })))
  exitCode: number | null;

  @Documented((api) => api.ApiProperty(nullable('string', { description: 'Such as SIGTERM.' })))
  signal: string | null;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: 'wrk_01h455vb4pex5vsknk084sn02q',
      description: 'The worker or principal that wrote the end.',
    }),
  )
  by: string;

  @Documented((api) => api.ApiProperty({ type: String, example: '2030-01-31T08:00:12.345Z', format: 'date-time' }))
  at: Date;

  @Documented((api) => api.ApiProperty({ type: 'integer', example: 1 }))
  fence: number;
}

class ReceiptsDto {
  @Documented((api) =>
    api.ApiProperty(nullable('string', { example: RECEIPT, description: '`chain:seq:link` of the audit entry.' })),
  )
  submitted: string | null;

  @Documented((api) => api.ApiProperty({ type: String, required: false, description: 'Once a cancel was asked for.' }))
  cancelRequested?: string;

  @Documented((api) => api.ApiProperty(nullable('string', { example: RECEIPT })))
  ended: string | null;
}

/** A run in a list: without its payloads. */
export class RunSummaryDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'run_01h455vb4pex5vsknk084sn02q' }))
  id: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'org_01h455vb4pex5vsknk084sn02q' }))
  organizationId: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'command', enum: KINDS }))
  kind: string;

  @Documented((api) => api.ApiProperty(nullable('string', { example: 'nightly backup' })))
  name: string | null;

  @Documented((api) => api.ApiProperty({ type: String, example: 'default' }))
  queue: string;

  @Documented((api) => api.ApiProperty({ type: 'integer', example: 0 }))
  priority: number;

  @Documented((api) =>
    api.ApiProperty({ type: 'object', example: { env: 'prod' }, additionalProperties: { type: 'string' } }),
  )
  labels: Record<string, string>;

  @Documented((api) => api.ApiProperty(nullable('string', { example: '15m' })))
  timeout: string | null;

  @Documented((api) => api.ApiProperty(nullable('string', { format: 'date-time' })))
  notBefore: Date | null;

  @Documented((api) => api.ApiProperty({ type: String, example: 'failed', enum: RUN_STATES }))
  state: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'api', enum: ORIGINS }))
  origin: string;

  @Documented((api) => api.ApiProperty({ type: PrincipalDto }))
  principal: PrincipalDto;

  @Documented((api) => api.ApiProperty(nullable('string')))
  parentId: string | null;

  @Documented((api) => api.ApiProperty({ type: String, example: 'run_01h455vb4pex5vsknk084sn02q' }))
  rootId: string;

  @Documented((api) => api.ApiProperty(nullable('string')))
  rerunOf: string | null;

  @Documented((api) => api.ApiProperty({ type: String, example: '2030-01-31T08:00:00.000Z', format: 'date-time' }))
  createdAt: Date;

  @Documented((api) =>
    api.ApiProperty(nullable('string', { example: '2030-01-31T08:00:00.012Z', format: 'date-time' })),
  )
  claimedAt: Date | null;

  @Documented((api) =>
    api.ApiProperty(nullable('string', { example: '2030-01-31T08:00:00.034Z', format: 'date-time' })),
  )
  startedAt: Date | null;

  @Documented((api) =>
    api.ApiProperty(nullable('string', { example: '2030-01-31T08:00:12.345Z', format: 'date-time' })),
  )
  endedAt: Date | null;

  @Documented((api) => api.ApiProperty({ type: 'integer', example: 1, description: 'Plus one at each claim.' }))
  fence: number;

  @Documented((api) => api.ApiProperty(orNull(api.getSchemaPath(RunWorkerDto))))
  worker: RunWorkerDto | null;

  @Documented((api) => api.ApiProperty(nullable('string', { format: 'date-time' })))
  cancelRequestedAt: Date | null;

  @Documented((api) =>
    api.ApiProperty(
      nullable('object', {
        additionalProperties: true,
        description: 'The latest event of type `progress` that its tool reported in `CAPSTAN_EVENTS_FILE`.',
      }),
    ),
  )
  progress: Record<string, unknown> | null;

  @Documented((api) => api.ApiProperty(orNull(api.getSchemaPath(EndDto))))
  end: Record<string, unknown> | null;

  @Documented((api) => api.ApiProperty({ type: ReceiptsDto }))
  receipts: ReceiptsDto;
}

export class RunDto extends RunSummaryDto {
  @Documented((api) =>
    api.ApiProperty({
      oneOf: [NoopSpec, CommandSpec, ScriptSpec, HttpSpec].map((spec) => ({ $ref: api.getSchemaPath(spec) })),
      example: { argv: ['pg_dump', '-Fc', 'app'], env: {}, cwd: null, stdin: null, successCodes: [0] },
      description: 'Complete: what the submit left out stands here with its default.',
    }),
  )
  spec: Record<string, unknown>;

  @Documented((api) =>
    api.ApiProperty({
      anyOf: [{}],
      description: 'The result of the run as any JSON value: what its tool left in `CAPSTAN_OUTPUT_FILE`, or null.',
    }),
  )
  output: unknown;
}

export class RunPageDto {
  @Documented((api) => api.ApiProperty({ type: [RunSummaryDto] }))
  items: RunSummaryDto[];

  @Documented((api) => api.ApiProperty(nullable('string', { description: 'The cursor of the next page.' })))
  next: string | null;
}

/** The parameter of a path. */
export const RUN_PARAM = { name: 'id', description: 'The run: `run_…` or a UUID.' } as const;

/** Types that the document mentions by reference only. */
export const REFERENCED = [NoopSpec, CommandSpec, ScriptSpec, HttpSpec, RunWorkerDto, EndDto];

/** A row in the shape of a list. */
export function runSummaryDto(run: RunRow): RunSummaryDto {
  return {
    id: encodeId('run', run.id),
    organizationId: encodeId('org', run.organizationId),
    kind: run.kind,
    name: run.name,
    queue: run.queue,
    priority: run.priority,
    labels: run.labels,
    timeout: run.timeoutMs === null ? null : formatDuration(run.timeoutMs),
    notBefore: run.notBefore,
    state: run.state,
    origin: run.origin,
    principal: run.principal,
    parentId: run.parentId === null ? null : encodeId('run', run.parentId),
    rootId: encodeId('run', run.rootId),
    rerunOf: run.rerunOf === null ? null : encodeId('run', run.rerunOf),
    createdAt: run.createdAt,
    claimedAt: run.claimedAt,
    startedAt: run.startedAt,
    endedAt: run.endedAt,
    fence: run.fence,
    worker:
      run.workerId === null
        ? null
        : { id: encodeId('wrk', run.workerId), name: run.workerName, leaseUntil: run.leaseUntil },
    cancelRequestedAt: run.cancelRequestedAt,
    progress: run.progress,
    end: endOf(run),
    receipts: {
      submitted: run.submittedReceipt,
      ...(run.cancelReceipt === null ? {} : { cancelRequested: run.cancelReceipt }),
      ended: run.endedReceipt,
    },
  };
}

/** A row in full. */
export function runDto(run: RunRow): RunDto {
  return Object.assign(runSummaryDto(run), { spec: run.spec ?? {}, output: run.output ?? null });
}
