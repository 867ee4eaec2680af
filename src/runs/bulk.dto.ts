/** The bodies of cancels and reruns by filter, and their answers. What can't be understood is refused: it might mean all. */
import { IsBoolean, IsInt, IsOptional, Max, Min } from 'class-validator';
import { encodeId } from '../kernel/ids.js';
import { escapePointer } from '../kernel/json.js';
import { type InputFault, invalidInput } from '../kernel/problems.js';
import { END_STATES, LIVE_STATES } from '../kernel/run-words.js';
import { Documented } from '../platform/http/document.js';
import { checkInput, Holds, MayBeAbsent } from '../platform/http/input.js';
import { cursorFaultsOf, encodeCursor, type PagePlace, pageOf } from '../platform/http/page.js';
import { nullable } from '../platform/http/schema.js';
import type { BulkCancelAnswer, BulkRequest, BulkRerunAnswer } from './bulk.service.js';
import type { RunState } from './run.js';
import { RunFilterDto, runFilterOf } from './run-filter.dto.js';
import { isMembers, type Members } from './submit.dto.js';

const MAX_RERUNS = 1_000;
/** Members that may be lists: all others are texts. */
const LISTS = ['state', 'label'];

function filterFaults(value: unknown): InputFault[] {
  if (!isMembers(value)) return [{ pointer: '', message: 'must be an object' }];
  if (Object.keys(value).length === 0) {
    return [{ pointer: '', message: 'must name at least one member: to mean all, say their states' }];
  }
  return Object.entries(value).flatMap(([name, member]) => {
    const isList = LISTS.includes(name) && Array.isArray(member) && member.length > 0;
    const texts: readonly unknown[] = isList ? member : [member];
    if (texts.every((text) => typeof text === 'string')) return [];
    return [{ pointer: `/${escapePointer(name)}`, message: `must be a text${LISTS.includes(name) ? ' or some' : ''}` }];
  });
}

class BulkDto {
  @Documented((api) =>
    api.ApiProperty({ type: RunFilterDto, description: 'As in the query of a list. At least one member.' }),
  )
  @Holds(filterFaults)
  filter: Members;

  @Documented((api) =>
    api.ApiProperty({
      type: Boolean,
      required: false,
      default: false,
      description: 'Only counts what matches, up to 100,000, and changes nothing.',
    }),
  )
  @MayBeAbsent()
  @IsBoolean()
  dryRun = false;

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', { required: false, default: null, description: '`next` of the answer before.' }),
    ),
  )
  @IsOptional()
  @Holds(cursorFaultsOf('run'))
  cursor: string | null = null;
}

export class BulkCancelDto extends BulkDto {}

export class BulkRerunDto extends BulkDto {
  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      minimum: 1,
      maximum: MAX_RERUNS,
      required: false,
      default: MAX_RERUNS,
      description: 'Of how many runs new ones are made at most.',
    }),
  )
  @MayBeAbsent()
  @IsInt()
  @Min(1)
  @Max(MAX_RERUNS)
  limit = MAX_RERUNS;
}

const NEXT = nullable('string', {
  description:
    'There may be more: the same request with this as its `cursor` goes on. It alone tells when all is done.',
});

class BulkAnswerDto {
  @Documented((api) => api.ApiProperty({ type: Boolean }))
  dryRun: boolean;

  @Documented((api) => api.ApiProperty({ type: 'integer', description: 'Runs that it came past and that match.' }))
  matched: number;

  @Documented((api) => api.ApiProperty(NEXT))
  next: string | null;
}

export class BulkCancelAnswerDto extends BulkAnswerDto {
  @Documented((api) => api.ApiProperty({ type: 'integer', description: 'Runs that have ended canceled.' }))
  canceled: number;

  @Documented((api) => api.ApiProperty({ type: 'integer', description: 'Runs whose holders still have to stop them.' }))
  stopping: number;
}

class RerunDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'run_01h455vb4pex5vsknk084sn02q' }))
  rerunOf: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, example: 'run_01hx2ew2hde8g8njcz5w3mrv6k', description: 'The new run.' }),
  )
  id: string;
}

export class BulkRerunAnswerDto extends BulkAnswerDto {
  @Documented((api) => api.ApiProperty({ type: [RerunDto] }))
  items: RerunDto[];
}

/** What a body asks to cancel. Throws `invalid_input`. */
export function decodeBulkCancel(body: Members): BulkRequest {
  return decodeBulk(BulkCancelDto, body, LIVE_STATES, 'has ended: nothing is left to cancel').request;
}

/** What a body asks to run again. Throws `invalid_input`. */
export function decodeBulkRerun(body: Members): BulkRequest & { readonly limit: number } {
  const { value, request } = decodeBulk(BulkRerunDto, body, END_STATES, 'has not ended: only what has is run again');
  return { ...request, limit: value.limit };
}

/** `fault` is what is wrong with a state that is none of `states`. */
function decodeBulk<T extends BulkDto>(
  type: new () => T,
  body: Members,
  states: readonly RunState[],
  fault: string,
): { readonly value: T; readonly request: BulkRequest } {
  const { value, faults: outer } = checkInput(type, body, '/');
  const isFilter = filterFaults(value.filter).length === 0;
  const { value: given, faults: inner } = checkInput(RunFilterDto, isFilter ? value.filter : {}, '/filter/');
  if (outer.length + inner.length > 0) throw invalidInput([...outer, ...inner]);
  const filter = runFilterOf(given, '/filter/');
  const beside = (filter.states ?? []).filter((state) => !states.includes(state));
  if (beside.length > 0) {
    throw invalidInput(beside.map((state) => ({ pointer: '/filter/state', message: `what is ${state} ${fault}` })));
  }
  const { after } = pageOf('run', value.cursor === null ? {} : { cursor: value.cursor });
  return { value, request: { filter, dryRun: value.dryRun, after } };
}

export function bulkCancelDto(answer: BulkCancelAnswer, dryRun: boolean): BulkCancelAnswerDto {
  const { matched, canceled, stopping, next } = answer;
  return { dryRun, matched, canceled, stopping, next: cursorOf(next) };
}

export function bulkRerunDto({ matched, items, next }: BulkRerunAnswer, dryRun: boolean): BulkRerunAnswerDto {
  const named = items.map(({ rerunOf, id }) => ({ rerunOf: encodeId('run', rerunOf), id: encodeId('run', id) }));
  return { dryRun, matched, items: named, next: cursorOf(next) };
}

function cursorOf(place: PagePlace | null): string | null {
  return place && encodeCursor('run', place);
}
