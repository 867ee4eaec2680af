/** This process as one of many. */
import { Module, type OnModuleDestroy } from '@nestjs/common';
import { ThisReplica } from '../platform/http/this-replica.js';
import { Traffic } from '../platform/http/traffic.js';
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
      useFactory: (platform: Platform, traffic: Traffic) => new ReadinessService(platform, traffic),
      inject: [Platform, Traffic],
    },
    {
      provide: Replica,
      useFactory: (platform: Platform, metrics: RunMetrics, self: ThisReplica, readiness: ReadinessService) =>
        new Replica(platform, metrics, self, readiness),
      inject: [Platform, RunMetrics, ThisReplica, ReadinessService],
    },
  ],
  controllers: [HealthController],
  exports: [Replica, ReadinessService],
})
export class ReplicaModule implements OnModuleDestroy {
  constructor(private readonly readiness: ReadinessService) {}

  onModuleDestroy(): void {
    this.readiness.stop();
  }
}
