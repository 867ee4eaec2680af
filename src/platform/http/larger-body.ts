/**
 * Routes that take more than the common limit of a body, of callers who are known alone: a body is collected before the
 * guard sees its request, and what nobody is known to send is not.
 */
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const LARGER_BODY_BYTES = 16 * 1024 * 1024;

/** Who knows callers. */
export abstract class Doorkeeper {
  /** Throws what a caller is answered who isn't known. */
  abstract admit(request: FastifyRequest, reply: FastifyReply): Promise<void>;
}

/** On a handler: bodies of up to 16 MiB. */
export function LargerBody(): MethodDecorator {
  return RouteConfig({ bodyLimit: LARGER_BODY_BYTES });
}

/** Must be called before the first route is registered. */
export function largerBodies(
  instance: FastifyInstance,
  doorkeeper: Doorkeeper,
  refuse: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void,
): void {
  instance.addHook('onRoute', (route) => {
    const bodyLimit = bodyLimitOf(route.config);
    if (bodyLimit !== undefined) route.bodyLimit = bodyLimit;
  });
  instance.addHook('preParsing', (request, reply, payload, done) => {
    if (bodyLimitOf(request.routeOptions.config) === undefined) return done(null, payload);
    doorkeeper.admit(request, reply).then(
      () => done(null, payload),
      (error: unknown) => refuse(error, request, reply),
    );
  });
}

function bodyLimitOf(config: object | undefined): number | undefined {
  return config && 'bodyLimit' in config && typeof config.bodyLimit === 'number' ? config.bodyLimit : undefined;
}
