/** What is wrong with a server, from what it says of itself. Pure. */
import type { Check, Fault } from '../kernel/diagnosis.js';
import type { ConnectionUse, DeadRows, HiddenSnapshots, Holder, ServerFacts } from './server.js';

const OLDEST_SERVER = 150_000;
/** Of the connections that there may be. */
const NEARLY_ALL = 0.9;
/** Fewer dead rows are gone with the next round of autovacuum. */
const MANY_DEAD = 100_000;
/** A burst leaves fewer behind between two rounds, which are a minute apart. */
const PILED_UP = 1_000_000;
/** Whoever asks for the rows of more transactions than these has done so for too long, even where they are many. */
const OLD_TRANSACTIONS = 1_000_000;
/** A round of autovacuum has come by then, however late. */
const ROUND_MINUTES = 5;

export function databaseCheck(facts: ServerFacts): Check {
  const { version, versionNumber, encoding, isRecovering, isReadOnly } = facts;
  const faults: Fault[] = [];
  if (versionNumber < OLDEST_SERVER) {
    faults.push({ what: `PostgreSQL ${version} is too old`, remedy: 'upgrade it to 15 or newer' });
  }
  if (encoding !== 'UTF8') {
    faults.push({
      what: `the database's encoding is ${encoding}`,
      remedy: 'create one with UTF8 and move the data there',
    });
  }
  if (isRecovering) {
    faults.push({
      what: 'this server is a standby, or is being recovered: it takes no writes',
      remedy: 'point DATABASE_URL at the primary',
    });
  } else if (isReadOnly) {
    faults.push({
      what: 'the database takes no writes: default_transaction_read_only is on',
      remedy: 'find who set it (pg_db_role_setting, postgresql.conf), and turn it off',
    });
  }
  return { name: 'database', summary: `PostgreSQL ${version}, ${encoding}, takes writes`, faults, notes: [] };
}

/** `undefined`: there is none. */
export function schemaCheck(applied: readonly string[] | undefined, known: readonly string[]): Check {
  const faults: Fault[] = [];
  const newer = (applied ?? []).filter((name) => !known.includes(name));
  const missing = known.filter((name) => !(applied ?? []).includes(name));
  if (newer.length > 0) {
    faults.push({
      what: `the schema is newer than this program: it has ${newer.at(-1)}, and the program ends at ${known.at(-1)}`,
      remedy: 'use the doctor of the newer program',
    });
  } else if (applied === undefined) {
    faults.push({
      what: 'there is no Capstan in this database',
      remedy: 'look at DATABASE_URL, or run `capstan migrate` to make one',
    });
  } else if (missing.length > 0) {
    faults.push({
      what: `the schema is older than this program: it lacks ${missing.length} migrations, the first ${missing[0]}`,
      remedy: 'run `capstan migrate`',
    });
  }
  return { name: 'schema', summary: `at ${known.at(-1)}, as this program has it`, faults, notes: [] };
}

export function connectionsCheck(uses: readonly ConnectionUse[], { hiddenSessions, role }: ServerFacts): Check {
  const faults = uses
    .filter(({ used, most }) => used >= most * NEARLY_ALL)
    .map(({ bound, used, most, who }) => ({
      what: `${used} of the ${most} connections that the ${bound} allows are taken, by ${who.join(', ')}`,
      remedy: `allow more (${SETTING_OF[bound]}), put a pooler in front, or find who leaves them open`,
    }));
  const [server] = uses.filter(({ bound }) => bound === 'server');
  return {
    name: 'connections',
    summary: server ? `${server.used} of ${server.most} are taken` : 'counted',
    faults,
    notes:
      hiddenSessions === 0
        ? []
        : [`sessions of other roles that can't be looked into: ${hiddenSessions}; ${grantLooks(role)}`],
  };
}

const SETTING_OF = {
  server: 'max_connections',
  database: 'alter database … connection limit',
  role: 'alter role … connection limit',
} as const;

function grantLooks(role: string): string {
  return `grant pg_read_all_stats (or pg_monitor) to ${role} to know`;
}

export function vacuumCheck(
  holders: readonly Holder[],
  tables: readonly DeadRows[],
  { isAutovacuumOn, role }: ServerFacts,
  hidden: HiddenSnapshots,
): Check {
  const faults: Fault[] = holders.map(faultOfHolder);
  if (hidden.transactions > OLD_TRANSACTIONS) {
    faults.push({
      what: `session ${hidden.pid} of another role keeps the dead rows of ${hidden.transactions} transactions`,
      remedy: `look into it (${grantLooks(role)}), or: select pg_terminate_backend(${hidden.pid})`,
    });
  }
  if (!isAutovacuumOn) {
    faults.push({
      what: 'autovacuum is off, so dead rows pile up and every claim gets slower',
      remedy: 'turn autovacuum and track_counts on',
    });
  }
  const isHeldBack = faults.length > 0;
  for (const each of tables) {
    const { table, live, dead, isLeftAlone } = each;
    if (isLeftAlone) {
      faults.push({
        what: `autovacuum is off for ${table}`,
        remedy: `alter table ${table} reset (autovacuum_enabled)`,
      });
    }
    if (dead > Math.max(MANY_DEAD, live) && (isHeldBack || isLeftAlone || isMissed(each))) {
      faults.push({
        what: `${table} has ${dead} dead rows beside ${live} others, and was vacuumed ${whenVacuumed(each)}`,
        remedy: `find what holds vacuum back (above, or in pg_stat_progress_vacuum), then: vacuum ${table}`,
      });
    }
  }
  if (hidden.sessions === 0) return { name: 'vacuum', summary: 'nothing holds it back', faults, notes: [] };
  const note =
    `sessions of other roles can't be looked into, and ${hidden.sessions} of them may hold it back: session ${hidden.pid} ` +
    `keeps the dead rows of ${hidden.transactions} transactions, nobody knows for how long; ${grantLooks(role)}`;
  return { name: 'vacuum', summary: 'nothing that can be looked into holds it back', faults, notes: [note] };
}

/** Nothing says why, but vacuum has not come where it should have. */
function isMissed({ dead, isBeingVacuumed, vacuumedMinutes }: DeadRows): boolean {
  return dead > PILED_UP && !isBeingVacuumed && (vacuumedMinutes === null || vacuumedMinutes >= ROUND_MINUTES);
}

function whenVacuumed({ vacuumedMinutes }: DeadRows): string {
  return vacuumedMinutes === null ? 'never' : `${vacuumedMinutes} minutes ago`;
}

function faultOfHolder(holder: Holder): Fault {
  switch (holder.kind) {
    case 'session': {
      const { pid, user, application, state, minutes } = holder;
      const who = `session ${pid} (${application || 'without a name'}, role ${user ?? 'unknown'}, ${state ?? 'background'})`;
      return {
        what: `${who} has had a transaction open for ${minutes} minutes: no row that died since can be removed`,
        remedy: `end what it does, or: select pg_terminate_backend(${pid})`,
      };
    }
    case 'prepared':
      return {
        what: `the prepared transaction ${holder.name} of ${holder.user} is ${holder.minutes} minutes old`,
        remedy: 'commit prepared, or rollback prepared, with that name',
      };
    case 'slot':
      return {
        what: `the replication slot ${holder.name} keeps the dead rows of ${holder.transactions} transactions${
          holder.isActive ? '' : ', and nobody is connected to it'
        }`,
        remedy: holder.isActive
          ? 'look at what its reader does, or end the long query on the standby'
          : "connect its reader again, or: select pg_drop_replication_slot('…') with that name",
      };
    case 'standby':
      return {
        what: `the standby ${holder.name} asks for the dead rows of ${holder.transactions} transactions`,
        remedy: 'end the long query there, or turn its hot_standby_feedback off',
      };
  }
}
