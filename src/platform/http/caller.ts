/** Who sent a request, as the guard found out: kept beside the request, so that every layer above may ask. */
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Bug } from '../../kernel/problems.js';

/** A caller with known credentials, and the organization it acts for. */
export interface RequestCaller {
  readonly organizationId: string;
  /** Id of the organization's audit chain. */
  readonly chain: string;
  /** `id` is a TypeID. */
  readonly principal: { readonly type: 'token'; readonly id: string; readonly name: string };
}

const callers = new WeakMap<FastifyRequest, RequestCaller>();

/** For the guard alone: from here on the request has this caller. */
export function rememberCaller(request: FastifyRequest, caller: RequestCaller): void {
  callers.set(request, caller);
}

/** Parameter of a handler: the caller of a request that passed the guard. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): RequestCaller => {
  const caller = callers.get(context.switchToHttp().getRequest<FastifyRequest>());
  if (!caller) throw new Bug('an open route asked who its caller is');
  return caller;
});
