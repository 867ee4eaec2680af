/**
 * What is generated from the code and checked in: it has to be what the code makes now. `npm run generate` rewrites it
 * all (it runs this file and lets every comparison replace the file instead).
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { runCommandLine } from '../../src/cli/program.js';
import { settingsTable } from '../../src/platform/config/settings-table.js';
import { systemTiming } from '../../src/platform/time.js';
import { runDiagram } from '../../src/runs/run.machine.js';
import { ofApplication, openApiText } from '../openapi.js';
import { clientSchema } from './client-schema.js';
import { metricsTable } from './metrics-table.js';
import { withSettings } from './values-schema.js';

const ROOT = resolve(import.meta.dirname, '../..');
const STALE = 'stale: npm run generate';

it('README.md shows the settings, the command line and the claim as they are in the source', async () => {
  const text = await withRegions('README.md', {
    claim: fenced('sql', await statementOf('src/runs/claim.sql.ts', 'claimIfLive')),
    settings: settingsTable(),
    metrics: await ofApplication(metricsTable),
    commands: fenced('text', await commandHelp()),
  });
  await expect(text, `README.md is ${STALE}`).toMatchFileSnapshot(resolve(ROOT, 'README.md'));
});

it('README.md names no metric that there is not', async () => {
  const text = await readFile(resolve(ROOT, 'README.md'), 'utf8');
  const declared = new Set((await ofApplication(metricsTable)).match(/(?<=^\| `)capstan_\w+/gm));
  const named = new Set(text.match(/\bcapstan_[a-z]+_[a-z_]+[a-z]\b/g));
  expect(named.size).toBeGreaterThan(40);
  expect([...named].filter((name) => !declared.has(name))).toEqual([]);
});

it("src/README.md shows the run's state machine as it is declared", async () => {
  const text = await withRegions('src/README.md', { states: fenced('mermaid', runDiagram()) });
  await expect(text, `src/README.md is ${STALE}`).toMatchFileSnapshot(resolve(ROOT, 'src/README.md'));
});

it('src/openapi.json is the document that the controllers make', async () => {
  await expect(await openApiText(), `src/openapi.json is ${STALE}`).toMatchFileSnapshot(
    resolve(ROOT, 'src/openapi.json'),
  );
});

it('src/client/schema.ts has the types of that document', async () => {
  const file = resolve(ROOT, 'src/client/schema.ts');
  await expect(await clientSchema(await openApiText()), `${file} is ${STALE}`).toMatchFileSnapshot(file);
});

it("the chart's values schema has the settings as they are declared", async () => {
  const file = resolve(ROOT, 'helm/capstan/values.schema.json');
  await expect(withSettings(await readFile(file, 'utf8')), `${file} is ${STALE}`).toMatchFileSnapshot(file);
});

/** The file's text with each region, between `<!-- name:begin … -->` and `<!-- name:end -->`, replaced. */
async function withRegions(file: string, regions: Readonly<Record<string, string>>): Promise<string> {
  let text = await readFile(resolve(ROOT, file), 'utf8');
  for (const [name, content] of Object.entries(regions)) {
    const region = new RegExp(`(<!-- ${name}:begin[^>]*-->\n)[^]*?(\n<!-- ${name}:end -->)`);
    expect(text, `${file} has no region ${name}`).toMatch(region);
    text = text.replace(region, (_all, begin: string, end: string) => `${begin}\n${content.trimEnd()}\n${end}`);
  }
  return text;
}

/** The SQL of an exported function, as it stands there, its named predicates written out. */
async function statementOf(file: string, name: string): Promise<string> {
  const source = await readFile(resolve(ROOT, file), 'utf8');
  const [, sql = ''] = new RegExp(`function ${name}\\([^]*?=> sql\`\\n([^]*?)\`,\\n`).exec(source) ?? [];
  expect(sql, `${file} has no statement of ${name}`).not.toBe('');
  const predicates = await predicatesOf('src/runs/claimable.sql.ts');
  return sql
    .replace(/^ {4}/gm, '')
    .replace(/\$\{(\w+)\(sql\)\}( +(?=--))?/g, (all, predicate: string, gap?: string) => {
      const text = predicates.get(predicate);
      if (text === undefined) return all;
      return gap === undefined ? text : `${text} `.padEnd(all.length);
    });
}

/** What each function of the file that is nothing but a predicate on one line says. */
async function predicatesOf(file: string): Promise<ReadonlyMap<string, string>> {
  const source = await readFile(resolve(ROOT, file), 'utf8');
  const found = source.matchAll(/function (\w+)\(sql: Sql\): Fragment \{\n {2}return sql`(.*)`;\n/g);
  return new Map([...found].map(([, name = '', text = '']) => [name, text]));
}

function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
}

async function commandHelp(): Promise<string> {
  let page = '';
  const outlet = {
    isTerminal: false,
    columns: undefined,
    isLineOpen: false,
    write: async (data: string | Uint8Array) => {
      page += String(data);
    },
  };
  await runCommandLine(['--help'], {
    shell: {
      env: {},
      stdout: outlet,
      stderr: outlet,
      isInteractive: false,
      timing: systemTiming,
      readStdin: async () => Buffer.alloc(0),
      status: { show: async () => undefined, clear: async () => undefined },
      ask: async () => '',
      fullScreen: () => undefined,
      interrupted: async () => undefined,
    },
    version: '0.0.0',
    servers: { serve: unused, worker: unused, migrate: unused, diagnose: unused },
  });
  return page;
}

async function unused(): Promise<never> {
  throw new Error('help starts no server');
}
