/** The operations of an OpenAPI document, as tests walk them. */

// biome-ignore lint/suspicious/noExplicitAny: a schema is whatever its author wrote
export type Schema = Record<string, any>;

interface Media {
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface Response {
  readonly description: string;
  readonly content?: Readonly<Record<string, Media>>;
  readonly headers?: Readonly<Record<string, unknown>>;
}

export interface Operation {
  readonly operationId: string;
  readonly summary?: string;
  readonly tags: readonly string[];
  readonly security?: readonly unknown[];
  readonly parameters: readonly { readonly in: string; readonly name: string; readonly description?: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response & { readonly $ref?: string }>>;
  readonly 'x-permission'?: string;
  readonly 'x-entry'?: readonly string[];
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
  };
}

export interface Route {
  /** In capitals. */
  readonly method: string;
  /** With its parameters in braces. */
  readonly template: string;
  /** Both, for a person. */
  readonly name: string;
  readonly operation: Operation;
}

export function routesOf({ paths }: Document): Route[] {
  return Object.entries(paths).flatMap(([template, operations]) =>
    Object.entries(operations).map(([verb, operation]) => {
      const method = verb.toUpperCase();
      return { method, template, name: `${method} ${template}`, operation };
    }),
  );
}

/** What is answered with a status; shared ones are looked up. */
export function responseOf({ components }: Document, { responses }: Operation, status: string): Response | undefined {
  const response = responses[status];
  return response?.$ref === undefined ? response : components.responses[response.$ref.split('/').at(-1) ?? ''];
}

/** All examples of what crosses the wire, by their names. */
export function examplesOf({ example, examples }: Media): (readonly [name: string, value: unknown])[] {
  if (examples) return Object.entries(examples).map(([name, { value }]) => [name, value]);
  return example === undefined ? [] : [['example', example]];
}

/** A schema's own, or that which it refers to. */
export function resolved(schema: Schema, { components }: Document): Schema {
  if (typeof schema.$ref !== 'string') return schema;
  return resolved(components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, { components } as Document);
}
