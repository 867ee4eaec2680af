/** Decodes every body and query into the DTO that its handler declares. */
import { type ArgumentMetadata, Injectable, type PipeTransform } from '@nestjs/common';
import { findUnstorable } from '../../kernel/json.js';
import { invalidInput } from '../../kernel/problems.js';
import { decodeInput } from './input.js';

@Injectable()
export class InputPipe implements PipeTransform {
  transform(value: unknown, { type, metatype }: ArgumentMetadata): unknown {
    if ((type !== 'body' && type !== 'query') || metatype === undefined || metatype === Object) return value;
    const members = { ...(value as Record<string, unknown>) };
    if (type === 'body') return decodeInput(metatype, members, '/');
    const fault = findUnstorable(members);
    if (fault) throw invalidInput([{ pointer: `?${fault.pointer.slice(1)}`, message: fault.message }]);
    return decodeInput(metatype, members, '?');
  }
}

/** The query of a route that takes none: any parameter is refused. */
export class NoQuery {}
