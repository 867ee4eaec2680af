/** `/v1/workers`: who executes runs. */
import { Controller, Get, Query } from '@nestjs/common';
import { Documented } from '../platform/http/document.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { WorkerListDto, workerDto } from './worker.dto.js';
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
  @Documented((api) => api.ApiOkResponse({ type: WorkerListDto }))
  @Get()
  async list(@Query() _query: NoQuery): Promise<WorkerListDto> {
    return { items: (await this.workers.list()).map(workerDto), next: null };
  }
}
