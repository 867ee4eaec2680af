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

/** Ten bits as two characters of a TypeID's alphabet. */
const TEN_BITS = [...'0123456789abcdefghjkmnpqrstvwxyz'].flatMap((high, _, alphabet) =>
  alphabet.map((low) => high + low),
);

/**
 * The outside form of a UUID: `<prefix>_<26 characters>`. Throws when `uuid` is none. Written out here, because each answer
 * holds several and the library takes four times as long.
 */
export function encodeId(prefix: IdPrefix, uuid: string): string {
  if (!validate(uuid)) throw new TypeError('not a UUID');
  const hex = uuid.replaceAll('-', '');
  let text = `${prefix}_${TEN_BITS[Number.parseInt(hex.slice(0, 2), 16)]}`;
  for (let at = 2; at < hex.length; at += 5) {
    const bits = Number.parseInt(hex.slice(at, at + 5), 16);
    text += `${TEN_BITS[bits >> 10]}${TEN_BITS[bits & 1_023]}`;
  }
  return text;
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
