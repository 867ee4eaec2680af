/** What a log line may hold, seen on a real process's standard error. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { compiledSource } from '../../compiled.js';
import { finishOf } from '../../server.js';

it('S0-72 says what failed and what happens next, and cuts the cause at 2,000 characters', async () => {
  const logger = pathToFileURL(join(await compiledSource(), 'platform/log/logger.js')).href;
  const script = `
    const { createLogger } = await import(${JSON.stringify(logger)});
    const error = Object.assign(new Error('x'.repeat(10_000)), { code: '53100', detail: 'y'.repeat(10_000) });
    createLogger('info').warn({ code: 'output_retried', err: error }, "can't be stored now; trying on");`;
  const { stderr } = await finishOf(spawn(process.execPath, ['--input-type=module', '-e', script]));
  const line = JSON.parse(stderr);
  expect(line).toMatchObject({ level: 'warn', code: 'output_retried', msg: "can't be stored now; trying on" });
  expect(line.err.message).toBe('x'.repeat(2_000));
  expect(line.err.code).toBe('53100');
  expect(line.err.stack.length).toBeLessThanOrEqual(2_000);
  expect(stderr.length).toBeLessThan(5_000);
});
