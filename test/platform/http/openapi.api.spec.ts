import { readFile, writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { OPENAPI_FILE } from '../../../src/platform/http/product.js';
import { openApiText } from '../../openapi.js';

it('the checked-in OpenAPI document is the one that the code makes', async () => {
  const made = await openApiText();
  if (process.env.GEN) await writeFile(OPENAPI_FILE, made);
  expect(await readFile(OPENAPI_FILE, 'utf8'), 'src/openapi.json is stale: npm run generate').toBe(made);
});
