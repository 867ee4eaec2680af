/** What is missing of a schema, or doesn't work any more. Pure. */
import type { Fault } from '../kernel/diagnosis.js';
import type { FoundPart, Part, SchemaState } from './catalog.js';

const IS_FOR: Readonly<Record<Part['kind'], string>> = Object.freeze({
  table: 'every migrated database has it',
  trigger: 'it refuses changes that nobody may make',
  'unique index': 'it keeps from being there twice what may be there once',
  index: 'without it statements read whole tables',
  constraint: 'it refuses rows that contradict themselves or others',
  function: 'every replica calls it',
});

/** One fault for each part; a table that is gone is told, and not what went with it. */
export function partFaults(parts: readonly Part[], found: readonly FoundPart[]): Fault[] {
  const at = new Map(found.map((part) => [keyOf(part), part]));
  const gone = new Set(parts.filter((part) => part.kind === 'table' && !at.has(keyOf(part))).map(({ name }) => name));
  return parts
    .filter(({ on }) => on === undefined || !gone.has(on))
    .flatMap((part) => {
      const there = at.get(keyOf(part));
      const is = wordsFor(part, there);
      return is === undefined
        ? []
        : [{ what: `${nameOf(part)} ${is}: ${IS_FOR[part.kind]}`, remedy: remedy(part, there) }];
    });
}

export function stateFaults({ isReplica, setBy, isNameless }: SchemaState): Fault[] {
  const faults: Fault[] = setBy.map((statement) => ({
    what: `no trigger fires in sessions here, by: ${statement} set session_replication_role = replica`,
    remedy: `${statement} reset session_replication_role, then restart the replicas one by one`,
  }));
  if (isReplica && setBy.length === 0) {
    faults.push({
      what: 'no trigger fires in this session: session_replication_role is replica',
      remedy: 'find who set it (postgresql.conf, options of the connection), and set it to origin',
    });
  }
  if (isNameless) {
    faults.push({
      what: 'the row of the table installation is gone: its chain, its keys and its bundles have no name any more',
      remedy: 'somebody removed it: put that row back from a backup before a replica starts',
    });
  }
  return faults;
}

function keyOf({ kind, name, on }: Part | FoundPart): string {
  return JSON.stringify([kind, name, on ?? null]);
}

function nameOf({ kind, name, on }: Part): string {
  return `the ${kind} ${name}${on === undefined ? '' : ` of ${on}`}`;
}

/** What is wrong with it; `undefined` when nothing is. */
function wordsFor({ kind, body }: Part, there: FoundPart | undefined): string | undefined {
  if (there === undefined) return 'is missing';
  if (body !== undefined && body !== there.body) return 'has another text than the migrations gave it';
  if (there.isWorking) return undefined;
  return kind === 'trigger' ? 'is disabled' : 'is not valid';
}

function remedy({ kind, name, on }: Part, there: FoundPart | undefined): string {
  if (kind === 'table') return 'restore it from a backup';
  if (there === undefined || kind === 'function') {
    return "find out who changed it, and make it again as the program's folder migrations/ does";
  }
  if (kind === 'trigger') return `find out who did that, then: alter table ${on} enable trigger ${name}`;
  if (kind === 'constraint') return `enable its triggers (alter table ${on} enable trigger all), or validate it`;
  return `reindex index concurrently ${name}`;
}
