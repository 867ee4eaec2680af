/** `GET /v1/audit/bundle`: a window of a chain as a signed document, byte for byte as it is to be kept. */
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../kernel/problems.js';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { goneSignal, unlessGone } from '../platform/http/prefer.js';
import { Records } from '../platform/http/records.js';
import { Refuses } from '../platform/http/refuses.js';
import { BundleQuery, bundleRequest } from './bundle.dto.js';
import { BundleService } from './bundle.service.js';

const MEDIA_TYPE = 'application/vnd.kordloom.loomseal+json';

@Documented((api) => api.ApiTags('audit'))
@Controller('v1/audit/bundle')
export class BundleController {
  constructor(private readonly bundles: BundleService) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'getAuditBundle',
      summary: 'Export entries as a signed bundle',
      description:
        'A LoomSeal 0.1 document that anybody checks offline (`capstan verify`), of up to 10,000 adjacent entries: all, ' +
        'or the newest 10,000, unless a range or a run is named. The export is an entry itself, written before the ' +
        'answer: `Audit-Receipt`. A wider range is answered 422 with the `windows` to ask for, a chain that does not ' +
        'verify 409 with `seq` and `check`, a replica without the current signing key 503.',
    }),
  )
  @Documented((api) =>
    api.ApiOkResponse({
      content: {
        [MEDIA_TYPE]: {
          schema: {
            type: 'object',
            required: ['loomseal', 'bundle_id', 'chain', 'claims'],
            additionalProperties: true,
            example: { loomseal: '0.1', bundle_id: 'lsb_01h455vb4pex5vsknk084sn02q', chain: {}, claims: [] },
          },
        },
      },
      description: 'The bundle.',
    }),
  )
  @Records('audit.exported')
  @Refuses('chain_broken', 'signing_key_missing', 'signing_key_superseded')
  @Get()
  async read(
    @CurrentCaller() caller: RequestCaller,
    @Query() query: BundleQuery,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    // Every answer is an export, which is an entry: what has no body must not make one.
    if (request.method === 'HEAD') {
      void reply.header('allow', 'GET');
      throw new Problem('method_not_allowed', 'a bundle is made when it is asked for: GET');
    }
    const signal = goneSignal(reply);
    const bundle = await this.bundles.make(caller, bundleRequest(query), signal).catch(unlessGone(signal));
    if (!bundle) return;
    const { bytes, fileName, receipt } = bundle;
    await reply
      .header('content-type', MEDIA_TYPE)
      .header('content-disposition', `attachment; filename="${fileName}"`)
      .header('audit-receipt', receipt)
      .send(bytes);
  }
}
