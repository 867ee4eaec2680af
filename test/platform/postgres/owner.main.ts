/** A process that owns an embedded PostgreSQL, for tests that kill it. Says on standard output, as one JSON line, how the start went. */
import { startEmbeddedPostgres } from '../../../src/platform/postgres/embedded.js';
import { chooseRunAs } from '../../../src/platform/postgres/run-as.js';
import type { Outcome, OwnerOptions } from './owner-process.js';

const { withoutNamespaces, ...options }: OwnerOptions = JSON.parse(process.argv[2] ?? '{}');
const tell = (outcome: Outcome) => process.stdout.write(`${JSON.stringify(outcome)}\n`);
process.on('SIGINT', () => undefined);

try {
  const postgres = await startEmbeddedPostgres({
    databaseName: 'capstan',
    log: (line) => process.stderr.write(`${line}\n`),
    ...options,
    ...(withoutNamespaces && { runAs: (dir) => chooseRunAs(dir, async () => undefined) }),
  });
  process.once('SIGTERM', () => void postgres.stop());
  tell({ isUp: true, url: postgres.url, adminUrl: postgres.adminUrl });
} catch (error) {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  tell({ isUp: false, error: name, message });
}
