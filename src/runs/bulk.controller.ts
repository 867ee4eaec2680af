/** `/v1/runs` by the hundred: submits in a batch, cancels and reruns by filter. */

import { Body, Controller, HttpCode, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { bearingOf } from '../platform/http/bearing.js';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { LargerBody } from '../platform/http/larger-body.js';
import { goneSignal } from '../platform/http/prefer.js';
import { Records } from '../platform/http/records.js';
import { BatchAnswerDto, BatchDto, batchItemDto, decodeBatch } from './batch.dto.js';
import { BatchService } from './batch.service.js';
import {
  BulkCancelAnswerDto,
  BulkCancelDto,
  BulkRerunAnswerDto,
  BulkRerunDto,
  bulkCancelDto,
  bulkRerunDto,
  decodeBulkCancel,
  decodeBulkRerun,
} from './bulk.dto.js';
import { BulkService } from './bulk.service.js';
import { BATCH_EXAMPLES, BULK_CANCEL_EXAMPLES, BULK_RERUN_EXAMPLES, NONE_TAKEN } from './examples.js';

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  required: false,
  description: 'Of the whole request. Kept until 7 days after the last of its runs ended.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
} as const;
const TRACEPARENT = {
  name: 'traceparent',
  required: false,
  description: 'W3C Trace Context: kept on the runs.',
  schema: { type: 'string' },
} as const;

@Documented((api) => api.ApiTags('runs'))
@Controller('v1/runs')
export class BulkController {
  constructor(
    private readonly batches: BatchService,
    private readonly bulk: BulkService,
  ) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'submitRuns',
      summary: 'Submit many runs',
      description:
        'Up to 1,000 submits in one transaction, each answered by itself: what one of them is refused for touches no ' +
        'other. 200 when at least one was taken, 422 with the same body when none was. The body may have 16 MiB. The same ' +
        'request with the same `Idempotency-Key` gives the same runs: 200 for each, and `Idempotency-Replayed: true`.',
    }),
  )
  @Documented((api) => api.ApiHeader(IDEMPOTENCY_KEY))
  @Documented((api) => api.ApiHeader(TRACEPARENT))
  @Documented((api) => api.ApiBody({ type: BatchDto, examples: BATCH_EXAMPLES }))
  @Documented((api) => api.ApiOkResponse({ type: BatchAnswerDto, description: 'At least one run was taken.' }))
  @Documented((api) =>
    api.ApiUnprocessableEntityResponse({ type: BatchAnswerDto, description: 'No run was taken.', example: NONE_TAKEN }),
  )
  @Records('run.submitted')
  @Post('batch')
  @LargerBody()
  @HttpCode(200)
  async submitRuns(
    @CurrentCaller() caller: RequestCaller,
    @Query() _query: NoQuery,
    @Body() body: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<BatchAnswerDto> {
    const bearing = bearingOf(request);
    const { items, replayed, receipt } = await this.batches.submit(
      caller,
      decodeBatch(body, bearing.traceparent),
      bearing,
    );
    if (items.every((item) => 'problem' in item)) void reply.status(422);
    withOrigin(reply, replayed, receipt);
    return { items: items.map((item) => batchItemDto(item, request.id)) };
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'cancelRuns',
      summary: 'Cancel what matches a filter',
      description:
        'Runs that wait end at once, tools of running ones are stopped within seconds. It works for up to 25 s, newest ' +
        'first, in small steps that hold up nobody; what is submitted meanwhile is not meant. The same without a `cursor` ' +
        'begins at the newest again: with `createdBefore` it means no more when it is repeated. Each run has an audit entry.',
    }),
  )
  @Documented((api) => api.ApiBody({ type: BulkCancelDto, examples: BULK_CANCEL_EXAMPLES }))
  @Documented((api) => api.ApiOkResponse({ type: BulkCancelAnswerDto, description: 'What was done.' }))
  @Records('run.ended', 'run.cancel_requested')
  @Post('cancel')
  @HttpCode(200)
  async cancelRuns(
    @CurrentCaller() caller: RequestCaller,
    @Query() _query: NoQuery,
    @Body() body: Record<string, unknown>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<BulkCancelAnswerDto> {
    const asked = decodeBulkCancel(body);
    const answer = await this.bulk.cancel(caller, asked, goneSignal(reply));
    withOrigin(reply, false, answer.receipt);
    return bulkCancelDto(answer, asked.dryRun);
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'rerunRuns',
      summary: 'Run again what matches a filter',
      description:
        'Makes a new run for each of up to `limit` ended ones, newest first, in one transaction. The same request with the ' +
        'same `Idempotency-Key` makes nothing more: it names the runs that it made, with `Idempotency-Replayed: true`.',
    }),
  )
  @Documented((api) => api.ApiHeader(IDEMPOTENCY_KEY))
  @Documented((api) => api.ApiHeader(TRACEPARENT))
  @Documented((api) => api.ApiBody({ type: BulkRerunDto, examples: BULK_RERUN_EXAMPLES }))
  @Documented((api) => api.ApiOkResponse({ type: BulkRerunAnswerDto, description: 'What was made.' }))
  @Records('run.submitted')
  @Post('rerun')
  @HttpCode(200)
  async rerunRuns(
    @CurrentCaller() caller: RequestCaller,
    @Query() _query: NoQuery,
    @Body() body: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<BulkRerunAnswerDto> {
    const bearing = bearingOf(request);
    const asked = decodeBulkRerun(body);
    const answer = await this.bulk.rerun(caller, asked, bearing, goneSignal(reply));
    withOrigin(reply, answer.replayed, answer.receipt);
    return bulkRerunDto(answer, asked.dryRun);
  }
}

function withOrigin(reply: FastifyReply, replayed: boolean, receipt: string | null): void {
  if (replayed) void reply.header('idempotency-replayed', 'true');
  if (receipt !== null) void reply.header('audit-receipt', receipt);
}
