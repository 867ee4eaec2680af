/** The events of a run in pages, with what is told from its standing in between, each once over a whole walk. */

import type { Pool } from '../platform/db/db.js';
import type { OutputOf } from './output.js';
import type { Place } from './place.rules.js';
import { pageOf, type RunEvent } from './tail.rules.js';
import { findStanding } from './tail.sql.js';

/** Behind all output: none is asked for. */
const BEHIND_OUTPUT = Object.freeze({ fence: 2_147_483_647, batch: 2_147_483_647 });

export interface EventPage {
  readonly events: readonly RunEvent[];
  /** Where the page ends, when there is more. */
  readonly next: Place | undefined;
}

export class EventsService {
  constructor(private readonly pool: Pool) {}

  /** The next events behind a place, in the order of their numbers. */
  async list(run: OutputOf, after: Place, limit: number): Promise<EventPage> {
    const from = { ...after, ...BEHIND_OUTPUT };
    const standing = await findStanding(this.pool, run, from, limit);
    if (!standing) return { events: [], next: undefined };
    const { steps, hasMore } = pageOf(from, { standing, chunks: [] });
    const here = steps.slice(0, limit);
    const events = here.flatMap((step) => ('event' in step ? [step.event] : []));
    return { events, next: hasMore || steps.length > limit ? here.at(-1)?.place : undefined };
  }
}
