/**
 * The submits in a batch file: JSON lines, one submit a line; or one JSON document, a list of them or an object with such a
 * list as its `runs`. Pure. Invariant: a line that can't be understood is named, and then nothing of the file is.
 */
import { isFields } from './decode.js';
import { wrongUsage } from './failure.js';

export interface Entry {
  /** What a person calls it: `line 7`, or `run 7` of a list. */
  readonly place: string;
  readonly submit: unknown;
  readonly bytes: number;
}

/** What the server takes at once, with room for what is around them. */
const MOST_ITEMS = 1_000;
const MOST_BYTES = 15 * 1024 * 1024;

/** `source` is the file. Fails with `usage`. */
export function entriesIn(text: string, source: string): readonly Entry[] {
  const list = listIn(text);
  const entries = list === undefined ? linesIn(text, source) : list.map(entryAt);
  if (entries.length === 0) throw wrongUsage(`${source} holds no runs`, 'one a line: {"kind": "noop"}');
  const large = entries.find(({ bytes }) => bytes > MOST_BYTES);
  if (large) throw wrongUsage(`${source}, ${large.place}: longer than ${MOST_BYTES} bytes`);
  return entries;
}

/** A document that is a list, or has one; JSON lines are no document, unless it is one line alone. */
function listIn(text: string): readonly unknown[] | undefined {
  const document = parsed(text);
  if (Array.isArray(document)) return document;
  return isFields(document) && Array.isArray(document.runs) ? document.runs : undefined;
}

function entryAt(submit: unknown, index: number): Entry {
  return { place: `run ${index + 1}`, submit, bytes: Buffer.byteLength(JSON.stringify(submit)) };
}

function linesIn(text: string, source: string): Entry[] {
  const whole = parsed(text);
  // A single submit over several lines.
  if (isFields(whole) && text.trim().includes('\n')) return [entryAt(whole, 0)];
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    const place = `line ${index + 1}`;
    const submit = parsed(line);
    if (isFields(submit)) return [{ place, submit, bytes: Buffer.byteLength(line) }];
    throw wrongUsage(`${source}, ${place}: expected a JSON object, such as {"kind": "noop"}`);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** In parts that the server takes, in their order. */
export function inParts(entries: readonly Entry[]): readonly (readonly Entry[])[] {
  const parts: Entry[][] = [];
  let [part, bytes]: [Entry[], number] = [[], 0];
  for (const entry of entries) {
    if (part.length === MOST_ITEMS || bytes + entry.bytes > MOST_BYTES) {
      parts.push(part);
      [part, bytes] = [[], 0];
    }
    part.push(entry);
    bytes += entry.bytes + 1;
  }
  return [...parts, part];
}
