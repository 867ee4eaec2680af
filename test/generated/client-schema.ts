/** The types of the TypeScript client out of the OpenAPI document. */
import openapiTS, { astToString } from 'openapi-typescript';

const HEAD =
  '/** Generated from the OpenAPI document by `npm run generate`: whoever wants other types changes a controller or DTO. */';

/** `document` is JSON. The same one gives the same text. */
export async function clientSchema(document: string): Promise<string> {
  // What has a default may be left out by whoever sends it.
  const types = await openapiTS(document, { defaultNonNullable: false });
  return `${HEAD}\n\n${astToString(types)}`;
}
