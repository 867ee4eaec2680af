/** The page behind `/docs` and its files: Swagger UI as it was installed, and the few lines that start it. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

export interface DocsAsset {
  readonly type: string;
  /** The same bytes for everybody who asks: they are read once. */
  read(): Promise<Buffer>;
}

const require = createRequire(import.meta.url);

function installed(name: string, type: string): DocsAsset {
  let bytes: Promise<Buffer> | undefined;
  return {
    type,
    read: () => {
      bytes ??= readFile(require.resolve(`swagger-ui-dist/${name}`)).catch((error: unknown) => {
        bytes = undefined;
        throw error;
      });
      return bytes;
    },
  };
}

function written(text: string, type: string): DocsAsset {
  const bytes = Buffer.from(text);
  return { type, read: async () => bytes };
}

const [CSS, JS] = ['text/css; charset=utf-8', 'text/javascript; charset=utf-8'];

const START = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 2,
  displayRequestDuration: true,
  showExtensions: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
`;

const STYLE = `body { margin: 0; }
.swagger-ui .info { margin: 24px 0; }
.swagger-ui .scheme-container { padding: 12px 0; }
`;

/** By the last part of their path. */
export const DOCS_ASSETS: ReadonlyMap<string, DocsAsset> = new Map([
  ['swagger-ui.css', installed('swagger-ui.css', CSS)],
  ['swagger-ui-bundle.js', installed('swagger-ui-bundle.js', JS)],
  ['favicon-32x32.png', installed('favicon-32x32.png', 'image/png')],
  ['docs.css', written(STYLE, CSS)],
  ['docs.js', written(START, JS)],
]);

const { version: uiVersion } = require('swagger-ui-dist/package.json') as { version: string };

/** Another one whenever any of the files may be another. */
export const DOCS_VERSION = createHash('sha256').update(`${uiVersion} ${START} ${STYLE}`).digest('hex').slice(0, 12);

export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Capstan: HTTP interface</title>
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="/docs/swagger-ui.css?v=${DOCS_VERSION}">
<link rel="stylesheet" href="/docs/docs.css?v=${DOCS_VERSION}">
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png?v=${DOCS_VERSION}">
</head>
<body>
<div id="docs"></div>
<noscript><p>This page needs JavaScript; the document itself is at <a href="/openapi.json">/openapi.json</a>.</p></noscript>
<script src="/docs/swagger-ui-bundle.js?v=${DOCS_VERSION}"></script>
<script src="/docs/docs.js?v=${DOCS_VERSION}"></script>
</body>
</html>
`;
