/** A list of the server, page by page as it is walked: `for await (const item of items)`. */
import { UnexpectedAnswer } from './errors.js';

export interface Page<T> {
  readonly items: readonly T[];
  /** Leads on; a page may be short or empty while there is one. */
  readonly next: string | null;
}

/** The most that the server puts on one page. */
export const PAGE_ITEMS = 200;

export class Items<T> implements AsyncIterable<T> {
  constructor(private readonly page: (cursor: string | undefined) => Promise<Page<T>>) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    let cursor: string | undefined;
    do {
      const { items, next } = await this.page(cursor);
      if (!Array.isArray(items)) throw new UnexpectedAnswer('it is no list');
      yield* items;
      cursor = next ?? undefined;
    } while (cursor !== undefined);
  }

  /** All of them, or the first `limit`. */
  async toArray(limit: number = Number.POSITIVE_INFINITY): Promise<T[]> {
    const all: T[] = [];
    if (limit <= 0) return all;
    for await (const item of this) {
      all.push(item);
      if (all.length >= limit) break;
    }
    return all;
  }
}
