/**
 * Who may call a route, said once: the guard goes by it, and the OpenAPI document shows it as `x-permission`. A route that
 * says nothing asks for a token.
 */
import { applyDecorators, SetMetadata } from '@nestjs/common';
import { Documented } from './document.js';

/** `none`: anybody; `token`: any token; `installation`: a token that acts for the installation. */
export type Permission = 'none' | 'token' | 'installation';

/** Where a handler's permission is kept, and why others are refused. */
export const PERMISSION = 'capstan:permission';

export interface Permitted {
  readonly permission: Permission;
  /** The detail of a 403. */
  readonly why: string;
}

function permit(permission: Permission, why: string): MethodDecorator {
  const permitted: Permitted = { permission, why };
  return applyDecorators(
    SetMetadata(PERMISSION, permitted),
    Documented((api) => api.ApiExtension('x-permission', permission)),
  );
}

/** On a handler: no token is asked for. */
export function Open(): MethodDecorator {
  return permit('none', '');
}

/** On a handler: only tokens that act for the installation; others are answered 403, with this detail. */
export function InstallationOnly(why: string): MethodDecorator {
  return permit('installation', why);
}
