/** This process as one of many. */
import { Module } from '@nestjs/common';
import { ThisReplica } from '../platform/http/this-replica.js';
import { Platform } from '../platform/platform.js';
import { RunMetrics } from '../runs/run.metrics.js';
import { RunMetricsModule } from '../runs/run-metrics.module.js';
import { HealthController } from './health.controller.js';
import { ReadinessService } from './readiness.service.js';
import { Replica } from './replica.service.js';

@Module({
  imports: [RunMetricsModule],
  providers: [
    {
      provide: ReadinessService,
      useFactory: (platform: Platform) => new ReadinessService(platform),
      inject: [Platform],
    },
    {
      provide: Replica,
      useFactory: (platform: Platform, readiness: ReadinessService, metrics: RunMetrics, self: ThisReplica) =>
        new Replica(platform, readiness, metrics, self),
      inject: [Platform, ReadinessService, RunMetrics, ThisReplica],
    },
  ],
  controllers: [HealthController],
  exports: [Replica, ReadinessService],
})
export class ReplicaModule {}
