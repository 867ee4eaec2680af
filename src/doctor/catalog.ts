/** The parts of a schema: what migrations make, and how it was found. */

export interface Part {
  readonly kind: 'table' | 'trigger' | 'unique index' | 'index' | 'constraint' | 'function';
  /** Of a function with the types of its arguments. */
  readonly name: string;
  /** Its table. */
  readonly on?: string;
  /** MD5 of a function's text. */
  readonly body?: string;
}

export interface FoundPart {
  readonly kind: Part['kind'];
  readonly name: string;
  readonly on: string | null;
  readonly body: string | null;
  /** A trigger fires, an index is valid, a constraint was validated and is kept. */
  readonly isWorking: boolean;
}

export interface SchemaState {
  /** This very session fires no triggers. */
  readonly isReplica: boolean;
  /** The statements, without their setting, that made sessions here fire no triggers. */
  readonly setBy: readonly string[];
  /** There are organizations or chains, and the installation has no row. */
  readonly isNameless: boolean;
}
