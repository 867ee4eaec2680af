/** What narrows a list of runs, in a query and in a body. What can't be understood is refused, never ignored. */

import { IsIn, IsOptional, IsString, Matches } from 'class-validator';
import { decodeId } from '../kernel/ids.js';
import { parseInstant } from '../kernel/instant.js';
import { type InputFault, invalidInput } from '../kernel/problems.js';
import { KINDS, ORIGINS, QUEUE_NAME, RUN_STATES } from '../kernel/run-words.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import type { RunFilter } from './list.sql.js';
import type { Kind, Origin, RunState } from './run.js';
import { LABEL_KEY, MAX_LABEL_BYTES } from './submit.dto.js';

const MAX_WORDS_CHARS = 200;
const WORD = /[\p{L}\p{N}]/u;
const BETWEEN_WORDS = /[^\p{L}\p{N}\p{M}]+/gu;

/** A parameter that may be repeated, as a list of texts; what is no text says nothing. */
function textsOf(value: unknown): string[] {
  const all: unknown[] = Array.isArray(value) ? value : [value];
  return all.map((one) => (typeof one === 'string' ? one : ''));
}

function statesOf(value: unknown): string[] {
  const names = textsOf(value).flatMap((text) => text.split(','));
  return names.map((name) => (name === 'cancelled' ? 'canceled' : name));
}

function isState(name: string): name is RunState {
  const states: readonly string[] = RUN_STATES;
  return states.includes(name);
}

function stateFaults(value: unknown): InputFault[] {
  const unknown = statesOf(value).filter((name) => !isState(name));
  return unknown.length === 0 ? [] : [{ pointer: '', message: `must be some of ${RUN_STATES.join(', ')}` }];
}

function labelsOf(value: unknown): [string, string][] {
  return textsOf(value).map((text) => {
    const [key = '', ...rest] = text.split(':');
    return [key, rest.join(':')];
  });
}

function labelFaults(value: unknown): InputFault[] {
  const keys = new Set<string>();
  return textsOf(value).flatMap((text) => {
    const [[key, wanted] = ['', '']] = labelsOf(text);
    if (!text.includes(':')) return [{ pointer: '', message: 'must be written key:value' }];
    if (!LABEL_KEY.test(key)) return [{ pointer: '', message: `a label's key must match ${LABEL_KEY.source}` }];
    if (Buffer.byteLength(wanted) > MAX_LABEL_BYTES) {
      return [{ pointer: '', message: `a label's value must be at most ${MAX_LABEL_BYTES} bytes long` }];
    }
    if (keys.has(key)) return [{ pointer: '', message: `${key} is asked for twice: a run has a label once` }];
    keys.add(key);
    return [];
  });
}

function instantFaults(value: unknown): InputFault[] {
  const isInstant = typeof value === 'string' && parseInstant(value) !== undefined;
  return isInstant ? [] : [{ pointer: '', message: 'must be an RFC 3339 instant such as 2030-01-31T08:00:00Z' }];
}

function parentFaults(value: unknown): InputFault[] {
  const isId = typeof value === 'string' && decodeId('run', value) !== undefined;
  return isId ? [] : [{ pointer: '', message: 'must be a run id (run_…) or a UUID' }];
}

function wordsFaults(value: unknown): InputFault[] {
  const hasWords = typeof value === 'string' && value.length <= MAX_WORDS_CHARS && WORD.test(value);
  return hasWords ? [] : [{ pointer: '', message: `must hold a word, in up to ${MAX_WORDS_CHARS} characters` }];
}

export class RunFilterDto {
  @Documented((api) =>
    api.ApiProperty({
      oneOf: [{ type: 'array', items: { type: 'string', enum: [...RUN_STATES] } }, { type: 'string' }],
      required: false,
      example: ['pending', 'running'],
      description: 'Any of these: repeated, or a comma list.',
    }),
  )
  @IsOptional()
  @Holds(stateFaults)
  state?: string | string[];

  @Documented((api) =>
    api.ApiProperty({ type: String, enum: KINDS, required: false, description: 'What executes them.' }),
  )
  @IsOptional()
  @IsIn(KINDS)
  kind?: Kind;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      pattern: QUEUE_NAME.source,
      required: false,
      description: 'The queue they are in.',
    }),
  )
  @IsOptional()
  @IsString()
  @Matches(QUEUE_NAME, { message: `must match ${QUEUE_NAME.source}` })
  queue?: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, enum: ORIGINS, required: false, description: 'What launched them.' }),
  )
  @IsOptional()
  @IsIn(ORIGINS)
  origin?: Origin;

  @Documented((api) =>
    api.ApiProperty({
      oneOf: [{ type: 'array', items: { type: 'string' } }, { type: 'string' }],
      required: false,
      example: ['env:prod'],
      description: 'All of these: `key:value`.',
    }),
  )
  @IsOptional()
  @Holds(labelFaults)
  label?: string | string[];

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      required: false,
      example: 'tok_01h455vb4pex5vsknk084sn02q',
      description: 'The id of the token that made them.',
    }),
  )
  @IsOptional()
  @IsString()
  @Matches(/^tok_[0-9a-z]{1,26}$/, { message: 'must be the id of a token (tok_…)' })
  principal?: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, required: false, description: 'The id of the run whose children they are.' }),
  )
  @IsOptional()
  @Holds(parentFaults)
  parent?: string;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      required: false,
      maxLength: MAX_WORDS_CHARS,
      example: 'nightly backup',
      description: 'All of these words are words of the name, in any case and order.',
    }),
  )
  @IsOptional()
  @Holds(wordsFaults)
  q?: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, format: 'date-time', required: false, description: 'Made later than this.' }),
  )
  @IsOptional()
  @Holds(instantFaults)
  createdAfter?: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, format: 'date-time', required: false, description: 'Made earlier than this.' }),
  )
  @IsOptional()
  @Holds(instantFaults)
  createdBefore?: string;
}

/**
 * What a checked filter asks for. Throws `invalid_input` when its instants leave nothing to find; the pointer begins with
 * `prefix`.
 */
export function runFilterOf(given: RunFilterDto, prefix: string): RunFilter {
  const { state, kind, queue, origin, principal, parent, label, q } = given;
  const createdAfter = given.createdAfter === undefined ? undefined : parseInstant(given.createdAfter);
  const createdBefore = given.createdBefore === undefined ? undefined : parseInstant(given.createdBefore);
  if (createdAfter && createdBefore && createdAfter >= createdBefore) {
    throw invalidInput([{ pointer: `${prefix}createdBefore`, message: 'must be later than createdAfter' }]);
  }
  const parentId = parent === undefined ? undefined : decodeId('run', parent);
  return {
    ...(state === undefined ? {} : { states: [...new Set(statesOf(state).filter(isState))] }),
    ...(kind === undefined ? {} : { kind }),
    ...(queue === undefined ? {} : { queue }),
    ...(origin === undefined ? {} : { origin }),
    ...(principal === undefined ? {} : { principal }),
    ...(parentId === undefined ? {} : { parentId }),
    ...(label === undefined ? {} : { labels: Object.fromEntries(labelsOf(label)) }),
    ...(q === undefined ? {} : { words: q.replace(BETWEEN_WORDS, ' ') }),
    ...(createdAfter === undefined ? {} : { createdAfter }),
    ...(createdBefore === undefined ? {} : { createdBefore }),
  };
}
