/** What narrows a list of runs on the command line: the same for `runs`, and for `cancel` and `rerun` of many. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../kernel/duration.js';
import { parseInstant } from '../kernel/instant.js';
import { KINDS, ORIGINS, RUN_STATES } from '../kernel/run-words.js';
import type { RunFilter } from './api.js';
import { wrongUsage } from './failure.js';
import { idIn, principalIn, queueIn } from './ids.js';
import { given, pairs } from './launch-options.js';
import { nearest } from './text.js';

export interface FilterOptions {
  readonly state?: readonly string[];
  readonly kind?: string;
  readonly queue?: string;
  readonly label?: ReadonlyMap<string, string>;
  readonly origin?: string;
  readonly principal?: string;
  readonly parent?: string;
  readonly after?: string;
  readonly before?: string;
  readonly search?: string;
}

export function addFilterOptions(command: Command): Command {
  return command
    .addOption(words('--state <state>', 'in this state (some with commas; repeatable)', RUN_STATES, states))
    .addOption(words('--kind <kind>', 'of this kind', KINDS, (text) => oneOf(KINDS, text)))
    .option('--queue <queue>', 'of this queue', (text) => queueIn(text, '--queue'))
    .option('--label <key=value>', 'with this label (repeatable)', pairs('--label'))
    .option('--search <words>', 'with these words in the name')
    .addOption(words('--origin <origin>', 'made by this', ORIGINS, (text) => oneOf(ORIGINS, text)))
    .option('--principal <id>', 'made with the token of this id (tok_…)', principalIn)
    .option('--parent <id>', 'children of this run')
    .option('--after <when>', 'made later than: 2h ago, or 2026-03-02T00:00:00Z', when)
    .option('--before <when>', 'made earlier than', when);
}

/** An option whose values are a closed list: help shows them, completion offers them. */
function words<T>(
  flags: string,
  description: string,
  choices: readonly string[],
  parse: (text: string, before: T) => T,
): Option {
  const option = new Option(flags, `${description}: ${choices.join(', ')}`).argParser(parse);
  option.argChoices = [...choices];
  return option;
}

/** In the words of the API; empty when nothing was given. */
export function filterOf(options: FilterOptions): RunFilter {
  const { state, kind, queue, label, origin, principal, parent, after, before, search } = options;
  const [createdAfter, createdBefore] = [after, before].map((text) => (text === undefined ? undefined : instant(text)));
  checkSpan(createdAfter, createdBefore);
  return given({
    state,
    kind,
    queue,
    label: label && [...label].map((pair) => pair.join(':')),
    origin,
    principal,
    parent: parent === undefined ? undefined : idIn([parent]),
    createdAfter,
    createdBefore,
    q: search,
  });
}

function states(text: string, before: readonly string[] = []): readonly string[] {
  const names = text.split(',').map((word) => (word === 'cancelled' ? 'canceled' : word));
  return [...before, ...names.map((word) => oneOf(RUN_STATES, word))];
}

function oneOf(choices: readonly string[], text: string): string {
  if (choices.includes(text)) return text;
  throw new InvalidArgumentError(`Expected ${choices.join(', ')}.${nearest(text, choices)}`);
}

/** Of both there is nothing in between. */
export function checkSpan(after: string | undefined, before: string | undefined): void {
  const [from, to] = [after, before].map((text) => (text === undefined ? undefined : parseInstant(text)));
  if (from && to && from >= to) throw wrongUsage('--before must be later than --after');
}

/** Whether it means another instant each time. */
export function isAgo(text: string | undefined): boolean {
  return text !== undefined && parseInstant(text) === undefined;
}

/** Checked, and as it was given. */
function when(text: string): string {
  instant(text);
  return text;
}

/** An instant as it is, or one so long ago. */
export function instant(text: string): string {
  const agoMs = parseDuration(text.replace(/\s*ago$/, ''));
  if (agoMs !== undefined && agoMs < Date.now()) return new Date(Date.now() - agoMs).toISOString();
  if (parseInstant(text)) return text;
  throw new InvalidArgumentError('Expected how long ago, such as 2h, or an instant such as 2026-03-02T00:00:00Z.');
}
