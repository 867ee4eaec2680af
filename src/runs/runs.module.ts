/** Runs and workers as callers see them. */
import { Module, type OnModuleDestroy } from '@nestjs/common';
import { Platform } from '../platform/platform.js';
import { BatchService } from './batch.service.js';
import { BulkController } from './bulk.controller.js';
import { BulkService } from './bulk.service.js';
import { EndWatch } from './ends.service.js';
import { EventsController } from './events.controller.js';
import { EventsService } from './events.service.js';
import { OutputController } from './output.controller.js';
import { OutputService } from './output.service.js';
import { QueuesController } from './queues.controller.js';
import { QueuesService } from './queues.service.js';
import { RetentionController } from './retention.controller.js';
import { RetentionService } from './retention.service.js';
import { runDto } from './run.dto.js';
import { RunMetrics } from './run.metrics.js';
import { RunMetricsModule } from './run-metrics.module.js';
import { RunsController } from './runs.controller.js';
import { RunsService } from './runs.service.js';
import { StreamController } from './stream.controller.js';
import { StreamService } from './stream.service.js';
import { Turns } from './turns.js';
import { WhyController } from './why.controller.js';
import { WhyService } from './why.service.js';
import { WorkersController } from './workers.controller.js';
import { WorkersService } from './workers.service.js';

@Module({
  imports: [RunMetricsModule],
  controllers: [
    RunsController,
    BulkController,
    OutputController,
    StreamController,
    EventsController,
    WhyController,
    WorkersController,
    QueuesController,
    RetentionController,
  ],
  providers: [
    {
      provide: RunsService,
      inject: [Platform, RunMetrics],
      useFactory: (platform: Platform, metrics: RunMetrics) => new RunsService(platform, metrics),
    },
    {
      provide: Turns,
      inject: [Platform],
      useFactory: ({ timing }: Platform) => new Turns(timing),
    },
    {
      provide: BatchService,
      inject: [Platform, RunMetrics, Turns],
      useFactory: (platform: Platform, metrics: RunMetrics, turns: Turns) => new BatchService(platform, metrics, turns),
    },
    {
      provide: BulkService,
      inject: [Platform, RunMetrics, Turns, BatchService],
      useFactory: (platform: Platform, metrics: RunMetrics, turns: Turns, batches: BatchService) =>
        new BulkService(platform, metrics, turns, batches),
    },
    {
      provide: EndWatch,
      inject: [Platform],
      useFactory: (platform: Platform) => new EndWatch(platform),
    },
    {
      provide: OutputService,
      inject: [Platform],
      useFactory: ({ pools, config }: Platform) => new OutputService(pools.read, config.outputLimitBytes),
    },
    {
      provide: StreamService,
      inject: [Platform, OutputService, RunMetrics],
      useFactory: (platform: Platform, output: OutputService, metrics: RunMetrics) =>
        new StreamService(platform, output, metrics, runDto),
    },
    {
      provide: EventsService,
      inject: [Platform],
      useFactory: ({ pools }: Platform) => new EventsService(pools.read),
    },
    {
      provide: WhyService,
      inject: [Platform],
      useFactory: ({ pools }: Platform) => new WhyService(pools.read),
    },
    {
      provide: WorkersService,
      inject: [Platform],
      useFactory: ({ pools }: Platform) => new WorkersService(pools),
    },
    {
      provide: QueuesService,
      inject: [Platform],
      useFactory: (platform: Platform) => new QueuesService(platform),
    },
    {
      provide: RetentionService,
      inject: [Platform],
      useFactory: (platform: Platform) => new RetentionService(platform),
    },
  ],
  exports: [RunsService],
})
export class RunsModule implements OnModuleDestroy {
  constructor(
    private readonly ends: EndWatch,
    private readonly streams: StreamService,
  ) {}

  /** Before the server is closed: whoever waits is answered or sent elsewhere, and so closing waits for nobody. */
  onModuleDestroy(): void {
    this.ends.close();
    this.streams.close();
  }
}
