/** The query of a list of runs: filters, page size and cursor. What can't be understood is refused, never ignored. */

import { IsIn, IsOptional, IsString, Matches } from 'class-validator';
import { parseInstant } from '../kernel/instant.js';
import { type InputFault, invalidInput } from '../kernel/problems.js';
import { KINDS, RUN_STATES } from '../kernel/run-words.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import {
  cursorFaultsOf,
  DEFAULT_LIMIT,
  limitFaults,
  MAX_LIMIT,
  type PagePlace,
  pageOf,
} from '../platform/http/page.js';
import { QUEUE_NAME } from './queue.js';
import type { RunFilter } from './read.sql.js';
import { type Kind, ORIGINS, type Origin, type RunState } from './run.js';
import { LABEL_KEY, MAX_LABEL_BYTES } from './submit.dto.js';

/** A parameter that may be repeated, as a list. */
function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}

function statesOf(value: unknown): string[] {
  const names = listOf(value).flatMap((text) => String(text).split(','));
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
  return listOf(value).map((text) => {
    const [key = '', ...rest] = String(text).split(':');
    return [key, rest.join(':')];
  });
}

function labelFaults(value: unknown): InputFault[] {
  const keys = new Set<string>();
  return listOf(value).flatMap((text) => {
    const [[key, wanted] = ['', '']] = labelsOf(text);
    if (!String(text).includes(':')) return [{ pointer: '', message: 'must be written key:value' }];
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

export class RunListQuery {
  @Documented((api) =>
    api.ApiProperty({
      type: String,
      required: false,
      example: 'pending,running',
      description: `Any of these: a comma list, or repeated. One of ${RUN_STATES.join(', ')}.`,
    }),
  )
  @IsOptional()
  @Holds(stateFaults)
  state?: string | string[];

  @Documented((api) => api.ApiProperty({ type: String, enum: KINDS, required: false }))
  @IsOptional()
  @IsIn(KINDS)
  kind?: Kind;

  @Documented((api) => api.ApiProperty({ type: String, required: false }))
  @IsOptional()
  @IsString()
  @Matches(QUEUE_NAME, { message: `must match ${QUEUE_NAME.source}` })
  queue?: string;

  @Documented((api) => api.ApiProperty({ type: String, enum: ORIGINS, required: false }))
  @IsOptional()
  @IsIn(ORIGINS)
  origin?: Origin;

  @Documented((api) =>
    api.ApiProperty({
      type: [String],
      required: false,
      example: ['env:prod'],
      description: 'All of these: key:value.',
    }),
  )
  @IsOptional()
  @Holds(labelFaults)
  label?: string | string[];

  @Documented((api) =>
    api.ApiProperty({ type: String, format: 'date-time', required: false, description: 'Excluded.' }),
  )
  @IsOptional()
  @Holds(instantFaults)
  createdAfter?: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, format: 'date-time', required: false, description: 'Excluded.' }),
  )
  @IsOptional()
  @Holds(instantFaults)
  createdBefore?: string;

  @Documented((api) =>
    api.ApiProperty({ type: 'integer', minimum: 1, maximum: MAX_LIMIT, required: false, default: DEFAULT_LIMIT }),
  )
  @IsOptional()
  @Holds(limitFaults)
  limit?: string;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      required: false,
      description: '`next` of the page before, with the same filters.',
    }),
  )
  @IsOptional()
  @Holds(cursorFaultsOf('run'))
  cursor?: string;
}

export interface RunListRequest {
  readonly filter: RunFilter;
  readonly after: PagePlace | undefined;
  readonly limit: number;
}

/** What a checked query asks for. Throws `invalid_input` when its instants leave nothing to find. */
export function runListRequest(query: RunListQuery): RunListRequest {
  const { state, kind, queue, origin, label } = query;
  const createdAfter = query.createdAfter === undefined ? undefined : parseInstant(query.createdAfter);
  const createdBefore = query.createdBefore === undefined ? undefined : parseInstant(query.createdBefore);
  if (createdAfter && createdBefore && createdAfter >= createdBefore) {
    throw invalidInput([{ pointer: '?createdBefore', message: 'must be later than createdAfter' }]);
  }
  return {
    filter: {
      ...(state === undefined ? {} : { state: statesOf(state).filter(isState) }),
      ...(kind === undefined ? {} : { kind }),
      ...(queue === undefined ? {} : { queue }),
      ...(origin === undefined ? {} : { origin }),
      ...(label === undefined ? {} : { labels: Object.fromEntries(labelsOf(label)) }),
      ...(createdAfter === undefined ? {} : { createdAfter }),
      ...(createdBefore === undefined ? {} : { createdBefore }),
    },
    ...pageOf('run', query),
  };
}
