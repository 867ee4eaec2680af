/** Whether a value is what a schema of the OpenAPI document says. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Document, Schema } from './openapi-operations.js';

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

const compiled = new WeakMap<Schema, ValidateFunction>();

/** What is wrong with a value, each with its place; nothing when it fits. */
export function validatorOf({ components }: Document, schema: Schema): (value: unknown) => string[] {
  // References begin at the root of the document.
  const validate = compiled.get(schema) ?? ajv().compile({ ...schema, components });
  compiled.set(schema, validate);
  return (value) => (validate(value) ? [] : (validate.errors ?? []).map((e) => `${e.instancePath} ${e.message}`));
}

function ajv(): Ajv2020 {
  return new Ajv2020({ strict: false, allErrors: true, formats: { 'date-time': INSTANT, uri: /^[a-z]+:/ } });
}
