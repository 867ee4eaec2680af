/** Marks what answers without credentials. Everything that doesn't say so asks for a token. */
import { applyDecorators, SetMetadata } from '@nestjs/common';
import { Documented } from './document.js';

export const OPEN = 'capstan:open';

/** On a handler: no token is asked for. */
export function Open(): MethodDecorator {
  return applyDecorators(
    SetMetadata(OPEN, true),
    Documented((api) => api.ApiExtension('x-open', true)),
  );
}
