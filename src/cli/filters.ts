/** What narrows a list of runs on the command line: the same for `runs`, and for `cancel` and `rerun` of many. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { closest } from 'fastest-levenshtein';
import { parseDuration } from '../kernel/duration.js';
import { parseInstant } from '../kernel/instant.js';
import { KINDS, ORIGINS, RUN_STATES } from '../kernel/run-words.js';
import type { RunFilter } from './api.js';
import { idIn } from './ids.js';
import { given, pairs } from './launch-options.js';

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
    .option('--queue <queue>', 'of this queue')
    .option('--label <key=value>', 'with this label (repeatable)', pairs('--label'))
    .option('--search <words>', 'with these words in the name')
    .addOption(words('--origin <origin>', 'made by this', ORIGINS, (text) => oneOf(ORIGINS, text)))
    .option('--principal <id>', 'made by whoever has this id (tok_…, wrk_…)')
    .option('--parent <id>', 'children of this run')
    .option('--after <when>', 'made later than: 2h ago, or 2026-03-02T00:00:00Z', instant)
    .option('--before <when>', 'made earlier than', instant);
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
  return given({
    state,
    kind,
    queue,
    label: label && [...label].map((pair) => pair.join(':')),
    origin,
    principal,
    parent: parent === undefined ? undefined : idIn([parent]),
    createdAfter: after,
    createdBefore: before,
    q: search,
  });
}

function states(text: string, before: readonly string[] = []): readonly string[] {
  const names = text.split(',').map((word) => (word === 'cancelled' ? 'canceled' : word));
  return [...before, ...names.map((word) => oneOf(RUN_STATES, word))];
}

function oneOf(choices: readonly string[], text: string): string {
  if (choices.includes(text)) return text;
  throw new InvalidArgumentError(`Expected ${choices.join(', ')}. Did you mean ${closest(text, choices)}?`);
}

/** An instant as it is, or one so long ago. */
export function instant(text: string): string {
  const agoMs = parseDuration(text.replace(/\s*ago$/, ''));
  if (agoMs !== undefined && agoMs < Date.now()) return new Date(Date.now() - agoMs).toISOString();
  if (parseInstant(text)) return text;
  throw new InvalidArgumentError('Expected how long ago, such as 2h, or an instant such as 2026-03-02T00:00:00Z.');
}
