/**
 * Asks every request for a bearer token, unless its route says `@Open()`, and for one of the installation where it says
 * `@InstallationOnly()`: what says nothing is closed. Whom it knows and refuses is remembered, and so is who gets in and
 * is refused further on.
 */
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../kernel/problems.js';
import { callerOf, type RequestCaller, rememberCaller } from '../platform/http/caller.js';
import { Doorkeeper } from '../platform/http/larger-body.js';
import { PERMISSION, type Permitted } from '../platform/http/permission.js';
import { AccessService } from './access.service.js';
import { type Refusal, RefusalsService } from './refusals.service.js';

/** Knows who sends a request by its bearer token. */
export class Callers extends Doorkeeper {
  constructor(
    private readonly access: AccessService,
    private readonly refusals: RefusalsService,
  ) {
    super();
  }

  /** Throws `unauthorized`. */
  async identify(request: FastifyRequest, reply: FastifyReply): Promise<RequestCaller> {
    const token = bearerToken(request.headers.authorization);
    const identity = token === undefined ? undefined : await this.access.identify(token);
    if (identity && !identity.isRevoked) return identity.caller;
    if (identity) this.refusals.note(identity.caller, refusalOf('unauthorized', request));
    void reply.header('www-authenticate', 'Bearer realm="capstan"');
    throw new Problem('unauthorized', 'send a token that this installation knows: `Authorization: Bearer <token>`');
  }

  async admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await this.identify(request, reply);
  }

  /** What is forbidden to who has passed the guard; whom the guard itself refuses it has noted. */
  noteForbidden(request: FastifyRequest): void {
    const caller = callerOf(request);
    if (caller) this.refusals.note(caller, refusalOf('forbidden', request));
  }
}

@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly callers: Callers,
    private readonly refusals: RefusalsService,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const permitted = this.reflector.get<Permitted | undefined>(PERMISSION, context.getHandler());
    if (permitted?.permission === 'none') return true;
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const caller = await this.callers.identify(request, http.getResponse<FastifyReply>());
    if (permitted?.permission === 'installation' && !caller.isInstallationAdmin) {
      this.refusals.note(caller, refusalOf('forbidden', request));
      throw new Problem('forbidden', permitted.why);
    }
    rememberCaller(request, caller);
    return true;
  }
}

/** What is remembered of a request: nothing that it bore, so that no secret gets into the chain with it. */
function refusalOf(code: Refusal['code'], { method, routeOptions }: FastifyRequest): Refusal {
  return { code, method, route: (routeOptions.url ?? '').replace(/:(\w+)/g, '{$1}') };
}

/** The token in an `Authorization` header: 1 to 255 visible ASCII characters. */
function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]{1,255}) *$/i.exec(header ?? '')?.[1];
}
