/** `/v1/audit/key`: which key signs the bundles of this installation, and which did before. */
import { Body, Controller, Get, HttpCode, Post, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { CurrentCaller, type RequestCaller } from '../platform/http/caller.js';
import { Documented } from '../platform/http/document.js';
import { NoQuery } from '../platform/http/input.pipe.js';
import { InstallationOnly } from '../platform/http/permission.js';
import { Records } from '../platform/http/records.js';
import { KeyDto, keyDto, NewKeyDto } from './key.dto.js';
import { KeyService } from './key.service.js';

@Documented((api) => api.ApiTags('audit'))
@Controller('v1/audit/key')
export class KeyController {
  constructor(private readonly keys: KeyService) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'getAuditKey',
      summary: 'Show the signing key of the installation, and those before it',
      description: "Public halves alone, as the installation's chain records them.",
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: KeyDto, description: 'The key, or nulls while there is none.' }))
  @Get()
  async show(@Query() _query: NoQuery): Promise<KeyDto> {
    return keyDto(await this.keys.standing());
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'rotateAuditKey',
      summary: 'Make another key the signing key of the installation',
      description:
        'Takes the public half alone: the private one goes to the replicas, by CAPSTAN_AUDIT_KEY. From the answer on ' +
        'replicas start with the new key; those that still hold another go on, and answer bundles 503 until they are ' +
        'started with it. For admins of the installation. Idempotent.',
    }),
  )
  @Documented((api) => api.ApiBody({ type: NewKeyDto }))
  @Documented((api) => api.ApiOkResponse({ type: KeyDto, description: 'It signs from now on.' }))
  @InstallationOnly('the signing key belongs to the installation: only its admins replace it')
  @Records('audit.key_rotated')
  @Post()
  @HttpCode(200)
  async rotate(
    @CurrentCaller() caller: RequestCaller,
    @Query() _query: NoQuery,
    @Body() { publicKey }: NewKeyDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<KeyDto> {
    const { standing, receipt } = await this.keys.rotate(caller, Buffer.from(publicKey, 'base64'));
    void reply.header('audit-receipt', receipt);
    return keyDto(standing);
  }
}
