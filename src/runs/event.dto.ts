/** An event of a run as the API shows it, and the query of a list of them. */
import { IsOptional } from 'class-validator';
import type { InputFault } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import { LIMIT, limitFaults } from '../platform/http/page.js';
import { nullable } from '../platform/http/schema.js';
import { eventPlaceOf } from './event-cursor.rules.js';

export class EventDto {
  @Documented((api) =>
    api.ApiProperty(nullable('integer', { description: 'Null for what is told from how the run stands.' })),
  )
  seq: number | null;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: 'run.started',
      description: 'What begins with `run.` is the product’s own; the rest was reported by the tool.',
    }),
  )
  type: string;

  @Documented((api) => api.ApiProperty({ type: String, format: 'date-time' }))
  at: string;

  @Documented((api) =>
    api.ApiProperty({
      type: 'object',
      example: { worker: 'wrk_01h455vb4pex5vsknk084sn02q' },
      additionalProperties: true,
    }),
  )
  data: Readonly<Record<string, unknown>>;
}

export class EventPageDto {
  @Documented((api) => api.ApiProperty({ type: [EventDto] }))
  items: readonly EventDto[];

  @Documented((api) => api.ApiProperty({ ...nullable('string'), description: 'Cursor of the next page.' }))
  next: string | null;
}

function cursorFaults(value: unknown): InputFault[] {
  return eventPlaceOf(value) ? [] : [{ pointer: '', message: 'must be a cursor that this list gave' }];
}

export class EventListQuery {
  @Documented((api) => api.ApiProperty(LIMIT))
  @IsOptional()
  @Holds(limitFaults)
  limit?: string;

  @Documented((api) => api.ApiProperty({ type: String, required: false, description: '`next` of the page before.' }))
  @IsOptional()
  @Holds(cursorFaults)
  cursor?: string;
}
