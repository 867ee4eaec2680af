/** The composition root: the only file that imports every feature module. */
import { type DynamicModule, Module } from '@nestjs/common';
import { AccessModule } from './access/access.module.js';
import { AuditModule } from './audit/audit.module.js';
import type { Platform } from './platform/platform.js';
import { PlatformModule } from './platform/platform.module.js';
import { ReplicaModule } from './replica/replica.module.js';
import { RunsModule } from './runs/runs.module.js';

@Module({})
export class AppModule {
  /** A replica: the whole surface. */
  static forRoot(platform: Platform): DynamicModule {
    return {
      module: AppModule,
      imports: [PlatformModule.forRoot(platform), AuditModule, AccessModule, RunsModule, ReplicaModule],
    };
  }

  /** A worker: it executes, and answers for its own health only. */
  static forWorker(platform: Platform): DynamicModule {
    return { module: AppModule, imports: [PlatformModule.forRoot(platform), AccessModule, ReplicaModule] };
  }
}
