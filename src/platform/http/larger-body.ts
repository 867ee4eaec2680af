/**
 * Routes that take more than the common limit of a body, of callers who are known alone: a body is collected before the
 * guard sees its request, and what nobody is known to send is not.
 */
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../../kernel/problems.js';

const LARGER_BODY_BYTES = 16 * 1024 * 1024;
/** Of all such requests together that are not answered yet. */
const MAX_COLLECTED_BYTES = 64 * 1024 * 1024;

/** Who knows callers. */
export abstract class Doorkeeper {
  /** Throws what a caller is answered who isn't known. */
  abstract admit(request: FastifyRequest, reply: FastifyReply): Promise<void>;

  /** A request is answered that it is forbidden, wherever that was decided. */
  abstract noteForbidden(request: FastifyRequest): void;
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
  let collectedBytes = 0;
  const admit = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    await doorkeeper.admit(request, reply);
    const bytes = Math.min(Number(request.headers['content-length'] ?? LARGER_BODY_BYTES), LARGER_BODY_BYTES);
    if (collectedBytes + bytes > MAX_COLLECTED_BYTES) {
      throw new Problem('unavailable', 'too many large requests at once: send it again', { retryAfterSeconds: 1 });
    }
    collectedBytes += bytes;
    reply.raw.once('close', () => {
      collectedBytes -= bytes;
    });
  };
  instance.addHook('onRoute', (route) => {
    const bodyLimit = bodyLimitOf(route.config);
    if (bodyLimit === undefined) return;
    route.bodyLimit = bodyLimit;
    // Nest's routes have no hooks of their own.
    route.preParsing = (request, reply, payload, done) => {
      admit(request, reply).then(
        () => done(null, payload),
        (error: unknown) => refuse(error, request, reply),
      );
    };
  });
}

function bodyLimitOf(config: object | undefined): number | undefined {
  return config && 'bodyLimit' in config && typeof config.bodyLimit === 'number' ? config.bodyLimit : undefined;
}
