/** `Prefer` (RFC 7240): what a caller would like but doesn't insist on. What can't be understood is ignored. */
import type { FastifyReply, FastifyRequest } from 'fastify';

const LONGEST_WAIT_SECONDS = 60;
/** A comma inside a quoted string separates nothing. */
const PREFERENCES = /(?:"(?:[^"\\]|\\.)*"|[^,"])+/g;
const NAMES_WAIT = /^[ \t]*wait[ \t]*(?:[=;]|$)/i;
const WAIT = /^[ \t]*wait[ \t]*=[ \t]*(?:(\d+)|"(\d+)")[ \t]*(?:;.*)?$/i;

/**
 * For how many seconds the caller would wait for the answer, 1 to 60; undefined when nothing (valid) was said. Of
 * several only the first counts.
 */
export function preferredWaitOf(request: FastifyRequest): number | undefined {
  const given = request.headers.prefer;
  const header = Array.isArray(given) ? given.join(',') : (given ?? '');
  const preference = header.match(PREFERENCES)?.find((one) => NAMES_WAIT.test(one));
  const [, plain, quoted] = WAIT.exec(preference ?? '') ?? [];
  const seconds = Number(plain ?? quoted ?? 0);
  return seconds >= 1 ? Math.min(seconds, LONGEST_WAIT_SECONDS) : undefined;
}

/** Aborts when the caller goes away before it was answered (and, to no effect, after that). */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort();
  else reply.raw.once('close', () => gone.abort());
  return gone.signal;
}

/** Drops an error that nobody is there to be told of. */
export function unlessGone(signal: AbortSignal): (error: unknown) => undefined {
  return (error) => {
    if (!signal.aborted) throw error;
    return undefined;
  };
}
