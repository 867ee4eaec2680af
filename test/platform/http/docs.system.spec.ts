/** `/docs` in a real browser, on a real server: it shows the document, takes a token, and tries a call. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPage, type Page } from '../../browser.js';
import { dataFolder, type ServerProcess, startServer, until } from '../../server.js';

let folder: Awaited<ReturnType<typeof dataFolder>>;
let server: ServerProcess;
let page: Page;
beforeAll(async () => {
  folder = await dataFolder();
  server = await startServer({ CAPSTAN_DATA_DIR: folder.path });
  page = await openPage();
});
afterAll(async () => {
  await page?.close();
  server?.child.kill();
  await server?.finished;
  await folder.remove();
});

const textOf = (selector: string) =>
  page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`);

/** Opens an operation, and waits until what it refers to has been looked up: only then can it be called. */
async function unfold(id: string): Promise<void> {
  await page.click(`#${id} .opblock-summary-control`);
  await until('its shared answers are shown', async () => (await textOf(`#${id}`)).includes('Credentials are missing'));
}

it('shows every operation in its group, and asks nobody but this server', async () => {
  await page.goto(`${server.url}/docs`);
  const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: Record<string, object> };
  const operations = Object.values(paths).flatMap((path) => Object.keys(path));
  const shown = () => page.evaluate("document.querySelectorAll('.opblock').length");
  await until('all operations are shown', async () => (await shown()) === operations.length);
  expect(await page.evaluate("[...document.querySelectorAll('.opblock-tag')].map((tag) => tag.dataset.tag)")).toEqual([
    'runs',
    'queues',
    'retention',
    'workers',
    'audit',
    'installation',
  ]);
});

it('tries a call with the token that it was given', async () => {
  const token = (await readFile(join(folder.path, 'admin-token'), 'utf8')).trim();
  await page.click('.scheme-container .authorize');
  await page.type('.auth-container input', token);
  await page.click('.auth-btn-wrapper .authorize');
  await page.click('.auth-btn-wrapper .btn-done');
  await unfold('operations-installation-getVersion');
  await page.click('#operations-installation-getVersion .execute');
  const status = '#operations-installation-getVersion .live-responses-table .response .response-col_status';
  await until('the call was answered', async () => (await textOf(status)).includes('200'));
  expect(await textOf('#operations-installation-getVersion .live-responses-table .highlight-code')).toContain(
    '"capstan"',
  );
});

it('submits its own example', async () => {
  await unfold('operations-runs-submitRun');
  await page.click('#operations-runs-submitRun .execute');
  const status = '#operations-runs-submitRun .live-responses-table .response .response-col_status';
  await until('the submit was answered', async () => (await textOf(status)).includes('201'));
});

it('broke no policy of its own and had nothing to complain of; every address was this server', () => {
  expect(page.complaints).toEqual([]);
  const elsewhere = page.requested.filter((url) => !url.startsWith(server.url) && !/^(data|about|blob):/.test(url));
  expect(elsewhere).toEqual([]);
  expect(page.requested.some((url) => url.endsWith('/v1/version'))).toBe(true);
});
