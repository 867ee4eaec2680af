/** An entry as callers see it: what its canonical text says, and the receipt that names it. */

/** An entry as it is stored, without the columns that only find it. */
export interface EntryRow {
  readonly chain: string;
  readonly seq: number;
  readonly claim: string;
  /** Lower-case hex. */
  readonly link: string;
}

/** Members that the entry lacks are null: all of them, where its text was tampered with until it is no JSON. */
export interface Entry {
  readonly seq: number;
  readonly at: string | null;
  readonly action: string | null;
  readonly principal: string | null;
  readonly principalName: string | null;
  readonly object: string | null;
  readonly run: string | null;
  readonly payload: Readonly<Record<string, unknown>> | null;
  readonly receipt: string;
}

export function entryOf({ chain, seq, claim, link }: EntryRow): Entry {
  const { at, payload } = membersOf(parsed(claim)) ?? {};
  const members = membersOf(payload);
  const text = (name: string) => textOf(members?.[name]);
  const object = text('object');
  const action = text('action');
  // A queue may be called what a run is.
  const isOfRun = object?.startsWith('run_') && !action?.startsWith('queue.');
  return {
    seq,
    at: textOf(at),
    action,
    principal: text('principal'),
    principalName: text('principalName'),
    object,
    run: isOfRun ? object : null,
    payload: members ?? null,
    receipt: receiptText({ chain, seq, link }),
  };
}

/** What a receipt names. */
export interface Receipt {
  readonly chain: string;
  readonly seq: number;
  readonly link: string;
}

const RECEIPT = /^([A-Za-z0-9_.-]{1,64}):([1-9]\d{0,14}):([0-9a-f]{64})$/;

/** `undefined` for a text that no mutation ever answered with. */
export function receiptIn(text: string): Receipt | undefined {
  const [, chain, seq, link] = RECEIPT.exec(text) ?? [];
  return chain && link ? { chain, seq: Number(seq), link } : undefined;
}

function receiptText({ chain, seq, link }: Receipt): string {
  return `${chain}:${seq}:${link}`;
}

function parsed(claim: string): unknown {
  try {
    return JSON.parse(claim);
  } catch {
    return undefined;
  }
}

function membersOf(value: unknown): Record<string, unknown> | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  // Decoding: a JSON value that is an object and no list has members by name.
  return isObject ? (value as Record<string, unknown>) : undefined;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
