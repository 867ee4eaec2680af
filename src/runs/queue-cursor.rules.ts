/** The cursor of a list of queues: the name behind which the next page begins. Pure. */
import { QUEUE_NAME } from '../kernel/run-words.js';

export function queueCursorOf(name: string): string {
  return Buffer.from(name).toString('base64url');
}

/** The name that a cursor holds; undefined when we didn't write it. */
export function queueNameIn(cursor: unknown): string | undefined {
  if (typeof cursor !== 'string' || cursor.length > 100) return undefined;
  const name = Buffer.from(cursor, 'base64url').toString('latin1');
  return QUEUE_NAME.test(name) && queueCursorOf(name) === cursor ? name : undefined;
}
