/** Who may ask: the service, and the guard that stands before every route of the process. */
import { Module } from '@nestjs/common';
import { APP_GUARD, Reflector } from '@nestjs/core';
import { Platform } from '../platform/platform.js';
import { AccessGuard } from './access.guard.js';
import { AccessService } from './access.service.js';

@Module({
  providers: [
    {
      provide: AccessService,
      inject: [Platform],
      useFactory: ({ pools, timing }: Platform) => new AccessService(pools.access, timing),
    },
    {
      provide: APP_GUARD,
      inject: [AccessService, Reflector],
      useFactory: (access: AccessService, reflector: Reflector) => new AccessGuard(access, reflector),
    },
  ],
  exports: [AccessService],
})
export class AccessModule {}
