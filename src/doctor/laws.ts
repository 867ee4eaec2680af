/**
 * The laws that hold in an installation at every instant: a stable name, what holds, and what to do when it doesn't.
 * They are checked in `runs.sql.ts`, `standing.sql.ts` and `keys.sql.ts`. Each change of the product is one statement,
 * so what one statement sees is whole, and none of this needs a grace but where time is said.
 */

const TAMPERED =
  'no version of Capstan writes this: find out who else wrote to the database, and compare with a backup or a bundle';
const TAMPERED_RECORD =
  'record and audit chain were written together: run `capstan audit verify`; if the chain holds, the record was ' +
  'changed by somebody else';

interface Law {
  /** One sentence. */
  readonly holds: string;
  /** What a person does about a violation. */
  readonly remedy: string;
}

export const LAWS = Object.freeze({
  one_standing: {
    holds: 'a run has a live row exactly until it has ended',
    remedy: TAMPERED,
  },
  live_copies: {
    holds: 'what a live row repeats of its run says the same as the record',
    remedy: TAMPERED,
  },
  live_holder: {
    holds: 'a claimed or running run has one holder, whose life is known, under a fence of its own; others have none',
    remedy: TAMPERED,
  },
  outcome: {
    holds: 'the parts of an outcome agree: state, code, who held the run, whether a tool ran, who ended it',
    remedy: TAMPERED,
  },
  listed: {
    holds: 'an ended run is in the list of its state',
    remedy: TAMPERED,
  },
  event_numbers: {
    holds: 'the events of a run are numbered 1, 2, 3 … without a gap, up to the number that its standing says',
    remedy: TAMPERED,
  },
  event_ends: {
    holds: 'the first event of a run is its submit, and the last is its end exactly when it has ended',
    remedy: TAMPERED,
  },
  end_event: {
    holds: 'the event of an end says what the record says: state, code, kind, detail, exit code, signal, fence, time',
    remedy: TAMPERED_RECORD,
  },
  audit_submit: {
    holds:
      'a run has exactly one audit entry of its submit, which says what the record says: ' +
      'kind, name, queue, origin, principal, digest of the spec',
    remedy: TAMPERED_RECORD,
  },
  audit_end: {
    holds:
      'an ended run, and no other, has exactly one audit entry of its end, which says what the record says: ' +
      'outcome, worker, who ended it, times, digest of the spec',
    remedy: TAMPERED_RECORD,
  },
  audit_changes: {
    holds: 'each requeue and each cancel request of a run has exactly one event and one audit entry',
    remedy: TAMPERED_RECORD,
  },
  audit_chain: {
    holds: "audit entries about a run stand in its organization's chain",
    remedy: TAMPERED_RECORD,
  },
  audit_run: {
    holds:
      'audit entries are about runs that there are, or that ended before the time up to which old runs were removed',
    remedy: 'the chain remembers a run that was removed past Capstan: find out by whom, and restore it from a backup',
  },
  starts_once: {
    holds: 'a run starts at most once: its output and reports stand under the one fence that it was started under',
    remedy: 'a tool may have run twice, or without its run: look at what it did, then at who wrote to the database',
  },
  family: {
    holds: 'a child has the organization and the root of its parent, and a run without a parent is its own root',
    remedy: TAMPERED,
  },
  life_state: {
    holds: 'a life is stopped or lost exactly when its end is known',
    remedy: TAMPERED,
  },
  ended_life: {
    holds: 'two minutes after its end a life holds no run, while another can settle what it held',
    remedy: "look for loop_failed of the janitor in the replicas' logs, and restart the replicas one by one",
  },
  lease_over: {
    holds: 'a life whose lease is over is found lost within two minutes, while another can do so',
    remedy: "look for loop_failed of the janitor in the replicas' logs, and restart the replicas one by one",
  },
  due: {
    holds: 'a run whose time has come is claimable within two minutes, while a replica is connected',
    remedy: "look for loop_failed of the work loop in the replicas' logs, and restart the replicas one by one",
  },
  cancel_heeded: {
    holds: 'a connected holder stops a run within two minutes of the request, or of its connection',
    remedy: "look at that replica's log; restart it, and the run ends with it",
  },
  claim_moves_on: {
    holds: 'a connected holder starts what it claimed, or gives it back, within two minutes',
    remedy: "look at that replica's log; restart it, and what it claimed goes back to the queue",
  },
  key_owner: {
    holds: 'an idempotency key names a run of its own organization',
    remedy: TAMPERED,
  },
} satisfies Record<string, Law>);

export type LawName = keyof typeof LAWS;

export const LAW_NAMES = Object.freeze(Object.keys(LAWS).filter(isLawName));

/** What is judged only where somebody was surely able to act. */
export const TIMED_LAWS: readonly LawName[] = Object.freeze([
  'ended_life',
  'lease_over',
  'due',
  'cancel_heeded',
  'claim_moves_on',
]);

function isLawName(name: string): name is LawName {
  return name in LAWS;
}

/** Something of which a law doesn't hold. */
export interface Violation {
  readonly law: LawName;
  /** TypeID of what it is about. */
  readonly object: string;
  readonly detail: string;
}

/** What one look found, and how far it went. */
export interface Look<Place> {
  readonly violations: readonly Violation[];
  /** How many objects were looked at. */
  readonly looked: number;
  /** Where the next look goes on; undefined behind the last object. */
  readonly next: Place | undefined;
}
