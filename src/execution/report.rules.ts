/**
 * From the bytes that a tool reported to events and an output, or to the reason why not. Pure. Invariant: whatever the
 * bytes are, memory is bounded by one line, a reason never quotes them, and what comes out can be stored as it is.
 */
import { findUnstorable, type JsonValue } from '../kernel/json.js';
import { findPrototypeAccess, isTooDeep, MAX_DEPTH } from '../platform/http/json-body.js';
import { MAX_OUTPUT_FILE_BYTES, type UnreadReason } from './supervisor/protocol.js';

export const MAX_LINE_BYTES = 256 * 1024;
/** Of the data of one progress, as JSON: it is read with every list of runs. */
export const MAX_PROGRESS_BYTES = 16 * 1024;

export type ReportData = { [key: string]: JsonValue };

/** One line of an events file. */
export interface ReportLine {
  /** Counted from 1, over everything that was read. */
  readonly number: number;
  /** Without its newline; null when it was too long to be kept. */
  readonly bytes: Buffer | null;
}

/** `refused` is for people. */
export type Refused = { readonly refused: string };
export type DecodedReport = { readonly type: string; readonly data: ReportData } | Refused;

const NEWLINE = 0x0a;
const TYPE = /^(?!run\.)[a-z][a-z0-9._-]{0,62}$/;
const BLANK = /^[ \t\r\n]*$/;

/** What people are told of a file that was not read. */
export const UNREAD_TEXTS: Readonly<Record<UnreadReason, string>> = {
  not_a_file: 'what stands in its place is not a regular file: nothing of it was read',
  unreadable: 'the file could not be read',
  cut: 'the file was not read to its end: the tool was told to stop, or its folder did not answer',
};

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Cuts an events file into lines, however it was split on the way. */
export class ReportLines {
  #held = Buffer.alloc(0);
  /** Of the line so far, counted on when it is too long to be held. */
  #heldBytes = 0;
  #number = 1;

  /** The lines that `chunk` completes. One may share its memory. */
  *read(chunk: Buffer): Generator<ReportLine> {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      yield this.#complete(chunk.subarray(from, end));
      from = end + 1;
    }
    this.#hold(chunk.subarray(from));
  }

  /** A last line that no newline ended. */
  rest(): ReportLine | null {
    return this.#heldBytes === 0 ? null : this.#complete(Buffer.alloc(0));
  }

  #complete(tail: Buffer): ReportLine {
    const number = this.#number;
    this.#number += 1;
    if (this.#heldBytes === 0 && tail.length <= MAX_LINE_BYTES) return { number, bytes: tail };
    this.#hold(tail);
    const bytes = this.#heldBytes;
    this.#heldBytes = 0;
    return { number, bytes: bytes > MAX_LINE_BYTES ? null : Buffer.from(this.#held.subarray(0, bytes)) };
  }

  /** Copied into one growing buffer: a piece of a few bytes would keep the whole chunk that it came in. */
  #hold(piece: Buffer): void {
    const before = this.#heldBytes;
    this.#heldBytes += piece.length;
    if (this.#heldBytes > MAX_LINE_BYTES) return;
    if (this.#heldBytes > this.#held.length) {
      const larger = Buffer.alloc(Math.max(2 * this.#held.length, this.#heldBytes));
      this.#held.copy(larger, 0, 0, before);
      this.#held = larger;
    }
    piece.copy(this.#held, before);
  }
}

/** The event that a line reports; null for a blank one. */
export function decodeReport(line: ReportLine): DecodedReport | null {
  if (line.bytes?.length === 0) return null;
  if (line.bytes === null) return { refused: `longer than ${MAX_LINE_BYTES} bytes` };
  const decoded = decodeJson(line.bytes);
  if (decoded === null || 'refused' in decoded) return decoded;
  const { value } = decoded;
  if (!isObject(value)) return { type: 'message', data: { value } };
  const { type = 'message', ...data } = value;
  if (typeof type !== 'string' || !TYPE.test(type)) {
    return { refused: 'its type must match ^[a-z][a-z0-9._-]{0,62}$ and not begin with "run."' };
  }
  if (type === 'progress' && Buffer.byteLength(JSON.stringify(data)) > MAX_PROGRESS_BYTES) {
    return { refused: `a progress of more than ${MAX_PROGRESS_BYTES} bytes` };
  }
  return { type, data };
}

/** The value that an output file holds; of one that is blank, null. `bytes` is at most one byte more than is allowed. */
export function decodeOutput(bytes: Buffer): { readonly value: JsonValue } | Refused {
  if (bytes.length > MAX_OUTPUT_FILE_BYTES) return { refused: `longer than ${MAX_OUTPUT_FILE_BYTES} bytes` };
  return decodeJson(bytes) ?? { value: null };
}

function decodeJson(bytes: Buffer): { readonly value: JsonValue } | Refused | null {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { refused: 'not valid UTF-8' };
  }
  if (BLANK.test(text)) return null;
  if (isTooDeep(text)) return { refused: `nested deeper than ${MAX_DEPTH} levels` };
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return { refused: 'not valid JSON' };
  }
  // Not the place: it is made of the tool's own words.
  if (findPrototypeAccess(value) !== undefined) return { refused: 'a member has a name that is not allowed' };
  const fault = findUnstorable(value);
  return fault ? { refused: `a value in it cannot be stored: ${fault.message}` } : { value };
}

function isObject(value: JsonValue): value is ReportData {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
