/** Wire shapes of entries and receipts, and the query of a list. What can't be understood is refused, never ignored. */
import { IsIn, IsOptional, IsString, Matches } from 'class-validator';
import { decodeId } from '../kernel/ids.js';
import { parseInstant } from '../kernel/instant.js';
import { type InputFault, invalidInput } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import { DEFAULT_LIMIT, LIMIT, limitFaults } from '../platform/http/page.js';
import { nullable, orNull } from '../platform/http/schema.js';
import type { EntrySearch } from './entries.service.js';
import { entryPlaceOf } from './entry-cursor.rules.js';

const ACTION = /^[a-z][a-z0-9_]{0,62}(\.[a-z0-9_]{1,63}){0,3}$/;
/** What no id, digest or name of a chain has; as the index reads an object, it would end at the first of them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const OBJECT = /^[^"\\\u0000-\u001f]{1,300}$/;
const CHAIN_NOTE = "The installation's own chain, for its admins; by default the organization's.";

const RECEIPT = `org_01h455vb4pex5vsknk084sn02q:7:${'5f'.repeat(32)}`;

export class ChainQuery {
  @Documented((api) =>
    api.ApiProperty({ type: String, required: false, enum: ['installation'], description: CHAIN_NOTE }),
  )
  @IsOptional()
  @IsIn(['installation'])
  chain?: 'installation';
}

export class EntryListQuery extends ChainQuery {
  @Documented((api) =>
    api.ApiProperty({ type: String, required: false, example: 'run.ended', description: 'What was done.' }),
  )
  @IsOptional()
  @IsString()
  @Matches(ACTION, { message: 'must be the name of an action, such as run.ended' })
  action?: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, required: false, example: 'tok_01h455vb4pex5vsknk084sn02q', description: 'Who.' }),
  )
  @IsOptional()
  @IsString()
  @Matches(/^.{1,300}$/su, { message: 'must be 1 to 300 characters long' })
  principal?: string;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      required: false,
      example: 'run_01h455vb4pex5vsknk084sn02q',
      description: 'On what.',
    }),
  )
  @IsOptional()
  @IsString()
  @Matches(OBJECT, { message: 'must be 1 to 300 characters, without quotation marks, backslashes and controls' })
  object?: string;

  @Documented((api) => api.ApiProperty({ type: String, required: false, description: 'All that is about this run.' }))
  @IsOptional()
  @Holds(runFaults)
  run?: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, format: 'date-time', required: false, description: 'Recorded later than this.' }),
  )
  @IsOptional()
  @Holds(instantFaults)
  after?: string;

  @Documented((api) =>
    api.ApiProperty({ type: String, format: 'date-time', required: false, description: 'Recorded earlier than this.' }),
  )
  @IsOptional()
  @Holds(instantFaults)
  before?: string;

  @Documented((api) => api.ApiProperty(LIMIT))
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
  @Holds(cursorFaults)
  cursor?: string;
}

export class EntryDto {
  @Documented((api) => api.ApiProperty({ type: 'integer', example: 7, minimum: 1 }))
  seq: number;

  @Documented((api) =>
    api.ApiProperty(nullable('string', { example: '2030-01-31T08:00:12.345Z', format: 'date-time' })),
  )
  at: string | null;

  @Documented((api) => api.ApiProperty(nullable('string', { example: 'run.ended' })))
  action: string | null;

  @Documented((api) => api.ApiProperty(nullable('string', { example: 'tok_01h455vb4pex5vsknk084sn02q' })))
  principal: string | null;

  @Documented((api) =>
    api.ApiProperty(nullable('string', { example: 'admin', description: 'Its name at that moment.' })),
  )
  principalName: string | null;

  @Documented((api) => api.ApiProperty(nullable('string', { example: 'run_01h455vb4pex5vsknk084sn02q' })))
  object: string | null;

  @Documented((api) => api.ApiProperty(nullable('string', { example: 'run_01h455vb4pex5vsknk084sn02q' })))
  run: string | null;

  @Documented((api) =>
    api.ApiProperty(
      nullable('object', {
        example: { action: 'run.ended', object: 'run_01h455vb4pex5vsknk084sn02q', state: 'failed' },
        additionalProperties: true,
        description: 'All that the entry says, as it is hashed.',
      }),
    ),
  )
  payload: Readonly<Record<string, unknown>> | null;

  @Documented((api) => api.ApiProperty({ type: String, example: RECEIPT, description: '`<chain>:<seq>:<link>`' }))
  receipt: string;
}

export class EntryPageDto {
  @Documented((api) => api.ApiProperty({ type: [EntryDto] }))
  items: EntryDto[];

  @Documented((api) => api.ApiProperty(nullable('string', { description: 'The cursor of the next page.' })))
  next: string | null;
}

export class ReceiptDto {
  @Documented((api) => api.ApiProperty({ type: String, example: RECEIPT }))
  receipt: string;

  @Documented((api) =>
    api.ApiProperty({ type: Boolean, example: true, description: 'Whether the chain still holds that very entry.' }),
  )
  holds: boolean;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      required: false,
      enum: ['missing', 'altered', 'differs'],
      description:
        '`missing`: the chain ends before it, or it was taken out; `altered`: its content is not what was linked; ' +
        '`differs`: another entry stands in its place.',
    }),
  )
  reason?: string;

  @Documented((api) => api.ApiProperty(orNull(api.getSchemaPath(EntryDto))))
  entry: EntryDto | null;
}

/** What a checked query asks of a chain. Throws `invalid_input` for another chain's cursor, and for no time at all. */
export function entrySearch(query: EntryListQuery, chain: string): EntrySearch {
  const { action, principal, object, run, limit, cursor } = query;
  const [after, before] = [query.after, query.before].map((text) =>
    text === undefined ? undefined : parseInstant(text),
  );
  if (after && before && after >= before) {
    throw invalidInput([{ pointer: '?before', message: 'must be later than after' }]);
  }
  const place = entryPlaceOf(cursor);
  if (place && place.chain !== chain) throw invalidInput([{ pointer: '?cursor', message: NOT_OURS }]);
  return {
    filter: {
      action,
      principal,
      object,
      objectRunId: object?.startsWith('run_') ? decodeId('run', object) : undefined,
      runId: run === undefined ? undefined : decodeId('run', run),
    },
    after,
    before,
    below: place?.below,
    limit: limit === undefined ? DEFAULT_LIMIT : Number(limit),
  };
}

const NOT_OURS = 'must be a cursor that this list gave';

function cursorFaults(value: unknown): InputFault[] {
  return entryPlaceOf(value) ? [] : [{ pointer: '', message: NOT_OURS }];
}

function runFaults(value: unknown): InputFault[] {
  const isRun = typeof value === 'string' && decodeId('run', value) !== undefined;
  return isRun ? [] : [{ pointer: '', message: 'must be the id of a run' }];
}

function instantFaults(value: unknown): InputFault[] {
  const isInstant = typeof value === 'string' && parseInstant(value) !== undefined;
  return isInstant ? [] : [{ pointer: '', message: 'must be an RFC 3339 instant such as 2030-01-31T08:00:00Z' }];
}
