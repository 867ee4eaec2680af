/** What the README claims leads somewhere: each link to a file that exists, each proof to a test of that very title. */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const README = readFileSync(resolve(ROOT, 'README.md'), 'utf8');

/** `[text](target "title")`, without links to other places. */
const links = [...README.matchAll(/\[[^\]]*\]\(([^)\s"]+)(?: "([^"]*)")?\)/g)]
  .map(([, target = '', title]) => ({ target: target.replace(/#.*/, ''), title }))
  .filter(({ target }) => target !== '' && !/^https?:/.test(target));

function section(heading: string): string {
  const [, text = ''] = new RegExp(`\n## ${heading}\n([^]*?)\n## `).exec(README) ?? [];
  expect(text, `the README has no section "${heading}"`).not.toBe('');
  return text;
}

it('leads only to files that exist', () => {
  expect(links.length).toBeGreaterThan(0);
  expect(links.filter(({ target }) => !existsSync(resolve(ROOT, target)))).toEqual([]);
});

it('names tests that exist, by words of their titles', () => {
  const named = links.filter(({ title }) => title !== undefined);
  expect(named.length).toBeGreaterThan(0);
  const missing = named.filter(
    ({ target, title = '' }) => !readFileSync(resolve(ROOT, target), 'utf8').includes(title),
  );
  expect(missing).toEqual([]);
});

it('backs each line of "What happens when…" by a named test', () => {
  const rows = section('What happens when…')
    .split('\n')
    .filter((line) => /^\|(?! ?-)/.test(line))
    .slice(1);
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter((row) => !/\]\(test\/[^)]*\.spec\.ts "[^"]+"\) *\|$/.test(row))).toEqual([]);
});

it('links each sentence of "How it works" to its file and its test', () => {
  const prose = section('How it works')
    .replace(/```[\s\S]*?```/g, '')
    .replace(/<!--[\s\S]*?-->/g, '');
  const sentences = prose.split('\n- ').slice(1);
  expect(sentences.length).toBeGreaterThan(4);
  expect(sentences.filter((each) => !/\]\((src|migrations)\//.test(each) || !/\]\(test\//.test(each))).toEqual([]);
});
