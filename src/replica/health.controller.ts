/** What balancers and scrapers ask: alive, ready, and the numbers. */
import { Controller, Get, Header, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Open } from '../platform/http/open.js';
import { Platform } from '../platform/platform.js';
import { ReadinessService } from './readiness.service.js';

@Controller()
export class HealthController {
  constructor(
    private readonly readiness: ReadinessService,
    private readonly platform: Platform,
  ) {}

  /** 200 while the process lives; says nothing about the database. */
  @Open()
  @Get('healthz')
  @Header('cache-control', 'no-store')
  healthz(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** 200 when this replica should get requests, else 503 that names each failing check. */
  @Open()
  @Get('readyz')
  @Header('cache-control', 'no-store')
  async readyz(@Res() reply: FastifyReply): Promise<void> {
    const { ready, checks } = await this.readiness.check();
    await reply.status(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', checks });
  }

  /** Prometheus text. Any token opens it here; `CAPSTAN_METRICS_PORT` serves it without. */
  @Get('metrics')
  async metrics(@Res() reply: FastifyReply): Promise<void> {
    const { metrics } = this.platform;
    await reply.header('content-type', metrics.contentType).send(await metrics.metrics());
  }
}
