/** `/v1/queues`: what waits where, and what nothing is taken out of. */
import { Body, Controller, Get, Param, type PipeTransform, Put, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../kernel/problems.js';
import { QUEUE_NAME } from '../kernel/run-words.js';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { ifMatchOf } from '../platform/http/if-match.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { DEFAULT_LIMIT, linkNext } from '../platform/http/page.js';
import { InstallationOnly } from '../platform/http/permission.js';
import { Records } from '../platform/http/records.js';
import { Refuses } from '../platform/http/refuses.js';
import { ETAG_EXAMPLE, PauseDto, PutQueueDto, QueueDto, QueueListQuery, QueuePageDto, queueDto } from './queue.dto.js';
import { queueCursorOf, queueNameIn } from './queue-cursor.rules.js';
import { QueuesService } from './queues.service.js';

/** The name of a queue in a path; what can't be one names nothing. */
class QueueNamePipe implements PipeTransform<string, string> {
  transform(name: string): string {
    if (QUEUE_NAME.test(name)) return name;
    throw new Problem('not_found', `no queue has such a name: it matches ${QUEUE_NAME.source}`);
  }
}

@Documented((api) => api.ApiTags('queues'))
@Documented((api) => api.ApiExtraModels(PauseDto))
@Controller('v1/queues')
export class QueuesController {
  constructor(private readonly queues: QueuesService) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'listQueues',
      summary: 'Queues, by name',
      description:
        'Those that are paused and those that a connected worker serves by name; for admins of the installation also ' +
        'those out of which something runs or could be claimed. Runs that are not due yet are not counted.',
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: QueuePageDto, description: 'A page.' }))
  @Get()
  async list(
    @CurrentCaller() caller: RequestCaller,
    @Query() query: QueueListQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<QueuePageDto> {
    const limit = query.limit === undefined ? DEFAULT_LIMIT : Number(query.limit);
    const { queues, more } = await this.queues.list(caller, queueNameIn(query.cursor) ?? '', limit);
    const last = queues.at(-1);
    const next = more && last ? linkNext(request, reply, queueCursorOf(last.name)) : null;
    return { items: queues.map(queueDto), next };
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'putQueue',
      summary: 'Pause a queue, or resume it',
      description:
        'Idempotent: said again it changes nothing. A pause for another reason takes the place of the one before. While a queue is paused its runs ' +
        'wait, in their order, and what runs goes on; runs are submitted to it as ever. A claim that is under way when ' +
        'the pause is answered may still take some. Any queue may be paused, one without runs too. For admins of the ' +
        'installation; others are answered 403.',
    }),
  )
  @Documented((api) =>
    api.ApiParam({
      name: 'name',
      description: 'Of any queue.',
      schema: { type: 'string', pattern: QUEUE_NAME.source },
    }),
  )
  @Documented((api) => api.ApiBody({ type: PutQueueDto }))
  @Documented((api) =>
    api.ApiHeader({
      name: 'If-Match',
      required: false,
      description: 'An `etag` of the queue, or several: while it has none of them nothing is changed.',
      schema: { type: 'string', example: ETAG_EXAMPLE },
    }),
  )
  @Documented((api) =>
    api.ApiOkResponse({
      type: QueueDto,
      description: 'The queue is as it was asked to be.',
      headers: { ETag: { description: 'Its `etag`.', schema: { type: 'string', example: ETAG_EXAMPLE } } },
    }),
  )
  @Refuses('precondition_failed')
  @InstallationOnly('queues serve the whole installation: only its admins pause and resume them')
  @Records('queue.paused', 'queue.resumed')
  @Put(':name')
  async put(
    @CurrentCaller() caller: RequestCaller,
    @Param('name', new QueueNamePipe()) name: string,
    @Query() _query: NoQuery,
    @Body() { paused, reason }: PutQueueDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<QueueDto> {
    const { queue, receipt } = await this.queues.put(caller, name, paused, reason, ifMatchOf(request));
    void reply.header('etag', queue.etag);
    if (receipt !== null) void reply.header('audit-receipt', receipt);
    return queueDto(queue);
  }
}
