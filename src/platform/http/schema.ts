/** Shapes that many notes of the OpenAPI document share. OpenAPI 3.1: a nullable type is a list of types. */
import type { ApiPropertyOptions } from '@nestjs/swagger';

/** Always null. */
export function alwaysNull(description: string): ApiPropertyOptions {
  return { type: 'null', description } as unknown as ApiPropertyOptions;
}

/** `type` or null. The generator types its options after OpenAPI 3.0, which can't say so. */
export function nullable(type: 'string' | 'integer' | 'object', rest: ApiPropertyOptions = {}): ApiPropertyOptions {
  return { type: [type, 'null'], ...rest } as unknown as ApiPropertyOptions;
}

/** Null, or one of the shape that `ref` names. */
export function orNull(ref: string): ApiPropertyOptions {
  return { oneOf: [{ $ref: ref }, { type: 'null' }] } as unknown as ApiPropertyOptions;
}

/** An object of strings that may be left out. */
export function optionalStringMap(rest: { readonly description: string; readonly maxProperties?: number }): ApiPropertyOptions {
  const map = { type: 'object', additionalProperties: { type: 'string' }, required: false, default: {}, ...rest };
  return map as unknown as ApiPropertyOptions;
}
