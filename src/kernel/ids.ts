/**
 * Identifiers. Inside (tables, code) an id is a UUIDv7 in lower case; outside (API, logs, audit) it is a TypeID
 * such as `run_01h455vb4pex5vsknk084sn02q`, so that a person sees what it names.
 */
import { TypeID } from 'typeid-js';
import { v7, validate } from 'uuid';

export type IdPrefix = 'ins' | 'run' | 'org' | 'tok' | 'wrk' | 'req' | 'lsb';

/** A new UUIDv7, lower case. */
export function newId(): string {
  return v7();
}

/** The outside form of a UUID: `<prefix>_<26 characters>`. Throws when `uuid` is none. */
export function encodeId(prefix: IdPrefix, uuid: string): string {
  return TypeID.fromUUID(prefix, uuid).toString();
}

/** Reads a TypeID of this prefix, or a plain UUID, into a lower-case UUID; `undefined` when it is neither. */
export function decodeId(prefix: IdPrefix, text: string): string | undefined {
  if (validate(text)) return text.toLowerCase();
  try {
    const id = TypeID.fromString(text);
    return id.getType() === prefix ? id.toUUID() : undefined;
  } catch {
    return undefined;
  }
}
