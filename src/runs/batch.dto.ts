/** The body of a batch and its answer. An item that can't be taken is answered by itself, beside the others. */
import { type InputFault, invalidInput, Problem } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { digestOfParts, keyFaultOf, keyOfText } from '../platform/http/idempotency.js';
import { decodeInput, Holds } from '../platform/http/input.js';
import { problemDocument } from '../platform/http/problem.filter.js';
import { nullable } from '../platform/http/schema.js';
import type { BatchItem, BatchRequest } from './batch.service.js';
import { RunSummaryDto, runSummaryDto } from './run.dto.js';
import { decodeSubmit, isMembers, type Members, SubmitDto } from './submit.dto.js';
import type { SubmitRequest } from './submits.js';

const MAX_RUNS = 1_000;
/** The route that an item would have come by itself. */
const SUBMIT_PATH = '/v1/runs';

function runsFaults(value: unknown): InputFault[] {
  const isBatch = Array.isArray(value) && value.length >= 1 && value.length <= MAX_RUNS;
  return isBatch ? [] : [{ pointer: '', message: `must be a list of 1 to ${MAX_RUNS} submits` }];
}

function keyFaults(value: unknown): InputFault[] {
  const fault = typeof value === 'string' ? keyTextFault(value) : 'must be a string';
  return fault === undefined ? [] : [{ pointer: '', message: fault }];
}

function keyTextFault(text: string): string | undefined {
  return /\p{Cc}/u.test(text) ? 'holds control characters' : keyFaultOf(keyOfText(text));
}

/** For the document: `decodeItem` takes the key off, and what is left is a submit. */
class BatchItemDto extends SubmitDto {
  @Documented((api) =>
    api.ApiProperty(
      nullable('string', {
        minLength: 1,
        maxLength: 255,
        required: false,
        default: null,
        description:
          'As the header of that name with this submit alone would be: the same key gives the same run, by either route. ' +
          'At most 255 bytes.',
      }),
    ),
  )
  idempotencyKey: string | null = null;
}

export class BatchDto {
  @Documented((api) => api.ApiProperty({ type: [BatchItemDto], minItems: 1, maxItems: MAX_RUNS }))
  @Holds(runsFaults)
  runs: unknown[];
}

export class BatchItemAnswerDto {
  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      example: 201,
      description: '201 for a run that was made, 200 for one that the same key or id made before, 4xx for a problem.',
    }),
  )
  status: number;

  @Documented((api) =>
    api.ApiProperty({ type: RunSummaryDto, required: false, description: 'As in lists: without `spec` and `output`.' }),
  )
  run?: RunSummaryDto;

  @Documented((api) =>
    api.ApiProperty({
      allOf: [{ $ref: '#/components/schemas/Problem' }],
      required: false,
      description: 'Its pointers begin at the item.',
    }),
  )
  problem?: Record<string, unknown>;
}

export class BatchAnswerDto {
  @Documented((api) => api.ApiProperty({ type: [BatchItemAnswerDto], description: 'In the order of `runs`.' }))
  items: BatchItemAnswerDto[];
}

/**
 * The submits of a body, or what is wrong with each; `traceparent` is the request's. Throws `invalid_input` when it is no
 * batch at all.
 */
export function decodeBatch(body: Members, traceparent: string | null): readonly BatchRequest[] {
  return decodeInput(BatchDto, body, '/').runs.map((item) => {
    try {
      return decodeItem(item, traceparent);
    } catch (error) {
      if (error instanceof Problem) return error;
      throw error;
    }
  });
}

/** An item's key stands for the submit without it: so it is the same one whichever way it comes. */
function decodeItem(item: unknown, traceparent: string | null): SubmitRequest {
  if (!isMembers(item)) throw invalidInput([{ pointer: '', message: 'must be an object' }]);
  if (!('idempotencyKey' in item)) return decodeSubmit(item, { traceparent, key: null, requestDigest: '' });
  const { idempotencyKey, ...submit } = item;
  const faults = idempotencyKey === null ? [] : keyFaults(idempotencyKey);
  const key = typeof idempotencyKey === 'string' ? keyOfText(idempotencyKey) : null;
  return decodeSubmit(
    submit,
    { traceparent, key, requestDigest: key === null ? '' : digestOfParts('POST', SUBMIT_PATH, submit) },
    faults.map(({ message }) => ({ pointer: '/idempotencyKey', message })),
  );
}

export function batchItemDto(item: BatchItem, requestId: string): BatchItemAnswerDto {
  if ('problem' in item) {
    return { status: item.problem.status, problem: problemDocument(item.problem, requestId) };
  }
  return { status: item.replayed ? 200 : 201, run: runSummaryDto(item.run) };
}
