/** An id in a path: a TypeID or a UUID becomes the UUID; what is neither names nothing, which is a 404. */
import type { PipeTransform } from '@nestjs/common';
import { decodeId, type IdPrefix } from '../../kernel/ids.js';
import { Problem } from '../../kernel/problems.js';

export class IdPipe implements PipeTransform<string, string> {
  constructor(private readonly prefix: IdPrefix) {}

  transform(text: string): string {
    const id = decodeId(this.prefix, text);
    if (id === undefined) throw new Problem('not_found', 'there is no such resource');
    return id;
  }
}
