/**
 * Makes dist/capstan-verify.mjs of src/verifier/: one file that an auditor can read, keep and run with Node alone, so it
 * is not minified. `node src/build-verifier.mjs [FOLDER]`
 */
import { chmod } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build } from 'vite';

const ROOT = join(import.meta.dirname, '..');
const FILE = 'capstan-verify.mjs';
const folder = resolve(process.argv[2] ?? join(ROOT, 'dist'));

await build({
  root: ROOT,
  configFile: false,
  logLevel: 'warn',
  build: {
    ssr: 'src/verifier/verifier.main.ts',
    outDir: folder,
    emptyOutDir: false,
    copyPublicDir: false,
    minify: false,
    target: 'node20',
    rolldownOptions: { output: { entryFileNames: FILE, codeSplitting: false } },
  },
});
await chmod(join(folder, FILE), 0o755);
