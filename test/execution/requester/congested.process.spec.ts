/** The supervisor's side of the requester while nobody takes output from the supervisor. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { ProcessWatch } from '../../../src/execution/supervisor/processes.js';
import { compiledSource } from '../../compiled.js';
import { requestOf, until } from '../supervisor/rig.js';
import { startOrigin } from './origin.fixture.js';

it('an abort is obeyed whatever is still to be sent before it', async () => {
  const origin = await startOrigin((_request, response) => response.write(Buffer.alloc(200_000, 'x')));
  const entry = join(await compiledSource(), 'execution/supervisor/requester.js');
  const { Requester } = (await import(
    pathToFileURL(entry).href
  )) as typeof import('../../../src/execution/supervisor/requester.js');
  let outputs = 0;
  const requester = new Requester({
    http: { allow: ['127.0.0.1'], userAgent: 'test', caFile: null },
    wrapper: [],
    watch: new ProcessWatch(),
    onOutput: () => {
      outputs += 1;
    },
    isCongested: () => true,
  });
  onTestFinished(() => new Promise((resolve) => requester.end(resolve)));
  const process = await requester.ready();
  if ('code' in process) throw new Error(process.detail);
  const ends: string[] = [];
  for (const key of [1, 2]) {
    process.request(
      { type: 'request', key, runId: `run_${key}`, fence: 1, http: requestOf({ url: origin.url }) },
      {
        onDone: ({ detail }) => ends.push(`${key} done: ${detail}`),
        onAborted: () => ends.push(`${key} aborted`),
        onLost: () => ends.push(`${key} lost`),
      },
    );
  }
  await until('output came and the channel is held up', () => outputs > 0 && origin.asked.length === 2);
  process.abort(1);
  await until('it is told as stopped', () => ends.length > 0);
  expect(ends).toEqual(['1 aborted']);
});
