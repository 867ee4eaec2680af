/** `GET /v1/audit/verify`: a chain, recomputed; of a long one, with its progress. */
import type { ServerResponse } from 'node:http';
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { goneSignal, unlessGone } from '../platform/http/prefer.js';
import { rangeOf, VerificationDto, VerifyQuery } from './audit.dto.js';
import { AuditService } from './audit.service.js';
import { ProgressStream } from './progress-stream.js';
import type { Range } from './verification.js';

const EVENTS = 'text/event-stream';

@Documented((api) => api.ApiTags('audit'))
@Controller('v1/audit')
export class AuditController {
  constructor(private readonly audit: AuditService) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'verifyAudit',
      summary: 'Recompute an audit chain',
      description:
        'A broken chain is an answer, not an error: 200 with `ok: false`, `brokenAt` and `check`. Of a window, `entries` ' +
        'counts its own; what stands before it is taken for given, the head and the anchors are checked all the same. ' +
        'With `Accept: text/event-stream` the answer comes as events: `progress`, `{ verified, of }`, several times a ' +
        'second, and last `result`, this very object; without it, the verification failed and may be asked for again.',
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: VerificationDto, description: 'What was found.' }))
  @Get('verify')
  async verify(
    @CurrentCaller() caller: RequestCaller,
    @Query() query: VerifyQuery,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const chain = await this.audit.chainFor(caller, query.chain);
    const signal = goneSignal(reply);
    if (wantsEvents(request)) return this.tell(chain, rangeOf(query), reply, signal).catch(unlessGone(signal));
    const verification = await this.audit.verify(chain, rangeOf(query), { signal }).catch(unlessGone(signal));
    if (verification) await reply.send(verification);
  }

  private async tell(chain: string, range: Range, reply: FastifyReply, signal: AbortSignal): Promise<void> {
    const stream = new ProgressStream(() => begin(reply));
    try {
      stream.result(await this.audit.verify(chain, range, { signal, onProgress: (told) => stream.progress(told) }));
    } finally {
      stream.close();
    }
  }
}

/** From here on the connection is ours, and no problem can be answered any more. */
function begin(reply: FastifyReply): ServerResponse {
  reply.hijack();
  const { raw } = reply;
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) raw.setHeader(name, value);
  }
  // A proxy that gathers the answer would keep it until the end.
  return raw.writeHead(200, { 'content-type': EVENTS, 'x-accel-buffering': 'no' });
}

function wantsEvents({ headers, method }: FastifyRequest): boolean {
  return method === 'GET' && (headers.accept ?? '').split(',').some((type) => type.trim().split(';')[0] === EVENTS);
}
