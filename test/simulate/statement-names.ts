/** What a statement is called and whether it writes, found out without sending it: for traces, and to spare looks. */
import type { Statement } from './lane.js';

interface Named {
  readonly name: string;
  readonly writes: boolean;
}

/** By the text of a template, which is one and the same array at each call. */
const known = new WeakMap<readonly string[], Named>();

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function isWriting(text: string): boolean {
  return /\b(insert|update|delete)\b|audit_append/.test(text);
}

/** A run that a statement names, with the fence under which it would write. */
export interface Names {
  readonly runId: string;
  readonly fence: number;
}

export interface Made extends Named {
  /** Its first value that is an id: of a holder's statement the holder. */
  readonly worker: string;
  readonly names: readonly Names[];
}

/** Makes the statement with an `sql` that sends nothing. */
export function nameOf(statement: Statement): Made {
  let text: readonly string[] = [];
  let values: readonly unknown[] = [];
  const note = (strings: readonly string[], ...rest: unknown[]) => {
    // Fragments are made first, the whole last.
    [text, values] = [strings, rest];
    return undefined;
  };
  const sql = Object.assign(note, { json: (value: unknown) => value, array: note, unsafe: note });
  void statement(sql as unknown as Parameters<Statement>[0]);
  const worker = values.find((value): value is string => typeof value === 'string' && UUID.test(value)) ?? '';
  const names = values.flatMap((value) => (Array.isArray(value) ? value.filter(isName) : []));
  return { ...named(text), worker, names };
}

function named(text: readonly string[]): Named {
  const found = known.get(text);
  if (found) return found;
  const frame = new Error('where').stack?.split('\n').find((line) => /\.sql\.ts/.test(line));
  const made = {
    name: frame?.match(/at (?:async )?([\w.]+) /)?.[1] ?? 'a statement',
    writes: isWriting(text.join(' ')),
  };
  known.set(text, made);
  return made;
}

function isName(value: unknown): value is Names {
  return typeof value === 'object' && value !== null && 'runId' in value && 'fence' in value;
}
