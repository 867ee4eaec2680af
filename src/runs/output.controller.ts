/** `GET /v1/runs/{id}/output`: what the tool wrote, byte for byte, as text that no browser interprets. */
import { Readable } from 'node:stream';
import { Controller, Get, Headers, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../kernel/problems.js';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { IdPipe } from '../platform/http/id.pipe.js';
import { Refuses } from '../platform/http/refuses.js';
import { type OutputPick, outputPickOf } from './output.rules.js';
import { OutputService } from './output.service.js';
import { OutputQuery, STREAM_OF } from './output-query.dto.js';
import { RUN_PARAM } from './run.dto.js';
import { RunsService } from './runs.service.js';

@Documented((api) => api.ApiTags('runs'))
@Controller('v1/runs')
export class OutputController {
  constructor(
    private readonly runs: RunsService,
    private readonly output: OutputService,
  ) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'getRunOutput',
      summary: "Read a run's output",
      description:
        'The kept bytes, unchanged, both streams in order of arrival unless one is named. All there is by now: ask ' +
        'again with `Range: bytes=N-` for what came after the first N bytes (416 when nothing did), or follow the run ' +
        'with its `/stream`. Of an output that outgrew CAPSTAN_OUTPUT_LIMIT the first half is kept and the latest; a line ' +
        'in between names what is missing, and the header `Capstan-Output-Cut` how many bytes that are. Offsets count that ' +
        'line too: they hold as long as the header stays the same. A `Range` is ignored beside `tail`, and while a run goes on whose output may be dropped before it is read.',
    }),
  )
  @Documented((api) => api.ApiParam(RUN_PARAM))
  @Documented((api) =>
    api.ApiHeader({
      name: 'Range',
      required: false,
      description: 'One range of bytes.',
      schema: { type: 'string', example: 'bytes=0-' },
    }),
  )
  @Documented((api) => api.ApiProduces('text/plain'))
  @Documented((api) => api.ApiOkResponse({ schema: { type: 'string' }, description: 'All of it.' }))
  @Documented((api) => api.ApiResponse({ status: 206, schema: { type: 'string' }, description: 'The part asked for.' }))
  @Refuses('range_not_satisfiable')
  @Get(':id/output')
  async read(
    @CurrentCaller() caller: RequestCaller,
    @Param('id', new IdPipe('run')) id: string,
    @Query() query: OutputQuery,
    @Headers('range') range: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const run = await this.runs.get(caller, id);
    const stream = query.stream === undefined ? undefined : STREAM_OF[query.stream];
    const isHead = request.method === 'HEAD';
    // A range is of a GET alone (RFC 9110 §14.2).
    const pick: OutputPick =
      query.tail === undefined ? outputPickOf(isHead ? undefined : range) : { pick: 'tail', lines: Number(query.tail) };
    const part = await this.output.open(run, stream, pick);
    void reply.header('capstan-output-cut', part.missing);
    if (!('content' in part)) {
      void reply.header('content-range', `bytes */${part.total}`);
      throw new Problem('range_not_satisfiable', `the output has ${part.total} bytes by now`);
    }
    const { total, from, to } = part;
    if (part.isExact && (pick.pick === 'range' || pick.pick === 'suffix')) {
      void reply.status(206).header('content-range', `bytes ${from}-${to - 1}/${total}`);
    }
    void reply
      .header('content-type', 'text/plain; charset=utf-8')
      .header('accept-ranges', part.isExact ? 'bytes' : 'none');
    if (part.isExact) void reply.header('content-length', to - from);
    const content = isHead ? [] : part.content();
    await reply.send(Readable.from(content, { objectMode: false }));
  }
}
