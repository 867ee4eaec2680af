/** What the package says about itself, and the files that lie beside its code; found from `src` and `dist` alike. */
import { existsSync, readFileSync } from 'node:fs';

const ROOT = new URL('../../../', import.meta.url);
const BESIDE_CODE = new URL('../../openapi.json', import.meta.url);

let version: string | undefined;

/** The version in `package.json`. */
export function productVersion(): string {
  version ??= (JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as { version: string }).version;
  return version;
}

/** Where the checked-in OpenAPI document is: beside the sources, which the compiled code needn't carry along. */
export const OPENAPI_FILE = existsSync(BESIDE_CODE) ? BESIDE_CODE : new URL('src/openapi.json', ROOT);
