/** The client against a server that answers as the test says. */
import { Capstan } from '../../src/client/client.js';
import { type Answer, type Reply, type StandIn, standIn } from '../cli/stand-in.fixture.js';

export const TOKEN = 'cap_token-of-the-test';

export async function against<T>(answer: Answer, use: (capstan: Capstan, server: StandIn) => Promise<T>): Promise<T> {
  const server = await standIn(answer);
  try {
    return await use(new Capstan({ url: server.url, token: TOKEN }), server);
  } finally {
    await server.close();
  }
}

/** One after another; the last one again and again. */
export function inTurn(...replies: readonly Reply[]): Answer {
  let next = 0;
  return () => replies[Math.min(next++, replies.length - 1)] ?? {};
}

/** What a promise is rejected with. */
export async function refusalOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => Promise.reject(new Error('it was not refused')),
    (error: unknown) => error,
  );
}

/** An answer that begins with its headers and says no more. */
export const SILENT: Reply = { headers: { 'content-type': 'text/event-stream' }, live: () => undefined };
