/** What a person wants to know of audit entries: which runs there were and how they ended, and what else was changed. Pure. */

/** One entry of a bundle. Its payload may hold anything: another product may have written it. */
export interface Entry {
  readonly seq: number;
  readonly at: string;
  readonly type: string;
  readonly link: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A run as far as the entries at hand tell; what happened outside of them is null. */
export interface RunFacts {
  readonly id: string;
  name: string | null;
  kind: string | null;
  queue: string | null;
  submittedBy: string | null;
  submittedAt: string | null;
  rerunOf: string | null;
  canceledBy: string | null;
  startedAt: string | null;
  endedAt: string | null;
  state: string | null;
  code: string | null;
  exitCode: string | null;
  worker: string | null;
  /** Sequence numbers of its entries. */
  readonly entries: number[];
}

export interface ReportFacts {
  readonly runs: readonly RunFacts[];
  /** Entries that are about no run. */
  readonly changes: readonly Entry[];
  /** How many entries each action has, most first. */
  readonly actions: readonly (readonly [action: string, count: number])[];
  /** How many entries each principal made, most first. */
  readonly principals: readonly (readonly [principal: string, count: number])[];
  /** How many runs ended in each state, most first. */
  readonly states: readonly (readonly [state: string, count: number])[];
}

export function reportFacts(entries: readonly Entry[]): ReportFacts {
  const runs = new Map<string, RunFacts>();
  const changes: Entry[] = [];
  for (const entry of entries) {
    const object = memberOf(entry, 'object');
    if (actionOf(entry).startsWith('run.') && object !== null) note(runFor(runs, object), entry);
    else changes.push(entry);
  }
  const all = [...runs.values()];
  return {
    runs: all,
    changes,
    actions: counted(entries.map(actionOf)),
    principals: counted(entries.map(principalOf).filter((name) => name !== null)),
    states: counted(all.map(({ state }) => state).filter((state) => state !== null)),
  };
}

export function actionOf(entry: Entry): string {
  return memberOf(entry, 'action') ?? entry.type;
}

/** `name (id)`, or what there is of it. */
export function principalOf(entry: Entry): string | null {
  const [id, name] = [memberOf(entry, 'principal'), memberOf(entry, 'principalName')];
  return id !== null && name !== null ? `${name} (${id})` : (id ?? name);
}

/** A member of the payload as text; null when it is absent or empty. */
export function memberOf(entry: Entry, name: string): string | null {
  const value = Object.hasOwn(entry.payload, name) ? entry.payload[name] : null;
  if (value === null || value === undefined || value === '') return null;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The members that have no column of their own, as `name value`. */
export function detailsOf(entry: Entry): string[] {
  const shown = new Set(['action', 'object', 'principal', 'principalName']);
  return Object.keys(entry.payload)
    .filter((name) => !shown.has(name))
    .map((name) => `${name} ${memberOf(entry, name) ?? ''}`);
}

function runFor(runs: Map<string, RunFacts>, id: string): RunFacts {
  const known = runs.get(id);
  if (known) return known;
  const run: RunFacts = {
    id,
    name: null,
    kind: null,
    queue: null,
    submittedBy: null,
    submittedAt: null,
    rerunOf: null,
    canceledBy: null,
    startedAt: null,
    endedAt: null,
    state: null,
    code: null,
    exitCode: null,
    worker: null,
    entries: [],
  };
  runs.set(id, run);
  return run;
}

function note(run: RunFacts, entry: Entry): void {
  run.entries.push(entry.seq);
  const action = actionOf(entry);
  if (action === 'run.submitted') {
    run.name = memberOf(entry, 'name');
    run.kind = memberOf(entry, 'kind');
    run.queue = memberOf(entry, 'queue');
    run.submittedBy = principalOf(entry);
    run.submittedAt = entry.at;
    run.rerunOf = memberOf(entry, 'rerunOf');
  } else if (action === 'run.cancel_requested') {
    run.canceledBy = principalOf(entry);
  } else if (action === 'run.ended') {
    run.startedAt = memberOf(entry, 'startedAt');
    run.endedAt = memberOf(entry, 'endedAt') ?? entry.at;
    run.state = memberOf(entry, 'state');
    run.code = memberOf(entry, 'code');
    run.exitCode = memberOf(entry, 'exitCode');
    run.worker = memberOf(entry, 'worker');
    // One that hadn't started is ended by whoever canceled it.
    if (run.state === 'canceled' && run.worker === null) run.canceledBy ??= principalOf(entry);
  }
}

function counted(names: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}
