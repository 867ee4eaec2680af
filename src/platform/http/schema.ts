/**
 * Shapes that many notes of the OpenAPI document share. The generator's options follow OpenAPI 3.0; `nullable` is
 * rewritten as 3.1 says it (a list of types) when the document is built.
 */
import type { ApiPropertyOptions } from '@nestjs/swagger';

/** `type` or null. */
export function nullable(
  type: 'string' | 'integer' | 'object' | 'array',
  rest: ApiPropertyOptions = {},
): ApiPropertyOptions {
  return { type, nullable: true, ...rest } as unknown as ApiPropertyOptions;
}

/** Null, or one of the shape that `ref` names. */
export function orNull(ref: string): ApiPropertyOptions {
  return { oneOf: [{ $ref: ref }, { type: 'null' }] } as unknown as ApiPropertyOptions;
}

/** An object of strings that may be left out. */
export function optionalStringMap(rest: {
  readonly description: string;
  readonly maxProperties?: number;
}): ApiPropertyOptions {
  const map = { type: 'object', additionalProperties: { type: 'string' }, required: false, default: {}, ...rest };
  return map as unknown as ApiPropertyOptions;
}
