/** What a newcomer needs to know when the server is up: plain lines on standard output. */
import { relative } from 'node:path';
import type { Config } from '../platform/config/config.js';
import { productVersion } from '../platform/http/product.js';
import { adminTokenFile } from './admin-token.js';

export interface Standing {
  readonly url: string;
  readonly config: Config;
  /** The database came with this process. */
  readonly embedded: boolean;
  readonly hasToken: boolean;
}

export function banner({ url, config, embedded, hasToken }: Standing): string {
  const lines = [`Capstan ${productVersion()} is ready at ${url}`, ''];
  if (embedded) {
    lines.push(
      `  data   ${config.dataDir}  (all there is: move or remove this folder to move or remove Capstan)`,
      `  token  ${adminTokenFile(config.dataDir)}`,
    );
  } else {
    lines.push(`  data   ${withoutSecrets(config.databaseUrl ?? '')}`, `  token  ${tokenLine(config, hasToken)}`);
  }
  lines.push(`  try    ${tryLine(url, config, embedded)}`, '');
  return lines.join('\n');
}

function tokenLine(config: Config, hasToken: boolean): string {
  if (!hasToken) return 'there is none yet: set CAPSTAN_BOOTSTRAP_TOKEN (24 to 255 visible characters) and start again';
  return config.bootstrapToken === undefined ? 'as made before' : 'CAPSTAN_BOOTSTRAP_TOKEN, or as made before';
}

function tryLine(url: string, config: Config, embedded: boolean): string {
  const isUsual = url === 'http://127.0.0.1:8080' && relative(process.cwd(), config.dataDir) === '.capstan';
  const token = embedded ? `CAPSTAN_TOKEN_FILE=${adminTokenFile(config.dataDir)}` : 'CAPSTAN_TOKEN=…';
  // The client hands the token of the data folder to the usual address only: elsewhere it must be told both.
  const settings = embedded && isUsual ? [] : [`CAPSTAN_URL=${url}`, token];
  return [...settings, 'npx capstan run --wait -- echo hello'].join(' ');
}

function withoutSecrets(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  return `PostgreSQL at ${url.host}${url.pathname}`;
}
