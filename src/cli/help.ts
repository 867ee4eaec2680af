/** The page of `capstan --help`: made of what is declared, and no larger than a terminal of 80 columns and 24 lines. */
import type { Command } from 'commander';
import { EXIT_CODES } from './exit-codes.js';

const COLUMNS = 80;

const EXAMPLES = [
  'capstan run --wait -- ansible-playbook site.yml',
  "capstan runs --state failed --json | jq -r '.items[].id'",
];

export function rootHelp(root: Command): string {
  const options = root.options
    .filter(({ hidden }) => !hidden)
    .map(({ long, flags, description }) => [/<.*>/.test(flags) ? shorter(flags) : (long ?? flags), description]);
  const codes = Object.values(EXIT_CODES).map(({ code, means }) => `${code} ${means}`);
  return [
    'Usage: capstan COMMAND [options]         (about one: capstan COMMAND --help)',
    '',
    ...inTwo(leavesOf(root)),
    '',
    ...padded(options).map((line) => `  ${line}`),
    '',
    ...flowed('Exit codes: ', codes),
    '',
    'Examples:',
    ...EXAMPLES.map((line) => `  ${line}`),
    '',
  ].join('\n');
}

/** Every command that does something, with its operands, and its summary. */
function leavesOf(command: Command, path = ''): [usage: string, summary: string][] {
  return command.commands.flatMap((sub) => {
    const name = `${path}${sub.name()}`;
    // A command with commands of its own tells them in its own help; what has no summary is a mere group.
    if (sub.summary() === '') return leavesOf(sub, `${name} `);
    return [[`${name} ${shorter(sub.usage())}`.trim(), sub.summary()] as [string, string]];
  });
}

/** `[options] <id>` is `ID`. */
function shorter(usage: string): string {
  return usage
    .replace(/\[[^\]]*\] ?/g, '')
    .replace(/<([^>]*)>/g, (_, name: string) => name.toUpperCase())
    .trim();
}

function inTwo(items: readonly (readonly string[])[]): string[] {
  const half = Math.ceil(items.length / 2);
  const [left, right] = [padded(items.slice(0, half)), padded(items.slice(half))];
  const width = Math.max(...left.map((line) => line.length));
  return left.map((line, index) => `  ${line.padEnd(width)}  ${right[index] ?? ''}`.trimEnd());
}

function padded(items: readonly (readonly string[])[]): string[] {
  const width = Math.max(...items.map(([first = '']) => first.length));
  return items.map(([first = '', second = '']) => `${first.padEnd(width)}  ${second}`);
}

/** As many on a line as it takes, behind their title. */
function flowed(title: string, [first = '', ...items]: readonly string[]): string[] {
  const lines = [`${title}${first}`];
  for (const item of items) {
    const joined = `${lines.at(-1)}   ${item}`;
    if (joined.length <= COLUMNS) lines[lines.length - 1] = joined;
    else lines.push(`  ${item}`);
  }
  return lines;
}
