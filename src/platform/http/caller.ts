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
  /** Whether it acts for the installation too: its own chain, its signing key, its workers. */
  readonly isInstallationAdmin: boolean;
}

const callers = new WeakMap<FastifyRequest, RequestCaller>();

/** For the guard alone: from here on the request has this caller. */
export function rememberCaller(request: FastifyRequest, caller: RequestCaller): void {
  callers.set(request, caller);
}

/** The caller of a request that passed the guard; `undefined` on an open route. */
export function callerOf(request: FastifyRequest): RequestCaller | undefined {
  return callers.get(request);
}

/** Parameter of a handler: the caller of a request that passed the guard. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): RequestCaller => {
  const caller = callerOf(context.switchToHttp().getRequest<FastifyRequest>());
  if (!caller) throw new Bug('an open route asked who its caller is');
  return caller;
});
