/**
 * Decodes the body of a request, behind the guard that knows callers and before any pipe: the bytes were only collected
 * until here, so a caller without credentials makes nobody parse anything. It is a guard of its own and no interceptor,
 * of which a single one takes every request of every route through observables (30 µs, measured).
 */
import { type CanActivate, type ExecutionContext, Injectable, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { invalidInput, Problem } from '../../kernel/problems.js';
import { type JsonObject, readJsonObject } from './json-body.js';

const NO_INPUT = 'capstan:no-input';

/** On a handler whose call has no input: an empty body, `{}` and no `Content-Type` are all fine, nothing else is. */
export function NoInput(): MethodDecorator {
  return SetMetadata(NO_INPUT, true);
}

@Injectable()
export class JsonBodyGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    if (['POST', 'PUT', 'PATCH'].includes(request.method)) {
      const takesInput = !this.reflector.get<boolean | undefined>(NO_INPUT, context.getHandler());
      request.body = takesInput ? readInput(request) : refuseInput(request);
    }
    return true;
  }
}

function readInput(request: FastifyRequest): JsonObject {
  requireJson(request.headers['content-type'], true);
  requireIdentity(request);
  return readJsonObject(bytesOf(request));
}

function refuseInput(request: FastifyRequest): JsonObject {
  const bytes = bytesOf(request);
  if (bytes.length === 0) return {};
  requireJson(request.headers['content-type'], false);
  requireIdentity(request);
  const members = Object.keys(readJsonObject(bytes));
  if (members.length > 0) throw invalidInput([{ pointer: '', message: 'this call takes no input' }]);
  return {};
}

/** What the content type parser collected; nothing when the request had no body at all. */
function bytesOf(request: FastifyRequest): Uint8Array {
  return request.body instanceof Uint8Array ? request.body : new Uint8Array();
}

function requireJson(contentType: string | undefined, isRequired: boolean): void {
  if (contentType === undefined && !isRequired) return;
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charsets = parameters.filter((parameter) => parameter.startsWith('charset='));
  const isUtf8 = charsets.every((charset) => /^charset="?utf-?8"?$/.test(charset));
  if (type === 'application/json' && isUtf8) return;
  throw new Problem('unsupported_media_type', 'send the body as `Content-Type: application/json`, in UTF-8');
}

/** A compressed body is never inflated: what it would become has no bound. */
function requireIdentity(request: FastifyRequest): void {
  const encoding = request.headers['content-encoding'];
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return;
  throw new Problem('unsupported_media_type', 'send the body without Content-Encoding');
}
