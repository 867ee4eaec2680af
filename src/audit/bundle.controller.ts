/** `GET /v1/audit/bundle`: a window of a chain as a signed document, byte for byte as it is to be kept. */
import { Controller, Get, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
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
  @Documented((api) => api.ApiProduces(MEDIA_TYPE))
  @Documented((api) => api.ApiOkResponse({ schema: { type: 'object' }, description: 'The bundle.' }))
  @Get()
  async read(
    @CurrentCaller() caller: RequestCaller,
    @Query() query: BundleQuery,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { bytes, fileName, receipt } = await this.bundles.make(caller, bundleRequest(query));
    await reply
      .header('content-type', MEDIA_TYPE)
      .header('content-disposition', `attachment; filename="${fileName}"`)
      .header('audit-receipt', receipt)
      .send(bytes);
  }
}
