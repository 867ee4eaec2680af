/** Who may ask: the service, the guard that stands before every route of the process, and who is refused. */
import { Module } from '@nestjs/common';
import { APP_GUARD, Reflector } from '@nestjs/core';
import { Doorkeeper } from '../platform/http/larger-body.js';
import { Platform } from '../platform/platform.js';
import { AccessGuard, Callers } from './access.guard.js';
import { AccessService } from './access.service.js';
import { RefusalsService } from './refusals.service.js';

@Module({
  providers: [
    {
      provide: AccessService,
      inject: [Platform],
      useFactory: ({ pools, timing }: Platform) => new AccessService(pools.access, timing),
    },
    {
      provide: RefusalsService,
      inject: [Platform],
      // Not the connections that callers are looked up with: a chain's lock may have to be waited for.
      useFactory: ({ pools, timing, log }: Platform) => new RefusalsService(pools.submit, timing, log),
    },
    {
      provide: Callers,
      inject: [AccessService, RefusalsService],
      useFactory: (access: AccessService, refusals: RefusalsService) => new Callers(access, refusals),
    },
    { provide: Doorkeeper, useExisting: Callers },
    {
      provide: APP_GUARD,
      inject: [Callers, RefusalsService, Reflector],
      useFactory: (callers: Callers, refusals: RefusalsService, reflector: Reflector) =>
        new AccessGuard(callers, refusals, reflector),
    },
  ],
  exports: [AccessService],
})
export class AccessModule {}
