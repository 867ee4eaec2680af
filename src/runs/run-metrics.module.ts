/** The counters of runs: one set per process, for who serves callers and for who executes. */
import { Module } from '@nestjs/common';
import { Platform } from '../platform/platform.js';
import { RunMetrics } from './run.metrics.js';

@Module({
  providers: [
    {
      provide: RunMetrics,
      inject: [Platform],
      useFactory: ({ metrics, config }: Platform) => new RunMetrics(metrics, config.queues),
    },
  ],
  exports: [RunMetrics],
})
export class RunMetricsModule {}
