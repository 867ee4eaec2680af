/** Loads the simulation, which is TypeScript like all tests, with the loader that the tests have. */
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

process.chdir(fileURLToPath(new URL('../../', import.meta.url)));
const entry = fileURLToPath(new URL('./simulate.main.ts', import.meta.url));
const { module } = await runnerImport(entry, { configFile: false, logLevel: 'error' });
await module.main(process.argv.slice(2));
