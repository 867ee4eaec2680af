/** `/v1/retention`: how long the ended runs of the caller's organization are kept. */
import { Body, Controller, Get, Put, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseRetention } from '../kernel/retention.js';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { ifMatchOf } from '../platform/http/if-match.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { Records } from '../platform/http/records.js';
import { Refuses } from '../platform/http/refuses.js';
import { PutRetentionDto, RETENTION_ETAG_EXAMPLE, RetentionDto, retentionDto } from './retention.dto.js';
import { RetentionService } from './retention.service.js';

const ETAG = {
  ETag: { description: 'Its `etag`.', schema: { type: 'string', example: RETENTION_ETAG_EXAMPLE } },
} as const;

@Documented((api) => api.ApiTags('retention'))
@Controller('v1/retention')
export class RetentionController {
  constructor(private readonly retention: RetentionService) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'getRetention',
      summary: 'How long ended runs are kept',
      description: "Of the caller's organization.",
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: RetentionDto, description: 'So long.', headers: ETAG }))
  @Get()
  async get(
    @CurrentCaller() caller: RequestCaller,
    @Query() _query: NoQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RetentionDto> {
    const retention = await this.retention.get(caller);
    void reply.header('etag', retention.etag);
    return retentionDto(retention);
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'putRetention',
      summary: 'Say how long ended runs are kept',
      description:
        "Of the caller's organization. A run that ended longer ago is removed within minutes, with its events and output, " +
        'and its id then answers 404. Each removal is an entry of the audit chain, `runs.removed`, with counts and a ' +
        'digest; the entries of the runs stay. Idempotent: said again it changes nothing.',
    }),
  )
  @Documented((api) => api.ApiBody({ type: PutRetentionDto }))
  @Documented((api) =>
    api.ApiHeader({
      name: 'If-Match',
      required: false,
      description: 'An `etag` of the retention, or several: while it has none of them nothing is changed.',
      schema: { type: 'string', example: RETENTION_ETAG_EXAMPLE },
    }),
  )
  @Documented((api) =>
    api.ApiOkResponse({ type: RetentionDto, description: 'Ended runs are kept so long from now on.', headers: ETAG }),
  )
  @Refuses('precondition_failed')
  @Records('retention.changed')
  @Put()
  async put(
    @CurrentCaller() caller: RequestCaller,
    @Query() _query: NoQuery,
    @Body() { retention: said }: PutRetentionDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RetentionDto> {
    const ownMs = said === null ? null : (parseRetention(said) ?? null);
    const { retention, receipt } = await this.retention.put(caller, ownMs, ifMatchOf(request));
    void reply.header('etag', retention.etag);
    if (receipt !== null) void reply.header('audit-receipt', receipt);
    return retentionDto(retention);
  }
}
