/** Only what Biome can't: no promise is left to itself (that takes types), and `process.env` is read in one folder. */
import { parser, plugin } from 'typescript-eslint';

const ENVIRONMENT = 'Settings are declared and read in src/platform/config.';

export default [
  {
    files: ['src/**/*.ts', 'test/**/*.ts'],
    languageOptions: { parser, parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { '@typescript-eslint': plugin },
    rules: { '@typescript-eslint/no-floating-promises': 'error' },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/platform/config/**'],
    rules: {
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: ENVIRONMENT }],
      'no-restricted-imports': [
        'error',
        { paths: ['node:process', 'process'].map((name) => ({ name, message: ENVIRONMENT })) },
      ],
    },
  },
];
