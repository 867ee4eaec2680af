/** `GET /v1/audit/verify`: the caller's own chain, recomputed. */
import { Controller, Get, Query } from '@nestjs/common';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { VerificationDto } from './audit.dto.js';
import { AuditService } from './audit.service.js';

@Documented((api) => api.ApiTags('audit'))
@Controller('v1/audit')
export class AuditController {
  constructor(private readonly audit: AuditService) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'verifyAudit',
      summary: "Recompute the organization's audit chain",
      description: 'A broken chain is an answer, not an error: 200 with `ok: false`, `brokenAt` and `check`.',
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: VerificationDto }))
  @Get('verify')
  verify(@CurrentCaller() caller: RequestCaller, @Query() _query: NoQuery): Promise<VerificationDto> {
    return this.audit.verify(caller.chain);
  }
}
