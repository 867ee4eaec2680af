/** The pages of `--help`: made of what is declared, and no larger than a terminal of 80 columns and 24 lines. */
import type { Command } from 'commander';
import { EXIT_CODES } from './exit-codes.js';

const COLUMNS = 80;

const EXAMPLES = [
  'capstan run --wait -- ansible-playbook site.yml',
  "capstan runs --state failed --after 24h --json | jq -r '.items[].id'",
];

const OPTIONS = ['--json', '-q (ids)', '--url URL', '--token-file FILE', '--profile NAME'];

export function rootHelp(root: Command): string {
  const codes = Object.values(EXIT_CODES).map(({ code, means }) => `${code} ${means}`);
  return [
    'Usage: capstan COMMAND [options]     (capstan COMMAND --help, capstan --version)',
    '',
    ...inTwo(sectionsOf(root)),
    '',
    ...flowed('Most take: ', OPTIONS),
    ...flowed('Exit codes: ', codes),
    ...EXAMPLES.map((line, index) => `${index === 0 ? 'Examples: ' : ' '.repeat(10)}${line}`),
    '',
  ].join('\n');
}

/** Told in one line below the options of each command. */
const COMMON = ['--json', '--url', '--token-file', '--profile', '--token'];

/** The page of one command, in front of what it adds itself. */
export function commandHelp(command: Command): string {
  const operands = command.registeredArguments
    .filter(({ description }) => description !== '')
    .map((operand) => [operand.name().toUpperCase(), operand.description]);
  const own = command.options.filter(({ long, hidden }) => !hidden && !COMMON.includes(long ?? ''));
  const common = command.options.some(({ long }) => long === '--url' && !own.some((option) => option.long === long))
    ? 'Also --json, --url URL, --token-file FILE, --profile NAME: see capstan --help.'
    : command.options.some(({ long }) => long === '--json')
      ? 'Also --json.'
      : undefined;
  return [
    `Usage: ${pathOf(command)} ${usageOf(command)}`.trim(),
    ...wrapped(command.description(), COLUMNS),
    ...titled(
      'Commands:',
      command.commands.map((sub) => [nameOf(sub), sub.summary()]),
    ),
    ...titled(operands.length + own.length > 0 ? 'Options:' : '', [
      ...operands,
      ...own.map(({ flags, description }) => [
        flags.replace(/<([^>]*)>/g, (_, name: string) => name.toUpperCase()),
        description,
      ]),
    ]),
    ...(common === undefined ? [] : [own.length + operands.length > 0 ? `  ${common}` : `\n${common}`]),
    '',
  ]
    .filter((line, index) => line !== '' || index > 1)
    .join('\n');
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

function usageOf(command: Command): string {
  const isBare = command.options.length === 0 && command.commands.length === 0;
  if (isBare) return '';
  const usage = command.usage().replace(/<([^>]*)>/g, (_, name: string) => name.toUpperCase());
  return usage.replace('[options] [command]', command.options.length > 0 ? '[COMMAND] [options]' : 'COMMAND');
}

/** Two columns below a title; what is too long goes on below its beginning. */
function titled(title: string, items: readonly (readonly string[])[]): string[] {
  if (items.length === 0) return [];
  const width = Math.max(...items.map(([first = '']) => first.length));
  const lines = items.flatMap(([first = '', second = '']) => {
    const [head = '', ...rest] = wrapped(second, COLUMNS - width - 4);
    return [`  ${first.padEnd(width)}  ${head}`.trimEnd(), ...rest.map((line) => `${' '.repeat(width + 4)}${line}`)];
  });
  return ['', title, ...lines];
}

function wrapped(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const joined = `${lines.at(-1)} ${word}`.trim();
    if (joined.length <= width) lines[lines.length - 1] = joined;
    else lines.push(word);
  }
  return lines;
}

/** Each heading, and below it the commands: with their operands, and their summaries. */
function sectionsOf(root: Command): string[][] {
  const headings = [...new Set(root.commands.map((command) => command.helpGroup()))];
  return headings.map((heading) => {
    const members = root.commands.filter((command) => command.helpGroup() === heading);
    return [
      heading,
      ...padded(members.map((command) => [nameOf(command), command.summary()])).map((line) => `  ${line}`),
    ];
  });
}

function nameOf(command: Command): string {
  return `${command.name()} ${shorter(command.usage())}`.trim();
}

/** `[options] <id>` is `ID`. */
function shorter(usage: string): string {
  return usage
    .replace(/ \|.*/, '')
    .replace(/\[[^\]]*\] ?/g, '')
    .replace(/<([^>]*)>/g, (_, name: string) => name.toUpperCase())
    .trim();
}

/** The first sections beside the others, so that neither side is much longer. */
function inTwo(sections: readonly string[][]): string[] {
  const heights = sections.map((_, half) =>
    Math.max(sections.slice(0, half).flat().length, sections.slice(half).flat().length),
  );
  const half = heights.indexOf(Math.min(...heights));
  const [left, right] = [sections.slice(0, half).flat(), sections.slice(half).flat()];
  const width = Math.max(...left.map((line) => line.length));
  const height = Math.max(left.length, right.length);
  return Array.from({ length: height }, (_, row) => {
    return `${(left[row] ?? '').padEnd(width)}  ${right[row] ?? ''}`.trimEnd();
  });
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
