/** The audit chain: its routes, and what this process knows of it. */
import { Module } from '@nestjs/common';
import { Platform } from '../platform/platform.js';
import { AuditController } from './audit.controller.js';
import { AuditService } from './audit.service.js';
import { BundleController } from './bundle.controller.js';
import { BundleService } from './bundle.service.js';
import { registerChainMetrics } from './chain.metrics.js';
import { ChainKnowledge } from './chain-knowledge.js';
import { EntriesController } from './entries.controller.js';
import { EntriesService } from './entries.service.js';
import { KeyController } from './key.controller.js';
import { KeyService } from './key.service.js';
import { RecheckLoop } from './recheck.loop.js';

@Module({
  controllers: [AuditController, EntriesController, KeyController, BundleController],
  providers: [
    {
      provide: AuditService,
      inject: [Platform],
      useFactory: ({ pools, log }: Platform) => new AuditService(pools.read, new ChainKnowledge(log)),
    },
    {
      provide: RecheckLoop,
      inject: [AuditService, Platform],
      useFactory: ({ knowledge, anchors }: AuditService, { pools, metrics, timing }: Platform) => {
        registerChainMetrics(metrics, knowledge);
        return new RecheckLoop(pools.read, knowledge, anchors, timing);
      },
    },
    {
      provide: EntriesService,
      inject: [AuditService, Platform],
      useFactory: (audit: AuditService, { pools }: Platform) => new EntriesService(pools.read, audit),
    },
    {
      provide: KeyService,
      inject: [AuditService, Platform],
      useFactory: (audit: AuditService, { pools, log }: Platform) => new KeyService(audit, pools, log),
    },
    {
      provide: BundleService,
      inject: [AuditService, KeyService, Platform],
      useFactory: (audit: AuditService, keys: KeyService, { pools, log }: Platform) =>
        new BundleService(audit, keys, pools, log),
    },
  ],
  exports: [AuditService],
})
export class AuditModule {}
