/** What a server says of itself and of its sessions. */

export interface ServerFacts {
  /** As whom the doctor looks. */
  readonly role: string;
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

/** Sessions that this role may not look into, and that keep dead rows now: since when can't be known. */
export interface HiddenSnapshots {
  readonly sessions: number;
  /** The one that asks for the oldest rows. */
  readonly pid: number | null;
  /** How many transactions have begun since then. */
  readonly transactions: number;
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
