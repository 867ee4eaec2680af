/** What a server says of itself and of its sessions. */

export interface ServerFacts {
  readonly version: string;
  readonly versionNumber: number;
  readonly encoding: string;
  /** A standby, or a server that is being recovered. */
  readonly isRecovering: boolean;
  readonly isReadOnly: boolean;
  /** Sessions in this database that this role may not look into. */
  readonly hiddenSessions: number;
  readonly isAutovacuumOn: boolean;
}

/** How many connections there are and may be, of one bound: the server's, the database's, or the role's. */
export interface ConnectionUse {
  readonly bound: 'server' | 'database' | 'role';
  readonly used: number;
  readonly most: number;
  /** The applications with the most of them, `name (count)`. */
  readonly who: string[];
}

/** What keeps vacuum from removing dead rows: all that is older than it stays. */
export type Holder =
  | {
      readonly kind: 'session';
      readonly pid: number;
      readonly user: string | null;
      readonly application: string | null;
      readonly state: string | null;
      readonly minutes: number;
    }
  | { readonly kind: 'prepared'; readonly name: string; readonly user: string; readonly minutes: number }
  | { readonly kind: 'slot'; readonly name: string; readonly isActive: boolean; readonly transactions: number }
  | { readonly kind: 'standby'; readonly name: string; readonly transactions: number };

/** A table whose dead rows pile up, or that autovacuum was told to leave alone. */
export interface DeadRows {
  readonly table: string;
  readonly live: number;
  readonly dead: number;
  /** Since it was vacuumed; null when it never was. */
  readonly vacuumedMinutes: number | null;
  readonly isBeingVacuumed: boolean;
  readonly isLeftAlone: boolean;
}
