/** `/v1/workers`: who executes runs. */
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Documented } from '../platform/http/document.js';
import { nextPage, pageOf } from '../platform/http/page.js';
import { WorkerListQuery, WorkerPageDto, workerDto } from './worker.dto.js';
import { WorkersService } from './workers.service.js';

@Documented((api) => api.ApiTags('workers'))
@Controller('v1/workers')
export class WorkersController {
  constructor(private readonly workers: WorkersService) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'listWorkers',
      summary: 'Workers that live, and those that ended within a day, newest first',
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: WorkerPageDto }))
  @Get()
  async list(
    @Query() query: WorkerListQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<WorkerPageDto> {
    const { after, limit } = pageOf('wrk', query);
    const { workers, more } = await this.workers.list(after, limit);
    const last = workers.at(-1);
    const place = more && last ? { at: last.startedAt, id: last.id } : undefined;
    return { items: workers.map(workerDto), next: nextPage('wrk', request, reply, place) };
  }
}
