/** Hands the platform of this process to every module, with the routes that need nothing else. */
import { type DynamicModule, Module } from '@nestjs/common';
import { DocsController } from './http/docs.controller.js';
import { ThisReplica } from './http/this-replica.js';
import { Traffic } from './http/traffic.js';
import { VersionController } from './http/version.controller.js';
import { WelcomeController } from './http/welcome.controller.js';
import { Platform } from './platform.js';

@Module({})
export class PlatformModule {
  static forRoot(platform: Platform): DynamicModule {
    return {
      module: PlatformModule,
      global: true,
      providers: [
        { provide: Platform, useValue: platform },
        { provide: ThisReplica, useValue: new ThisReplica(platform.config.name) },
        { provide: Traffic, useValue: new Traffic() },
      ],
      controllers: [VersionController, WelcomeController, DocsController],
      exports: [Platform, ThisReplica, Traffic],
    };
  }
}
