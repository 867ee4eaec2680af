/** Marks what answers without credentials. Everything that doesn't say so asks for a token. */
import { SetMetadata } from '@nestjs/common';

export const OPEN = 'capstan:open';

/** On a controller or a handler: no token is asked for. */
export function Open(): ClassDecorator & MethodDecorator {
  return SetMetadata(OPEN, true);
}
