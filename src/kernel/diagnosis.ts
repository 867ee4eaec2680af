/** What `capstan doctor` finds: the words between whoever looks and whoever shows it. */

/** Something that is wrong, and what a person does about it. Each is one sentence without a full stop. */
export interface Fault {
  readonly what: string;
  readonly remedy: string;
  /** TypeID of what it is about, and the law that this breaks. */
  readonly object?: string;
  readonly law?: string;
}

export interface Check {
  readonly name: string;
  /** What was found, when all is well. */
  readonly summary: string;
  readonly faults: readonly Fault[];
  /** What could not be looked at, or not all of it, and why. */
  readonly notes: readonly string[];
}

export type Diagnosis =
  | { readonly kind: 'looked'; readonly checks: readonly Check[] }
  | { readonly kind: 'settings'; readonly faults: readonly string[] }
  | { readonly kind: 'unreachable'; readonly why: string };

/** How far a long look has come. */
export type OnProgress = (line: string) => void;
