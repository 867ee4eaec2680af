/** The query of a list of runs: filters, page size and cursor. What can't be understood is refused, never ignored. */

import { IsOptional } from 'class-validator';
import { Documented } from '../platform/http/document.js';
import { Holds } from '../platform/http/input.js';
import { cursorFaultsOf, LIMIT, limitFaults, type PagePlace, pageOf } from '../platform/http/page.js';
import type { RunFilter } from './list.sql.js';
import { RunFilterDto, runFilterOf } from './run-filter.dto.js';

export class RunListQuery extends RunFilterDto {
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
  @Holds(cursorFaultsOf('run'))
  cursor?: string;
}

/** What a checked query asks for. Throws `invalid_input` when its instants leave nothing to find. */
export function runListRequest(query: RunListQuery): {
  readonly filter: RunFilter;
  readonly after: PagePlace | undefined;
  readonly limit: number;
} {
  return { filter: runFilterOf(query, '?'), ...pageOf('run', query) };
}
