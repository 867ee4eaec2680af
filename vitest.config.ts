import { defineConfig } from 'vitest/config';
import { LastLineReporter } from './test/reporter.js';

const common = { environment: 'node', pool: 'forks', testTimeout: 30_000, hookTimeout: 60_000 } as const;

/**
 * `unit` needs nothing but Node's own speed; `integration` gets one real PostgreSQL from the global setup; `system` may
 * need Debian's packages and brings databases of its own, for it restarts them.
 */
export default defineConfig({
  test: {
    maxWorkers: 2,
    reporters: ['default', new LastLineReporter()],
    projects: [
      { test: { ...common, name: 'unit', include: ['test/**/*.{unit,model}.spec.ts'] } },
      {
        test: {
          ...common,
          name: 'integration',
          include: ['test/**/*.{contract,api,process}.spec.ts'],
          globalSetup: ['test/global-setup.ts'],
        },
      },
      {
        test: {
          ...common,
          name: 'system',
          include: ['test/**/*.system.spec.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
