/** `/v1/workers`: who executes runs, and who is taken out of service. */
import { Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { IdPipe } from '../platform/http/id.pipe.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { NoInput } from '../platform/http/json-body.guard.js';
import { nextPage, pageOf } from '../platform/http/page.js';
import { InstallationOnly } from '../platform/http/permission.js';
import { Records } from '../platform/http/records.js';
import { Refuses } from '../platform/http/refuses.js';
import { WorkerDto, WorkerListQuery, WorkerPageDto, workerDto } from './worker.dto.js';
import { type WorkerAnswer, WorkersService } from './workers.service.js';

const WORKER_ID = new IdPipe('wrk');
const WORKER_PARAM = { name: 'id', description: 'The worker: `wrk_…` or a UUID.' } as const;
const ADMINS = 'workers serve the whole installation: only its admins take them out of service';

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
  @Documented((api) => api.ApiOkResponse({ type: WorkerPageDto, description: 'A page.' }))
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

  @Documented((api) => api.ApiOperation({ operationId: 'getWorker', summary: 'Show a worker' }))
  @Documented((api) => api.ApiParam(WORKER_PARAM))
  @Documented((api) => api.ApiOkResponse({ type: WorkerDto, description: 'The worker.' }))
  @Get(':id')
  async show(@Param('id', WORKER_ID) id: string, @Query() _query: NoQuery): Promise<WorkerDto> {
    return workerDto(await this.workers.get(id));
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'drainWorker',
      summary: 'Take a worker out of service',
      description:
        'Idempotent. From the answer on it claims and starts nothing; what it runs goes on to its end, what it had ' +
        'claimed goes back. It lasts as long as this life of the process: started again, that is a new worker. A ' +
        'worker that is `stopped` or `lost` is answered 409. For admins of the installation; others are answered 403.',
    }),
  )
  @Documented((api) => api.ApiParam(WORKER_PARAM))
  @Documented((api) => api.ApiOkResponse({ type: WorkerDto, description: 'The worker is draining.' }))
  @InstallationOnly(ADMINS)
  @Records('worker.draining')
  @Refuses('worker_ended')
  @Post(':id/drain')
  @NoInput()
  @HttpCode(200)
  async drain(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', WORKER_ID) id: string,
    @Query() _query: NoQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<WorkerDto> {
    return answer(await this.workers.drain(caller, id), reply);
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'undrainWorker',
      summary: 'Put a drained worker back into service',
      description:
        'Idempotent. A worker that is `stopped` or `lost`, or whose process is stopping, is answered 409: that is not ' +
        'undone. For admins of the installation; others are answered 403.',
    }),
  )
  @Documented((api) => api.ApiParam(WORKER_PARAM))
  @Documented((api) => api.ApiOkResponse({ type: WorkerDto, description: 'The worker takes runs.' }))
  @InstallationOnly(ADMINS)
  @Records('worker.undrained')
  @Refuses('worker_ended', 'worker_stopping')
  @Post(':id/undrain')
  @NoInput()
  @HttpCode(200)
  async undrain(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', WORKER_ID) id: string,
    @Query() _query: NoQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<WorkerDto> {
    return answer(await this.workers.undrain(caller, id), reply);
  }
}

function answer({ worker, receipt }: WorkerAnswer, reply: FastifyReply): WorkerDto {
  if (receipt !== null) void reply.header('audit-receipt', receipt);
  return workerDto(worker);
}
