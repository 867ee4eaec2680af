/** `/` for a person who just opened the address, and `/openapi.json` for a program. Both need no token. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Controller, Get, Header, Query } from '@nestjs/common';
import { Documented } from './document.js';
import { NoQuery } from './input.pipe.js';
import { Open } from './permission.js';
import { OPENAPI_FILE, productVersion } from './product.js';

const STYLE = `
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; }
pre { background: color-mix(in srgb, currentColor 8%, transparent); padding: .8rem 1rem; border-radius: .4rem; overflow-x: auto; }
small { opacity: .75; }`;

const DOCUMENT = {
  schema: { type: 'object' },
  example: { openapi: '3.1.0', info: { title: 'Capstan' }, paths: {} },
} as const;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

@Documented((api) => api.ApiTags('installation'))
@Controller()
export class WelcomeController {
  @Documented((api) => api.ApiExcludeEndpoint())
  @Open()
  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  @Header('content-security-policy', `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; frame-ancestors 'none'`)
  page(): string {
    return PAGE.replace('{version}', productVersion());
  }

  @Documented((api) => api.ApiOperation({ operationId: 'getOpenApi', summary: 'This document' }))
  @Documented((api) => api.ApiOkResponse({ description: 'OpenAPI 3.1.', content: { 'application/json': DOCUMENT } }))
  @Open()
  @Get('openapi.json')
  @Header('content-type', 'application/json; charset=utf-8')
  document(@Query() _query: NoQuery): Promise<Buffer> {
    return readFile(OPENAPI_FILE);
  }
}

const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Capstan</title><meta name="viewport" content="width=device-width"><style>${STYLE}</style></head>
<body>
<h1>Capstan</h1>
<p>An active-active control plane that runs automation. <small>Version {version}.</small></p>
<h2>Your token</h2>
<p>A server with its embedded database keeps the first token in the file <code>admin-token</code> of its data directory
(<code>CAPSTAN_DATA_DIR</code>, <code>.capstan</code> by default); the command line client on the same machine finds it
by itself. With <code>DATABASE_URL</code>, the first token is the one in <code>CAPSTAN_BOOTSTRAP_TOKEN</code>.</p>
<h2>First commands</h2>
<pre>npx capstan run --wait -- echo hello
npx capstan runs
npx capstan workers</pre>
<p>Or without the client:</p>
<pre>curl -H "Authorization: Bearer $CAPSTAN_TOKEN" -H "Content-Type: application/json" \\
  -d '{"kind":"command","spec":{"argv":["echo","hello"]}}' $CAPSTAN_URL/v1/runs</pre>
<p>The whole HTTP interface, to read and to try: <a href="/docs">/docs</a>; for programs
<a href="/openapi.json">/openapi.json</a>.</p>
</body>
</html>
`;
