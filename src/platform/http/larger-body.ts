/** Routes that take more than the common limit of a body: it is told Fastify when the route is registered. */
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';

const LARGER_BODY_BYTES = 16 * 1024 * 1024;

/** On a handler: bodies of up to 16 MiB. */
export function LargerBody(): MethodDecorator {
  return RouteConfig({ bodyLimit: LARGER_BODY_BYTES });
}

/** Must be called before the first route is registered. */
export function largerBodies(instance: FastifyInstance): void {
  instance.addHook('onRoute', (route) => {
    const config: object = route.config ?? {};
    if ('bodyLimit' in config && typeof config.bodyLimit === 'number') route.bodyLimit = config.bodyLimit;
  });
}
