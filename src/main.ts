#!/usr/bin/env node
/**
 * The `capstan` program: parses the command line and starts one process. What a server needs is imported by its
 * commands alone, so that a client command starts in the time of a shell builtin's patience.
 */
import { readFileSync } from 'node:fs';
import { runCommandLine } from './cli/program.js';
import { processShell } from './cli/shell.js';
import { processEnvironment } from './platform/config/config.js';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const exitCode = await runCommandLine(process.argv.slice(2), {
  shell: processShell(processEnvironment()),
  version,
  servers: {
    serve: async () => (await import('./boot.js')).serve(),
    worker: async () => (await import('./boot.js')).worker(),
    migrate: async () => (await import('./boot.js')).migrateOnly(),
  },
});
// A client command may be left in the middle of something; all that it said was written before it returned.
if (exitCode !== undefined) process.exit(exitCode);
