/** `GET /v1/runs/{id}/stream`: a run as it happens, as server-sent events, from any replica. */
import type { ServerResponse } from 'node:http';
import { Controller, Get, Headers, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../kernel/problems.js';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { IdPipe } from '../platform/http/id.pipe.js';
import { Refuses } from '../platform/http/refuses.js';
import { OutputQuery, STREAM_OF } from './output-query.dto.js';
import { placeOfId } from './place.rules.js';
import { RUN_PARAM } from './run.dto.js';
import { RunsService } from './runs.service.js';
import { type StreamFrom, StreamService } from './stream.service.js';

@Documented((api) => api.ApiTags('runs'))
@Controller('v1/runs')
export class StreamController {
  constructor(
    private readonly runs: RunsService,
    private readonly streams: StreamService,
  ) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'streamRun',
      summary: 'Follow a run',
      description:
        'Server-sent events. `output`: `{ fence, batch, stream, at, data }`, data in base64. `event`: an item of ' +
        '`/events`. `cut`: `{ fence, after, next, bytes }`, output that was dropped between two batches; bytes of both ' +
        'streams, or null. `end`: the run, as the last message; then the connection is closed. A connection that was ' +
        'lost before that goes on at any replica behind the id in `Last-Event-ID`, without gap or double. A comment ' +
        'comes every 15 s. Who takes nothing for 60 s is cut off. At most 500 streams of a caller (429) and 1,000 in ' +
        'all (503) per replica. With `stream` and `tail` output alone is left out: all events come; `Last-Event-ID` wins ' +
        'over `tail`.',
    }),
  )
  @Documented((api) => api.ApiParam(RUN_PARAM))
  @Documented((api) =>
    api.ApiHeader({
      name: 'Last-Event-ID',
      required: false,
      schema: { type: 'string', example: '3.1.12' },
      description: '`seq.fence.batch`: the id of the last message that was taken.',
    }),
  )
  @Documented((api) => api.ApiProduces('text/event-stream'))
  @Documented((api) => api.ApiOkResponse({ schema: { type: 'string' }, description: 'The messages, up to `end`.' }))
  @Refuses('malformed_request', 'too_many_streams')
  @Get(':id/stream')
  async stream(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', new IdPipe('run')) id: string,
    @Query() query: OutputQuery,
    @Headers('last-event-id') lastEventId: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const from = beginningOf(query, lastEventId);
    if (request.method === 'HEAD') {
      await this.runs.get(caller, id);
      begin(reply).end();
      return;
    }
    const stream = query.stream === undefined ? undefined : STREAM_OF[query.stream];
    const open = await this.streams.open(caller, id, from, stream);
    await open.to(begin(reply));
  }
}

function beginningOf({ tail }: OutputQuery, lastEventId: string | undefined): StreamFrom {
  if (lastEventId) {
    const place = placeOfId(lastEventId);
    if (place) return { from: 'place', place };
    throw new Problem('malformed_request', 'Last-Event-ID must be an id that this stream gave, such as 3.1.12');
  }
  return tail === undefined ? { from: 'beginning' } : { from: 'tail', lines: Number(tail) };
}

/** From here on the connection is ours, and no problem can be answered any more. */
function begin(reply: FastifyReply): ServerResponse {
  reply.hijack();
  const { raw } = reply;
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) raw.setHeader(name, value);
  }
  // A proxy that gathers the answer would keep it until the run ends.
  return raw.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
}
