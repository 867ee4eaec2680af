#!/usr/bin/env node
/**
 * The `capstan` program: parses the command line and starts one process. What a server needs is imported by the
 * server commands alone: a client command loads no framework and no database driver.
 */
import { runCommandLine } from './cli/program.js';
import { processShell } from './cli/shell.js';
import { processEnvironment } from './platform/config/config.js';
import { productVersion } from './platform/http/product.js';

const exitCode = await runCommandLine(process.argv.slice(2), {
  shell: processShell(processEnvironment()),
  version: productVersion(),
  servers: {
    serve: async () => (await import('./boot.js')).serve(),
    worker: async () => (await import('./boot.js')).worker(),
    migrate: async () => (await import('./boot.js')).migrateOnly(),
    diagnose: async (env, options) => (await import('./doctor/diagnose.js')).diagnose(env, options),
  },
});
// A client command may be left in the middle of something; all that it said was written before it returned.
if (exitCode !== undefined) process.exit(exitCode);
