/** Asks every request for a bearer token, unless its route says `@Open()`: what says nothing is closed. */
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../kernel/problems.js';
import { rememberCaller } from '../platform/http/caller.js';
import { OPEN } from '../platform/http/open.js';
import { AccessService } from './access.service.js';

@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly access: AccessService,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const places = [context.getHandler(), context.getClass()];
    if (this.reflector.getAllAndOverride<boolean | undefined>(OPEN, places)) return true;
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const token = bearerToken(request.headers.authorization);
    const caller = token === undefined ? undefined : await this.access.authenticate(token);
    if (!caller) {
      void http.getResponse<FastifyReply>().header('www-authenticate', 'Bearer realm="capstan"');
      throw new Problem('unauthorized', 'send a token that this installation knows: `Authorization: Bearer <token>`');
    }
    rememberCaller(request, caller);
    return true;
  }
}

/** The token in an `Authorization` header: 1 to 255 visible ASCII characters. */
function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]{1,255}) *$/i.exec(header ?? '')?.[1];
}
