/** `/v1/runs`: submit, look, cancel, run again. HTTP in, one call of the service, the run out. */
import { Body, Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { bearingOf } from '../platform/http/bearing.js';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { IdPipe } from '../platform/http/id.pipe.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { NoInput } from '../platform/http/json-body.guard.js';
import { nextPage } from '../platform/http/page.js';
import { goneSignal, preferredWaitOf } from '../platform/http/prefer.js';
import { Records } from '../platform/http/records.js';
import { Refuses } from '../platform/http/refuses.js';
import { EndWatch } from './ends.service.js';
import { SUBMIT_EXAMPLES } from './examples.js';
import { REFERENCED, RUN_PARAM, RunDto, RunPageDto, runDto, runSummaryDto } from './run.dto.js';
import { RunListQuery, runListRequest } from './run-list.dto.js';
import { RunsService, type SubmitAnswer } from './runs.service.js';
import { decodeSubmit, SubmitDto } from './submit.dto.js';

const RUN_ID = new IdPipe('run');

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  required: false,
  description: 'The same request with the same key gives the same run, however often it is sent.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
} as const;
const PREFER = {
  name: 'Prefer',
  required: false,
  description:
    '`wait=N` answers when the run has ended or N seconds (1 to 60) passed, with the run as it is then; the answer ' +
    'says so in `Preference-Applied`.',
  schema: { type: 'string', example: 'wait=30' },
} as const;
const TRACEPARENT = {
  name: 'traceparent',
  required: false,
  description: 'W3C Trace Context: kept on the run.',
  schema: { type: 'string' },
} as const;

@Documented((api) => api.ApiTags('runs'))
@Documented((api) => api.ApiExtraModels(...REFERENCED))
@Controller('v1/runs')
export class RunsController {
  constructor(
    private readonly runs: RunsService,
    private readonly ends: EndWatch,
  ) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'submitRun',
      summary: 'Submit a run',
      description:
        'With an `Idempotency-Key`, or with an `id` of your own, the same request gives the same run however often it ' +
        'is sent: 200 and `Idempotency-Replayed: true`. A key is kept until 7 days after its run ended.',
    }),
  )
  @Documented((api) => api.ApiHeader(IDEMPOTENCY_KEY))
  @Documented((api) => api.ApiHeader(PREFER))
  @Documented((api) => api.ApiHeader(TRACEPARENT))
  @Documented((api) => api.ApiBody({ type: SubmitDto, examples: SUBMIT_EXAMPLES }))
  @Documented((api) => api.ApiCreatedResponse({ type: RunDto, description: 'The run was made.' }))
  @Documented((api) => api.ApiOkResponse({ type: RunDto, description: 'The run that the same request made before.' }))
  @Records('run.submitted')
  @Refuses('id_conflict')
  @Post()
  async submit(
    @CurrentCaller() caller: RequestCaller,
    @Query() _query: NoQuery,
    @Body() body: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RunDto> {
    const made = await this.runs.submit(caller, decodeSubmit(body, bearingOf(request)));
    return this.answer(made, request, reply);
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'rerunRun',
      summary: 'Run an ended run again',
      description:
        'Makes a new run of the same kind, spec, queue, priority, labels, name and timeout, whose `rerunOf` names the ' +
        'ended one, which stays what it is. A run that has not ended is answered 409 with its state.',
    }),
  )
  @Documented((api) => api.ApiParam(RUN_PARAM))
  @Documented((api) => api.ApiHeader(IDEMPOTENCY_KEY))
  @Documented((api) => api.ApiHeader(PREFER))
  @Documented((api) => api.ApiHeader(TRACEPARENT))
  @Documented((api) => api.ApiCreatedResponse({ type: RunDto, description: 'The new run.' }))
  @Documented((api) => api.ApiOkResponse({ type: RunDto, description: 'The run that the same request made before.' }))
  @Records('run.submitted')
  @Refuses('run_not_ended')
  @Post(':id/rerun')
  @NoInput()
  async rerun(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', RUN_ID) id: string,
    @Query() _query: NoQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RunDto> {
    const made = await this.runs.rerun(caller, id, bearingOf(request));
    return this.answer(made, request, reply);
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'listRuns',
      summary: 'List runs, newest first',
      description:
        'Runs in lists come without `spec` and `output`. The next page is named by `next` and a `Link` header; it alone says ' +
        'whether there are more: a page may hold fewer than `limit`, or none, where the search was long.',
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: RunPageDto, description: 'A page.' }))
  @Get()
  async list(
    @CurrentCaller() caller: RequestCaller,
    @Query() query: RunListQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RunPageDto> {
    const { filter, after, limit } = runListRequest(query);
    const { items, next } = await this.runs.list(caller, filter, after, limit);
    return { items: items.map(runSummaryDto), next: nextPage('run', request, reply, next ?? undefined) };
  }

  @Documented((api) => api.ApiOperation({ operationId: 'getRun', summary: 'Show a run' }))
  @Documented((api) => api.ApiParam(RUN_PARAM))
  @Documented((api) => api.ApiOkResponse({ type: RunDto, description: 'The run.' }))
  @Get(':id')
  async show(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', RUN_ID) id: string,
    @Query() _query: NoQuery,
  ): Promise<RunDto> {
    return runDto(await this.runs.get(caller, id));
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'cancelRun',
      summary: 'Cancel a run',
      description: 'Idempotent. A run that waits ends at once; the tool of a running one is stopped within seconds.',
    }),
  )
  @Documented((api) => api.ApiParam(RUN_PARAM))
  @Documented((api) => api.ApiOkResponse({ type: RunDto, description: 'The run has ended canceled.' }))
  @Documented((api) => api.ApiAcceptedResponse({ type: RunDto, description: 'Its holder still has to stop the tool.' }))
  @Records('run.ended', 'run.cancel_requested')
  @Refuses('run_ended')
  @Post(':id/cancel')
  @NoInput()
  @HttpCode(200)
  async cancel(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', RUN_ID) id: string,
    @Query() _query: NoQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RunDto> {
    const { run, stopping, receipt } = await this.runs.cancel(caller, id);
    if (stopping) void reply.status(202);
    withReceipt(reply, receipt);
    return runDto(run);
  }

  /** Answers with a run that was made, now or before: at once, or when it has ended if the caller prefers to wait. */
  private async answer(made: SubmitAnswer, request: FastifyRequest, reply: FastifyReply): Promise<RunDto> {
    const { run, replayed, receipt } = made;
    const waitSeconds = preferredWaitOf(request);
    const later =
      waitSeconds === undefined
        ? undefined
        : await this.ends.awaitEnd(run, { forMs: waitSeconds * 1_000, signal: goneSignal(reply) });
    if (later) void reply.header('preference-applied', `wait=${waitSeconds}`);
    const answer = runDto(later ?? run);
    void reply.status(replayed ? 200 : 201);
    if (replayed) void reply.header('idempotency-replayed', 'true');
    else void reply.header('location', `/v1/runs/${answer.id}`);
    withReceipt(reply, receipt);
    return answer;
  }
}

function withReceipt(reply: FastifyReply, receipt: string | null): void {
  if (receipt !== null) void reply.header('audit-receipt', receipt);
}
