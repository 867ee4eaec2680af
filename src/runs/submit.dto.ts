/** The body of a submit, and what it means once it is checked. Every fault of every part is reported at once. */

import { IsIn, IsInt, IsOptional, IsString, Length, Matches, Max, Min } from 'class-validator';
import { formatDuration, parseDuration } from '../kernel/duration.js';
import { decodeId } from '../kernel/ids.js';
import { parseInstant } from '../kernel/instant.js';
import { canonicalJson, escapePointer } from '../kernel/json.js';
import { type InputFault, invalidInput } from '../kernel/problems.js';
import { KINDS, QUEUE_NAME } from '../kernel/run-words.js';
import type { Bearing } from '../platform/http/bearing.js';
import { Documented } from '../platform/http/document.js';
import { checkInput, Holds, MayBeAbsent } from '../platform/http/input.js';
import { nullable, optionalStringMap } from '../platform/http/schema.js';
import { HttpSpec } from './http-spec.dto.js';
import { type Kind } from './run.js';
import { CommandSpec, NoopSpec, ScriptSpec, SPEC_OF } from './spec.dto.js';
import type { SubmitRequest } from './submits.js';

export const LABEL_KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
export const MAX_LABEL_BYTES = 255;
const MAX_LABELS = 32;
const MAX_SPEC_BYTES = 256 * 1024;
const MAX_TIMEOUT_MS = parseDuration('365d') ?? 0;

export type Members = Readonly<Record<string, unknown>>;

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function idFaults(value: unknown): InputFault[] {
  const isId = typeof value === 'string' && decodeId('run', value) !== undefined;
  return isId ? [] : [{ pointer: '', message: 'must be a run id (run_…) or a UUID' }];
}

function labelFaults(value: unknown): InputFault[] {
  if (!isMembers(value)) return [{ pointer: '', message: 'must be an object of strings' }];
  const entries = Object.entries(value);
  if (entries.length > MAX_LABELS) return [{ pointer: '', message: `must have at most ${MAX_LABELS} members` }];
  return entries.flatMap(([key, text]) => {
    const pointer = `/${escapePointer(key)}`;
    if (!LABEL_KEY.test(key)) return [{ pointer, message: `a label's key must match ${LABEL_KEY.source}` }];
    if (typeof text !== 'string') return [{ pointer, message: 'must be a string' }];
    return Buffer.byteLength(text) <= MAX_LABEL_BYTES
      ? []
      : [{ pointer, message: `must be at most ${MAX_LABEL_BYTES} bytes long` }];
  });
}

function timeoutFaults(value: unknown): InputFault[] {
  const ms = typeof value === 'string' ? parseDuration(value) : undefined;
  if (ms !== undefined && ms >= 1 && ms <= MAX_TIMEOUT_MS) return [];
  return [{ pointer: '', message: `must be a duration such as 90s or 15m, at most ${formatDuration(MAX_TIMEOUT_MS)}` }];
}

function instantFaults(value: unknown): InputFault[] {
  const isInstant = typeof value === 'string' && parseInstant(value) !== undefined;
  return isInstant ? [] : [{ pointer: '', message: 'must be an RFC 3339 instant such as 2030-01-31T08:00:00Z' }];
}

function objectFaults(value: unknown): InputFault[] {
  return isMembers(value) ? [] : [{ pointer: '', message: 'must be an object' }];
}

export class SubmitDto {
  @Documented((api) =>
    api.ApiProperty({
      type: String,
      required: false,
      description: 'An id that the caller chose: run_… or a UUID. The same id with the same spec gives that run again.',
    }),
  )
  @MayBeAbsent()
  @Holds(idFaults)
  id?: string;

  @Documented((api) => api.ApiProperty({ type: String, enum: KINDS }))
  @IsIn(KINDS)
  kind: Kind;

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', { minLength: 1, maxLength: 200, required: false, default: null, example: 'nightly backup' }),
    ),
  )
  @IsOptional()
  @IsString()
  @Length(1, 200)
  @Matches(/^[^\p{Cc}\u2028\u2029]*$/u, { message: 'must hold no control characters' })
  name: string | null = null;

  @Documented((api) =>
    api.ApiProperty({ type: String, pattern: QUEUE_NAME.source, required: false, default: 'default' }),
  )
  @MayBeAbsent()
  @Matches(QUEUE_NAME, { message: `must match ${QUEUE_NAME.source}` })
  queue = 'default';

  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      minimum: -100,
      maximum: 100,
      required: false,
      default: 0,
      description: 'Higher goes first.',
    }),
  )
  @MayBeAbsent()
  @IsInt()
  @Min(-100)
  @Max(100)
  priority = 0;

  @Documented((api) =>
    api.ApiProperty(
      optionalStringMap({
        maxProperties: MAX_LABELS,
        description: `Keys match \`${LABEL_KEY.source}\`; values are at most ${MAX_LABEL_BYTES} bytes long.`,
      }),
    ),
  )
  @MayBeAbsent()
  @Holds(labelFaults)
  labels: Readonly<Record<string, string>> = {};

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', {
        required: false,
        default: null,
        example: '15m',
        description:
          'From the start of the tool: an integer and ms, s, m, h or d, at most 365d. A request (kind `http`) for ' +
          'which neither this nor `CAPSTAN_RUN_TIMEOUT` says anything has 60s.',
      }),
    ),
  )
  @IsOptional()
  @Holds(timeoutFaults)
  timeout: string | null = null;

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', {
        format: 'date-time',
        required: false,
        default: null,
        description: 'Not claimed before this instant.',
      }),
    ),
  )
  @IsOptional()
  @Holds(instantFaults)
  notBefore: string | null = null;

  @Documented((api) =>
    api.ApiProperty({
      oneOf: [NoopSpec, CommandSpec, ScriptSpec, HttpSpec].map((spec) => ({ $ref: api.getSchemaPath(spec) })),
      description: 'The one of the kind, at most 256 KiB. May be left out where the kind needs nothing.',
      required: false,
    }),
  )
  @MayBeAbsent()
  @Holds(objectFaults)
  spec: Members = {};
}

/**
 * The checked submit in a body, of a request that bears this. Throws `invalid_input` with every fault, those found `beside`
 * it included.
 */
export function decodeSubmit(body: Members, bearing: Bearing, beside: readonly InputFault[] = []): SubmitRequest {
  const { value: submit, faults: outer } = checkInput(SubmitDto, body, '/');
  const faults = [...beside, ...outer];
  let spec: Members = {};
  if (KINDS.includes(submit.kind) && isMembers(submit.spec)) {
    const checked = checkInput<object>(SPEC_OF[submit.kind], submit.spec, '/spec/');
    faults.push(...checked.faults);
    spec = { ...checked.value };
    if (checked.faults.length === 0 && Buffer.byteLength(canonicalJson(spec)) > MAX_SPEC_BYTES) {
      faults.push({ pointer: '/spec', message: 'must be at most 256 KiB of canonical JSON' });
    }
  }
  if (faults.length > 0) throw invalidInput(faults);
  // Member by member: to put them together by spreading took as long as all the rest.
  return {
    id: submit.id === undefined ? undefined : decodeId('run', submit.id),
    kind: submit.kind,
    name: submit.name,
    queue: submit.queue,
    priority: submit.priority,
    labels: submit.labels,
    spec,
    timeoutMs: submit.timeout === null ? null : (parseDuration(submit.timeout) ?? null),
    notBefore: submit.notBefore === null ? null : (parseInstant(submit.notBefore) ?? null),
    traceparent: bearing.traceparent,
    key: bearing.key,
    requestDigest: bearing.requestDigest,
  };
}
