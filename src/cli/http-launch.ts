/**
 * `http`: a run that is one HTTP request, made by a worker. Invariant: no value of a header or of the body is ever
 * printed, and neither has to stand on the command line.
 */
import { InvalidArgumentError, Option } from 'commander';
import { addQuietOption, type ClientCommands } from './commands.js';
import { wrongUsage } from './failure.js';
import { submit } from './launch.js';
import {
  addLaunchOptions,
  addWaitOptions,
  given,
  integer,
  type LaunchOptions,
  submissionOf,
} from './launch-options.js';
import type { Session } from './session.js';
import { textIn } from './text-file.js';

interface HttpOptions extends LaunchOptions {
  readonly header?: readonly string[];
  readonly data?: string;
  readonly expect?: readonly number[];
  readonly follow?: number;
}

export function addHttpCommand(commands: ClientCommands): void {
  const http = commands
    .add('http', 'send a request', async (session, args, options: HttpOptions) => {
      return submit(session, submissionOf('http', await specOf(session, args, options), options), options);
    })
    .usage('[METHOD] URL [options]')
    .argument('[method]', 'the method (default: GET, with --data POST)')
    .argument('[url]')
    .option('-H, --header <header>', "'Name: value', or @FILE with one a line (repeatable)", collect)
    .option('-d, --data <data>', 'the body: text, @FILE, or - for our own input', once('--data'))
    .option('--expect <statuses>', 'what is a success, such as 200,201 (default: 2xx)', statuses)
    .addOption(new Option('--follow <n>', 'redirects to follow, from 0 to 10 (default: 0)').argParser(integer(0, 10)))
    .addHelpText(
      'after',
      '\nA secret header stands in a file (-H @FILE). Whoever may see the run sees it.' +
        '\nExamples:\n  capstan http --wait https://example.org/health' +
        '\n  capstan http PUT https://example.org/a -H @auth.txt -d @body.json --expect 202',
    );
  addQuietOption(addWaitOptions(addLaunchOptions(http, '60s')));
}

async function specOf(session: Session, args: readonly string[], options: HttpOptions) {
  const { header = [], data, expect, follow } = options;
  const [first = '', second] = args;
  const url = second ?? first;
  if (args.length === 0)
    throw wrongUsage('http: expected a URL, such as https://example.org/health', 'see: capstan http --help');
  if (!/^https?:\/\/./i.test(url)) throw wrongUsage('expected a URL that begins with http:// or https://');
  const readers = [...header.filter((each) => each === '@-'), ...(data === '-' || data === '@-' ? [data] : [])];
  if (readers.length > 1) throw wrongUsage('standard input is read once: for one --header @- or for --data');
  const headers = headersIn(await linesOf(session, header));
  return given({
    method: (second === undefined ? (data === undefined ? 'GET' : 'POST') : first).toUpperCase(),
    url,
    headers: headers.size > 0 ? Object.fromEntries(headers) : undefined,
    body: data === undefined ? undefined : await bodyOf(session, data),
    expectedStatus: expect,
    followRedirects: follow,
  });
}

async function linesOf({ shell }: Session, header: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  for (const each of header) {
    if (!each.startsWith('@')) lines.push(each);
    else lines.push(...(await textIn(shell, each.slice(1))).split(/\r?\n/).filter((line) => !/^\s*(#|$)/.test(line)));
  }
  return lines;
}

/** Names differ in more than their case. A line that is refused is never shown: it may hold a secret. */
function headersIn(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  const seen = new Set<string>();
  for (const line of lines) {
    const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name === '') throw wrongUsage("--header: expected 'Name: value', or @FILE with one a line");
    if (seen.has(name.toLowerCase())) throw wrongUsage(`--header: ${name} is given twice`);
    seen.add(name.toLowerCase());
    headers.set(name, value);
  }
  return headers;
}

/** As curl has it: `@-` is standard input too. */
function bodyOf({ shell }: Session, data: string): Promise<string> | string {
  if (data === '-') return textIn(shell, '-');
  return data.startsWith('@') ? textIn(shell, data.slice(1)) : data;
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** As other tools join two bodies or send the last one, neither is what was meant for sure. */
function once(flag: string): (text: string, before?: string) => string {
  return (text, before) => {
    if (before === undefined) return text;
    throw wrongUsage(`${flag} is given twice`);
  };
}

function statuses(text: string, before: readonly number[] = []): readonly number[] {
  const codes = text.split(',').map((code) => (/^[1-5]\d\d$/.test(code.trim()) ? Number(code) : Number.NaN));
  if (codes.some(Number.isNaN)) throw new InvalidArgumentError('Expected statuses such as 200 or 200,201.');
  return [...before, ...codes];
}
