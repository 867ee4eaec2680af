/** The audit chain's verification, and its route. */
import { Module } from '@nestjs/common';
import { Platform } from '../platform/platform.js';
import { AuditController } from './audit.controller.js';
import { AuditService } from './audit.service.js';

@Module({
  controllers: [AuditController],
  providers: [
    { provide: AuditService, inject: [Platform], useFactory: ({ pools }: Platform) => new AuditService(pools.read) },
  ],
  exports: [AuditService],
})
export class AuditModule {}
