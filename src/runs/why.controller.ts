/** `GET /v1/runs/{id}/why`: what stands between a run and the next claim. */
import { Controller, Get, Param, Query } from '@nestjs/common';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { IdPipe } from '../platform/http/id.pipe.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { RUN_PARAM } from './run.dto.js';
import { WhyDto } from './why.dto.js';
import { WhyService } from './why.service.js';

@Documented((api) => api.ApiTags('runs'))
@Controller('v1/runs')
export class WhyController {
  constructor(private readonly service: WhyService) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'whyRun',
      summary: 'Why a run is not running',
      description:
        "The claim's own predicates: each that fails, with what would change it. No reasons: some worker with a free " +
        'slot takes the run with its next claim from the front of its queues, which is within about a second. Of a run ' +
        'that was taken or has ended it tells only that. A run with a `notBefore` becomes claimable up to 1.9 s after it.',
    }),
  )
  @Documented((api) => api.ApiParam(RUN_PARAM))
  @Documented((api) =>
    api.ApiOkResponse({ type: WhyDto, description: 'The reasons; none when the next claim takes it.' }),
  )
  @Get(':id/why')
  why(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', new IdPipe('run')) id: string,
    @Query() _query: NoQuery,
  ): Promise<WhyDto> {
    return this.service.ask(caller, id);
  }
}
