/** Which output a request asks for: one stream of it, and how many of its last lines. */
import { IsIn } from 'class-validator';
import type { InputFault } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { Holds, MayBeAbsent } from '../platform/http/input.js';

/** The streams by their names on the wire. */
export const STREAM_OF = { stdout: 1, stderr: 2 } as const;

const MAX_TAIL_LINES = 100_000;

/** A number of lines in a query. */
function tailFaults(value: unknown): InputFault[] {
  const isCount = typeof value === 'string' && /^(0|[1-9]\d{0,5})$/.test(value) && Number(value) <= MAX_TAIL_LINES;
  return isCount ? [] : [{ pointer: '', message: `must be an integer from 0 to ${MAX_TAIL_LINES}` }];
}

export class OutputQuery {
  @Documented((api) =>
    api.ApiProperty({
      type: String,
      enum: Object.keys(STREAM_OF),
      required: false,
      description: 'Output of one stream alone.',
    }),
  )
  @MayBeAbsent()
  @IsIn(Object.keys(STREAM_OF))
  stream?: keyof typeof STREAM_OF;

  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      minimum: 0,
      maximum: MAX_TAIL_LINES,
      required: false,
      description: 'Of the output that is there already only the last so many lines.',
    }),
  )
  @MayBeAbsent()
  @Holds(tailFaults)
  tail?: string;
}
