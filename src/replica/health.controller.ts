/** What balancers and scrapers ask: alive, ready, and the numbers. */
import { Controller, Get, Header, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Documented } from '../platform/http/document.js';
import { Open } from '../platform/http/permission.js';
import { Platform } from '../platform/platform.js';
import { HealthDto, ReadinessDto } from './health.dto.js';
import { ReadinessService } from './readiness.service.js';

@Documented((api) => api.ApiTags('installation'))
@Controller()
export class HealthController {
  constructor(
    private readonly readiness: ReadinessService,
    private readonly platform: Platform,
  ) {}

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'healthz',
      summary: 'Is the process alive',
      description: 'Says nothing about the database: who restarts processes asks here.',
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: HealthDto, description: 'It lives.' }))
  @Open()
  @Get('healthz')
  @Header('cache-control', 'no-store')
  healthz(): HealthDto {
    return { status: 'ok' };
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'readyz',
      summary: 'Should this replica get requests',
      description: 'Whether it does what it is for right now, each check by its name: who sends requests asks here.',
    }),
  )
  @Documented((api) => api.ApiOkResponse({ type: ReadinessDto, description: 'It should.' }))
  @Documented((api) => api.ApiServiceUnavailableResponse({ type: ReadinessDto, description: 'Not now: see `checks`.' }))
  @Open()
  @Get('readyz')
  @Header('cache-control', 'no-store')
  async readyz(@Res() reply: FastifyReply): Promise<void> {
    const { ready, checks } = await this.readiness.check();
    const answer: ReadinessDto = { status: ready ? 'ready' : 'not ready', checks: { ...checks } };
    await reply.status(ready ? 200 : 503).send(answer);
  }

  @Documented((api) =>
    api.ApiOperation({
      operationId: 'metrics',
      summary: 'Numbers for Prometheus',
      description: 'Any token opens it here; `CAPSTAN_METRICS_PORT` serves it without.',
    }),
  )
  @Documented((api) => api.ApiProduces('text/plain'))
  @Documented((api) => api.ApiOkResponse({ schema: { type: 'string' }, description: 'Text of Prometheus.' }))
  @Get('metrics')
  async metrics(@Res() reply: FastifyReply): Promise<void> {
    const { metrics } = this.platform;
    await reply.header('content-type', metrics.contentType).send(await metrics.metrics());
  }
}
