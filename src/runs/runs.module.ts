/** Runs and workers as callers see them. */
import { Module } from '@nestjs/common';
import { Platform } from '../platform/platform.js';
import { OutputController } from './output.controller.js';
import { OutputService } from './output.service.js';
import { RunMetrics } from './run.metrics.js';
import { RunMetricsModule } from './run-metrics.module.js';
import { RunsController } from './runs.controller.js';
import { RunsService } from './runs.service.js';
import { WorkersController } from './workers.controller.js';
import { WorkersService } from './workers.service.js';

@Module({
  imports: [RunMetricsModule],
  controllers: [RunsController, OutputController, WorkersController],
  providers: [
    {
      provide: RunsService,
      inject: [Platform, RunMetrics],
      useFactory: (platform: Platform, metrics: RunMetrics) => new RunsService(platform, metrics),
    },
    {
      provide: OutputService,
      inject: [Platform],
      useFactory: ({ pools }: Platform) => new OutputService(pools.read),
    },
    {
      provide: WorkersService,
      inject: [Platform],
      useFactory: ({ pools }: Platform) => new WorkersService(pools.read),
    },
  ],
  exports: [RunsService],
})
export class RunsModule {}
