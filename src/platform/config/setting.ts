/**
 * What a setting is. `settings.ts` declares each one once; its parser, its words and its default all come from
 * there. Invariant: a default that the setting's own parser refuses cannot be declared.
 */
import { Bug } from '../../kernel/problems.js';

/** Variables by name, as the operating system gives them. An empty text counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Why the settings cannot be used: which variable, and a sentence that holds no value that was given. */
export interface Fault {
  readonly name: string;
  readonly message: string;
}

/** JSON Schema (draft 7) of a value before it is text, e.g. in the chart. Its patterns are read by Go too: no lookaround. */
export type ValueSchema = Readonly<Record<string, unknown>>;

/** Turns text into a value, or `undefined` when the text is not what `expects` says. */
export interface Parser<T> {
  readonly expects: string;
  readonly parse: (text: string) => T | undefined;
  /** Takes whatever `parse` takes, and refuses what a schema can; any text when left out. */
  readonly schema?: ValueSchema;
}

export type SettingGroup = 'Database' | 'Server' | 'Worker' | 'Lease' | 'Runs' | 'Audit' | 'Logging';

/** What holds when nothing is set. `shown` is text of the setting when `literal`, otherwise a description. */
export interface Fallback<T> {
  readonly shown: string;
  readonly literal: boolean;
  readonly value: () => T;
}

export interface Setting<T> {
  /** The variable; a secret may come as `<name>_FILE` instead, the path of a file that holds it. */
  readonly name: string;
  readonly group: SettingGroup;
  readonly expects: string;
  readonly parse: (text: string) => T | undefined;
  readonly schema: ValueSchema;
  readonly fallback: Fallback<T>;
  readonly isSecret: boolean;
  /** One line. */
  readonly help: string;
}

/** The variable that names the file of a secret. */
export function fileVariable(name: string): string {
  return `${name}_FILE`;
}

interface Declaration<T> {
  readonly name: string;
  readonly group: SettingGroup;
  readonly value: Parser<T>;
  readonly secret?: true;
  readonly help: string;
}

/** A setting that always has a value: `default` is its text, or a description and a way to get it. */
export function setting<T>(
  declared: Declaration<T> & { readonly default: string | { readonly shown: string; readonly value: () => T } },
): Setting<T> {
  const fallback = declared.default;
  if (typeof fallback !== 'string') return build(declared, { ...fallback, literal: false });
  const value = declared.value.parse(fallback);
  if (value === undefined) throw new Bug(`the default of ${declared.name} is not ${declared.value.expects}`);
  return build(declared, { shown: fallback, literal: true, value: () => value });
}

/** A setting that may have no value; `unset` says what that means. */
export function optional<T>(declared: Declaration<T> & { readonly unset: string }): Setting<T | undefined> {
  return build<T | undefined>(declared, { shown: declared.unset, literal: false, value: () => undefined });
}

function build<T>(declared: Declaration<T>, fallback: Fallback<T>): Setting<T> {
  return Object.freeze({
    name: declared.name,
    group: declared.group,
    expects: declared.value.expects,
    parse: declared.value.parse,
    schema: Object.freeze(declared.value.schema ?? { type: 'string', minLength: 1 }),
    fallback: Object.freeze(fallback),
    isSecret: declared.secret === true,
    help: declared.help,
  });
}
