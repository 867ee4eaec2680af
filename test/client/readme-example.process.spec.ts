/** The README's example of the TypeScript client, in a project that has the package installed: it compiles, and does. */
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataFolder, type ServerProcess, startServer } from '../server.js';
import { installedProject, type Project } from './installed.fixture.js';

const README = resolve(import.meta.dirname, '../../README.md');
const NODE = ['--module', 'nodenext', '--types', 'node'];
const BUNDLER = [
  '--exactOptionalPropertyTypes',
  '--module',
  'esnext',
  '--moduleResolution',
  'bundler',
  '--lib',
  'es2023,dom,dom.asynciterable',
];

let project: Project;
let example: string;

beforeAll(async () => {
  project = await installedProject();
  [, example = ''] =
    /\n## TypeScript client\n[\s\S]*?```ts\n([\s\S]*?)```\n/.exec(await readFile(README, 'utf8')) ?? [];
  expect(example, 'README.md has no example of the TypeScript client').toContain("from 'capstan/client'");
  await project.write('example.ts', example);
});

afterAll(() => project.remove());

it('the README’s example makes a run, follows it to its end and finds it', async () => {
  const folder = await dataFolder();
  let server: ServerProcess | undefined;
  try {
    server = await startServer({ CAPSTAN_DATA_DIR: folder.path });
    const { outputText } = ts.transpileModule(example, {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 },
    });
    await project.write('example.js', outputText);
    const token = (await readFile(join(folder.path, 'admin-token'), 'utf8')).trim();
    const output = await project.output('example.js', { CAPSTAN_URL: server.url, CAPSTAN_TOKEN: token });
    expect(output).toBe('hello\nsucceeded\ngreeting true\n');
  } finally {
    server?.child.kill('SIGTERM');
    await server?.finished;
    await folder.remove();
  }
});

const CONSUMER = `
import { Capstan, CapstanProblem, type Run, type StreamMessage } from 'capstan/client';

export async function use(capstan: Capstan, signal: AbortSignal): Promise<Run> {
  const { id } = await capstan.submit(
    { kind: 'script', spec: { interpreter: 'bash', content: 'echo' }, labels: { env: 'prod' } },
    { idempotencyKey: 'mine', signal },
  );
  const messages: StreamMessage[] = [];
  for await (const message of capstan.follow(id, { stream: 'stdout' })) messages.push(message);
  const { data } = await capstan.raw.GET('/v1/runs/{id}', { params: { path: { id } } });
  const failed = await capstan.runs({ state: ['failed'], label: ['env:prod'] }).toArray();
  const problem = await capstan.cancelRuns({ queue: 'gpu' }).catch((error) => error);
  if (problem instanceof CapstanProblem && problem.code === 'forbidden') throw problem;
  return data ?? (await capstan.run(failed[0]?.id ?? id));
}

export async function misuse(capstan: Capstan): Promise<void> {
  // @ts-expect-error: a spec of another kind
  await capstan.submit({ kind: 'command', spec: { content: 'echo' } });
  // @ts-expect-error: a command without a spec
  await capstan.submit({ kind: 'command' });
  // @ts-expect-error: a filter that there is not
  await capstan.runs({ colour: 'red' }).toArray();
  // @ts-expect-error: a route that there is not
  await capstan.raw.GET('/v1/secrets');
  // @ts-expect-error: a state that there is not
  if ((await capstan.run('run_1')).state === 'done') return;
}
`;

/** A compiler starts slowly where others compile too. */
const COMPILE_MS = 120_000;

it(
  'the README’s example compiles, and the declarations are whole and refuse what the API would',
  async () => {
    await project.write('consumer.ts', CONSUMER);
    expect(await project.faults(['example.ts', 'consumer.ts'], ...NODE)).toBe('');
  },
  COMPILE_MS,
);

it(
  'the declarations hold with strict settings for a bundler, without the types of Node',
  async () => {
    await project.write('consumer.ts', CONSUMER);
    expect(await project.faults(['consumer.ts'], ...BUNDLER)).toBe('');
  },
  COMPILE_MS,
);
