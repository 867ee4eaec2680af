/**
 * Looks at an installation through one read-only connection and changes nothing. Invariant: on a healthy installation
 * it ends within 10 s whatever its size; what it couldn't look at by then it says.
 */
import { installationChain } from '../audit/audit.sql.js';
import { currentFingerprint } from '../audit/key.sql.js';
import type { Check, OnProgress } from '../kernel/diagnosis.js';
import { errorCode, isTimeout, type Pool } from '../platform/db/db.js';
import { knownMigrations } from '../platform/db/migrate.js';
import type { Budget } from './budget.js';
import { partFaults, stateFaults } from './catalog.rules.js';
import { schemaParts, schemaState } from './catalog.sql.js';
import { chainsCheck } from './chains.js';
import { lawsCheck } from './laws-check.js';
import { partitionsCheck, replicasCheck } from './replicas.rules.js';
import { connectedLives, missingPartitions } from './replicas.sql.js';
import { SCHEMA_PARTS } from './schema-parts.js';
import type { ServerFacts } from './server.js';
import { connectionsCheck, databaseCheck, schemaCheck, vacuumCheck } from './server.rules.js';
import { appliedMigrations, connectionUse, deadRows, hiddenSnapshots, vacuumHolders } from './server.sql.js';

/** Of one statement: a window of entries or runs takes a tenth of it. */
export const LONGEST_STATEMENT_MS = 1_500;
const KEYS_UNTIL_MS = 1_000;
const LAWS_UNTIL_MS = 4_500;
const CHAINS_UNTIL_MS = 7_500;
/** A snapshot that is older holds vacuum back. */
const OLD_SNAPSHOT_MINUTES = 5;
const OLD_SNAPSHOT_TRANSACTIONS = 1_000_000;

export interface DoctorOptions {
  /** Its time runs from the moment that the person began to wait. */
  readonly budget: Budget;
  readonly onProgress: OnProgress;
}

/** `facts` were asked for before the connection was made read-only. */
export async function examine(pool: Pool, facts: ServerFacts, options: DoctorOptions): Promise<Check[]> {
  const { budget, onProgress } = options;
  const schema = schemaCheck(await appliedMigrations(pool), await knownMigrations());
  const isOurs = schema.faults.length === 0;
  const checks = [
    databaseCheck(facts),
    isOurs ? await looked('schema', () => lookAtSchema(pool, schema)) : schema,
    await looked('connections', async () => connectionsCheck(await connectionUse(pool), facts)),
    await looked('vacuum', async () => {
      const holders = await vacuumHolders(pool, OLD_SNAPSHOT_MINUTES, OLD_SNAPSHOT_TRANSACTIONS);
      return vacuumCheck(holders, await deadRows(pool), facts, await hiddenSnapshots(pool));
    }),
  ];
  if (!isOurs) return [...checks, untold('laws', 'not checked: the schema is not that of this program')];
  return [
    ...checks,
    await looked('replicas', () => lookAtReplicas(pool)),
    await looked('partitions', async () => partitionsCheck(await missingPartitions(pool), await connectedLives(pool))),
    await looked('laws', () =>
      lawsCheck(pool, budget, { keysUntilMs: KEYS_UNTIL_MS, untilMs: LAWS_UNTIL_MS }, onProgress),
    ),
    await looked('audit', () => chainsCheck(pool, budget, CHAINS_UNTIL_MS, onProgress)),
  ];
}

/** What its migrations made, beside that they were applied. */
async function lookAtSchema(pool: Pool, schema: Check): Promise<Check> {
  const faults = partFaults(SCHEMA_PARTS, await schemaParts(pool));
  const state = await looked('schema', async () => ({ ...schema, faults: stateFaults(await schemaState(pool)) }));
  return { ...schema, faults: [...faults, ...state.faults], notes: state.notes };
}

async function lookAtReplicas(pool: Pool): Promise<Check> {
  const chain = await installationChain(pool);
  const key = chain === undefined ? undefined : await currentFingerprint(pool, chain);
  return replicasCheck(await connectedLives(pool), key);
}

/** What this role may not look at, or not in time, is no fault of the installation; what isn't there is. */
async function looked(name: string, look: () => Promise<Check>): Promise<Check> {
  try {
    return await look();
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const code = errorCode(error) ?? '';
    if (code === '42501') return untold(name, `not looked at: ${text}; grant that to the role, or use its owner`);
    if (isTimeout(error)) return untold(name, `not looked at: a statement took longer than ${LONGEST_STATEMENT_MS} ms`);
    if (!code.startsWith('42')) throw error;
    const what = `what every migrated database has is missing: ${text}`;
    return {
      name,
      summary: '',
      faults: [{ what, remedy: 'somebody changed the schema: restore it from a backup' }],
      notes: [],
    };
  }
}

function untold(name: string, note: string): Check {
  return { name, summary: '', faults: [], notes: [note] };
}
