/** `GET /v1/runs/{id}/events`: what happened to a run, and what its tool reported. */
import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { IdPipe } from '../platform/http/id.pipe.js';
import { DEFAULT_LIMIT, linkNext } from '../platform/http/page.js';
import { EventListQuery, EventPageDto } from './event.dto.js';
import { eventCursorOf, eventPlaceOf } from './event-cursor.rules.js';
import { EventsService } from './events.service.js';
import { BEGINNING } from './place.rules.js';
import { RUN_PARAM } from './run.dto.js';
import { RunsService } from './runs.service.js';

@Documented((api) => api.ApiTags('runs'))
@Controller('v1/runs')
export class EventsController {
  constructor(
    private readonly runs: RunsService,
    private readonly events: EventsService,
  ) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'listRunEvents',
      summary: "List a run's events, oldest first",
      description:
        'In the order of `seq`. `run.claimed` and `run.started` tell of the latest claim and have no `seq`: they stand ' +
        'where their instant puts them, each once in a whole walk.',
    }),
  )
  @Documented((api) => api.ApiParam(RUN_PARAM))
  @Documented((api) => api.ApiOkResponse({ type: EventPageDto, description: 'A page.' }))
  @Get(':id/events')
  async list(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', new IdPipe('run')) id: string,
    @Query() query: EventListQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EventPageDto> {
    const run = await this.runs.get(caller, id);
    const after = eventPlaceOf(query.cursor) ?? BEGINNING;
    const limit = query.limit === undefined ? DEFAULT_LIMIT : Number(query.limit);
    const { events, next } = await this.events.list(run, after, limit);
    return { items: events, next: next ? linkNext(request, reply, eventCursorOf(next)) : null };
  }
}
