/** `GET /v1/audit`: what was recorded; `/receipts/{receipt}`: whether it still is. */
import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { linkNext } from '../platform/http/page.js';
import { AuditService } from './audit.service.js';
import { EntriesService } from './entries.service.js';
import { EntryDto, EntryListQuery, EntryPageDto, entrySearch, ReceiptDto } from './entry.dto.js';
import { entryOf } from './entry.js';
import { entryCursorOf } from './entry-cursor.rules.js';

@Documented((api) => api.ApiTags('audit'))
@Documented((api) => api.ApiExtraModels(EntryDto))
@Controller('v1/audit')
export class EntriesController {
  constructor(
    private readonly audit: AuditService,
    private readonly entries: EntriesService,
  ) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'listAudit',
      summary: 'List audit entries, newest first',
      description:
        'The next page is named by `next` and a `Link` header. A page may hold fewer entries than asked for, even none, ' +
        'while `next` leads on: a search by `action` or `principal` alone looks at entries one after the other, for a ' +
        'second at most on one page.',
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: EntryPageDto, description: 'A page.' }))
  @Get()
  async list(
    @CurrentCaller() caller: RequestCaller,
    @Query() query: EntryListQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EntryPageDto> {
    const chain = await this.audit.chainFor(caller, query.chain);
    const { entries, below } = await this.entries.list(chain, entrySearch(query, chain));
    const next = below === undefined ? null : linkNext(request, reply, entryCursorOf({ chain, below }));
    return { items: entries.map(entryOf), next };
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'checkAuditReceipt',
      summary: 'Ask whether an entry still stands',
      description:
        'For receipts of the own organization and of the installation, whose entry only its admins see. Every answer ' +
        'to a change bears one in `Audit-Receipt`: who keeps it finds out when the end of the chain is cut off.',
    }),
  )
  @Documented((api) => api.ApiParam({ name: 'receipt', description: 'As an `Audit-Receipt` said it.' }))
  @Documented((api) => api.ApiOkResponse({ type: ReceiptDto, description: 'Whether it holds.' }))
  @Get('receipts/:receipt')
  receipt(
    @CurrentCaller() caller: RequestCaller,
    @Param('receipt') receipt: string,
    @Query() _query: NoQuery,
  ): Promise<ReceiptDto> {
    return this.entries.receipt(caller, receipt);
  }
}
