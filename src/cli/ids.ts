/** Ids and names on a command line. */
import { QUEUE_NAME } from '../kernel/run-words.js';
import { wrongUsage } from './failure.js';

/** The outside form of an id, or the UUID in it. Its package is not for a client: it takes long to load. */
const RUN_ID = /^(run_[0-7][0-9a-hjkmnp-tv-z]{25}|[\da-fA-F]{8}(-[\da-fA-F]{4}){3}-[\da-fA-F]{12})$/;
const TOKEN_ID = /^tok_[0-7][0-9a-hjkmnp-tv-z]{25}$/;
const WORKER_ID = /^(wrk_[0-7][0-9a-hjkmnp-tv-z]{25}|[\da-fA-F]{8}(-[\da-fA-F]{4}){3}-[\da-fA-F]{12})$/;

/** Whether there is such a run is the server's to say; what can't be an id is a slip. */
export function idIn(args: readonly string[]): string {
  const [id = ''] = args;
  if (RUN_ID.test(id)) return id;
  const detail = 'expected the id of a run: run_ and 26 characters, such as run_01h455vb4pex5vsknk084sn02q, or a UUID';
  throw wrongUsage(detail, 'look: capstan runs');
}

/** Who made runs. The name of a token is not enough: several may bear it. */
export function principalIn(text: string): string {
  if (TOKEN_ID.test(text)) return text;
  const detail = '--principal: expected the id of a token, tok_ and 26 characters; names are not searched by';
  throw wrongUsage(detail, 'see who made a run: capstan show RUN_ID');
}

/** `flag` is where it stands; none for an operand. */
export function queueIn(text: string, flag?: string): string {
  if (QUEUE_NAME.test(text)) return text;
  const rule = 'lower-case letters, digits and . _ - behind a letter or digit, up to 63 characters';
  const detail = `${flag === undefined ? '' : `${flag}: `}expected the name of a queue: ${rule}`;
  throw wrongUsage(detail, 'look: capstan queues');
}

/** A worker may be called by its name too; what looks like an id is one. */
export function isWorkerId(text: string): boolean {
  return WORKER_ID.test(text);
}
