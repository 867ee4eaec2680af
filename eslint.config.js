/** One rule that only types can decide: no promise is left to itself. Everything else is Biome's. */
import { parser, plugin } from 'typescript-eslint';

export default [
  { ignores: ['dist/', 'coverage/'] },
  {
    files: ['src/**/*.ts', 'test/**/*.ts'],
    languageOptions: { parser, parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { '@typescript-eslint': plugin },
    rules: { '@typescript-eslint/no-floating-promises': 'error' },
  },
];
