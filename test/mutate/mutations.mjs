// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the placeholders belong to the files that are changed
/**
 * The guards, each taken away by one edit, and the spec that must find out. A mutation that its spec lets pass is a
 * guard that nothing proves.
 *
 * @typedef {object} Mutation
 * @property {string} name what is gone, as a person would say it
 * @property {string} file the file that is changed
 * @property {readonly (readonly [find: string, replace: string])[]} edits each `find` stands there exactly once
 * @property {string} test the spec that must fail
 */

const CLAIM = 'src/runs/claim.sql.ts';
const FINISH = 'src/runs/finish.sql.ts';
const CANCEL = 'src/runs/cancel.sql.ts';
const SETTLE = 'src/runs/settle.sql.ts';
const OUTPUT = 'src/runs/output.sql.ts';
const SUBMIT = 'src/runs/submit.sql.ts';
const WORKER = 'src/runs/worker.sql.ts';
const ENDING = 'src/runs/ending.sql.ts';
const RENEW = 'src/execution/keeper/renew.sql.ts';
const MACHINE = 'src/runs/run.machine.ts';
const DECIDE = 'src/kernel/machine.ts';
const GROUND = 'migrations/0001_ground.sql';
const CHAIN = 'src/audit/chain.rules.ts';
const LANE = 'src/platform/db/lane.ts';
const DB = 'src/platform/db/db.ts';
const MIGRATE = 'src/platform/db/migrate.ts';
const ACCESS = 'src/access/access.sql.ts';
const SERVICE = 'src/access/access.service.ts';

const STATEMENTS = 'test/runs/statements.contract.spec.ts';
const RACES = 'test/runs/races.contract.spec.ts';
const QUEUE = 'test/runs/queue.contract.spec.ts';
const SUBMITS = 'test/runs/submit.contract.spec.ts';
const OUTPUTS = 'test/runs/output.contract.spec.ts';
const ENDED = 'test/runs/ended.contract.spec.ts';
const TABLE = 'test/runs/run.machine.unit.spec.ts';
const MODEL = 'test/runs/protocol.model.spec.ts';
const CHAINS = 'test/audit/chain.contract.spec.ts';
const CHAIN_RULES = 'test/audit/chain-rules.unit.spec.ts';
const RECORDED = 'test/audit/recorded.contract.spec.ts';
const ACCESSES = 'test/access/access.contract.spec.ts';
const MIGRATES = 'test/platform/db/migrate.contract.spec.ts';
const LANES = 'test/platform/db/lane.unit.spec.ts';
const POOLS = 'test/platform/db/pool.contract.spec.ts';
const RENEWS = 'test/execution/keeper/renew.contract.spec.ts';

/** @returns {Mutation} */
const mutation = (name, file, test, ...edits) => ({ name, file, test, edits });

/** @type {readonly Mutation[]} */
export const MUTATIONS = [
  // claim
  mutation('claim takes for a life that drains or is lost', CLAIM, STATEMENTS, [
    `        and state = 'live'                                   -- not draining, not reaped\n`,
    '',
  ]),
  mutation(
    'claim takes under a lease that is over',
    CLAIM,
    STATEMENTS,
    ['        and lease_until > db_clock()                         -- the lease holds at this very moment\n', ''],
    [
      '      where me.lease_until > db_clock()                      -- read again, after the row was waited for\n      order',
      '      order',
    ],
  ),
  mutation('claim does not look at the lease again after it waited', CLAIM, RACES, [
    '      where me.lease_until > db_clock()                      -- read again, after the row was waited for\n      order',
    '      order',
  ]),
  mutation('claim looks at the worker row without locking it', CLAIM, RACES, [
    '      for key share\n    ),\n    ${servedCte',
    '    ),\n    ${servedCte',
  ]),
  mutation('claim takes what is held or parked', CLAIM, STATEMENTS, [
    `        where l.state = 'pending'\n          and l.not_before is null                           -- due`,
    '        where l.holder is null\n          and l.not_before is null                           -- due',
  ]),
  mutation('claim takes what is not due', CLAIM, STATEMENTS, [
    '          and l.not_before is null                           -- due\n',
    '',
  ]),
  mutation('claim takes from queues that the worker does not serve', CLAIM, STATEMENTS, [
    '          and l.queue = s.queue\n',
    '',
  ]),
  mutation('claim waits for rows that others hold', CLAIM, QUEUE, [
    '        for update skip locked\n      ) next',
    '        for update\n      ) next',
  ]),
  mutation('claim keeps the fence', CLAIM, STATEMENTS, ['fence = l.fence + 1', 'fence = l.fence']),
  mutation('claim forgets the priority', CLAIM, QUEUE, [
    '        order by l.priority desc, l.position\n',
    '        order by l.position\n',
  ]),
  mutation('claim takes the newest first', CLAIM, QUEUE, [
    '        order by l.priority desc, l.position\n',
    '        order by l.priority desc, l.position desc\n',
  ]),
  // start
  mutation('start for a life that drains or is lost', CLAIM, STATEMENTS, [
    `        and state = 'live'\n        and lease_until > db_clock()\n`,
    '        and lease_until > db_clock()\n',
  ]),
  mutation(
    'start under a lease that is over',
    CLAIM,
    STATEMENTS,
    [`        and state = 'live'\n        and lease_until > db_clock()\n`, `        and state = 'live'\n`],
    [
      '      where me.lease_until > db_clock()                      -- read again, after the row was waited for\n        and l.holder',
      '      where l.holder',
    ],
  ),
  mutation('start does not look at the lease again after it waited', CLAIM, RACES, [
    '      where me.lease_until > db_clock()                      -- read again, after the row was waited for\n        and l.holder',
    '      where l.holder',
  ]),
  mutation('start looks at the worker row without locking it', CLAIM, RACES, [
    '        and lease_until > db_clock()\n      for key share\n',
    '        and lease_until > db_clock()\n',
  ]),
  mutation('start by another holder', CLAIM, STATEMENTS, [
    "        and l.holder = me.id                                 -- still this life's\n",
    '',
  ]),
  mutation('start under an old fence', CLAIM, STATEMENTS, [
    "        and l.fence = i.fence                                -- and this claim's\n",
    '',
  ]),
  mutation('start in spite of a cancel request', CLAIM, STATEMENTS, [
    `((l.state = 'claimed' and l.cancel_requested_at is null) or l.state = 'running')`,
    `l.state in ('claimed', 'running')`,
  ]),
  mutation('start does not lock the run', CLAIM, RACES, [
    `l.state = 'running')\n      order by l.run_id\n      for update of l\n`,
    `l.state = 'running')\n      order by l.run_id\n`,
  ]),
  // release
  mutation('release by another holder', CLAIM, STATEMENTS, [
    '      where l.holder = ${worker}\n        and l.fence = i.fence\n',
    '      where l.fence = i.fence\n',
  ]),
  mutation('release under an old fence', CLAIM, STATEMENTS, [
    '      where l.holder = ${worker}\n        and l.fence = i.fence\n',
    '      where l.holder = ${worker}\n',
  ]),
  mutation('release of what is running', CLAIM, STATEMENTS, [
    `        and l.state = 'claimed'\n      order by l.run_id\n      for update of l\n`,
    '      order by l.run_id\n      for update of l\n',
  ]),
  mutation('release gives back in spite of a cancel request', CLAIM, STATEMENTS, [
    '      where l.run_id = k.run_id and k.cancel_requested_at is null\n',
    '      where l.run_id = k.run_id\n',
  ]),
  mutation('promotion before the instant has come', CLAIM, QUEUE, [
    '        and not_before <= db_now()\n      order',
    '        and not_before is not null\n      order',
  ]),
  // finish
  mutation('finish by another holder', FINISH, STATEMENTS, [
    "l.holder = ${worker}                             -- still this life's",
    'true',
  ]),
  mutation('finish under an old fence', FINISH, STATEMENTS, [
    "        and l.fence = i.fence                                -- and this claim's\n",
    '',
  ]),
  mutation('finish of what never started', FINISH, STATEMENTS, [
    `(l.state = 'running' or (l.state = 'claimed' and i.state in ('failed', 'canceled')))`,
    'true',
  ]),
  mutation('finish as canceled though nobody asked', FINISH, STATEMENTS, [
    `        and (i.state <> 'canceled' or l.cancel_requested_at is not null)\n`,
    '',
  ]),
  mutation('finish does not lock the run', FINISH, RACES, [
    '      order by l.run_id\n      for update of l\n',
    '      order by l.run_id\n',
  ]),
  mutation('an end that another life wrote is taken for its own', FINISH, RACES, [
    '      and r.worker_id = ${worker}\n',
    '',
  ]),
  mutation('an end that a janitor wrote is taken for its own', FINISH, RACES, [
    "      and r.end_by = ${encodeId('wrk', worker)}\n",
    '',
  ]),
  mutation('an end of another claim is taken for its own', FINISH, RACES, ['      and r.fence = i.fence`', '`']),
  mutation('an end leaves its live row', ENDING, STATEMENTS, [
    'delete from live_runs l using ending e\n',
    'update live_runs l set priority = l.priority from ending e\n',
  ]),
  mutation('an end writes no event', ENDING, STATEMENTS, [
    "               'fence', fence))\n      from outcome\n",
    "               'fence', fence))\n      from outcome where false\n",
  ]),
  // cancel
  mutation('each cancel writes anew', CANCEL, STATEMENTS, [
    '        and k.cancel_requested_at is null                    -- the first request only\n',
    '',
  ]),
  mutation('cancel of another organization', CANCEL, STATEMENTS, [' and l.organization_id = i."organizationId"', '']),
  mutation('cancel ends what a worker holds', CANCEL, STATEMENTS, [
    `      where k.state in ('held', 'pending', 'parked')\n`,
    '',
  ]),
  mutation('cancel does not lock the run', CANCEL, RACES, [
    '      order by l.run_id\n      for update of l\n',
    '      order by l.run_id\n',
  ]),
  mutation('cancel builds on what was there before a claim', CANCEL, RACES, [
    '          state = k.state, holder = k.holder, claimed_at = k.claimed_at, started_at = k.started_at\n',
    '          priority = l.priority\n',
  ]),
  // reap and settle
  mutation(
    'reap before the lease is over',
    WORKER,
    RACES,
    [`        and w.lease_until < db_clock()\n      order by w.id\n`, '      order by w.id\n'],
    ['        and w.lease_until < db_clock()                       -- read again under the lock\n', ''],
  ),
  mutation('reap does not lock the worker row', WORKER, RACES, ['      for update of w skip locked\n', '']),
  mutation('a drain does not lock the worker row', WORKER, RACES, [
    '            -- an answer was lost: it is said and recorded once\n      for update\n',
    '\n',
  ]),
  mutation('a life that is over leaves once more', WORKER, RECORDED, [
    `        and state in ('live', 'draining')\n        and state <>`,
    '        and state <>',
  ]),
  mutation('a drain is recorded each time it is said', WORKER, RECORDED, ['        and state <> ${state} ', '      ']),
  mutation('settle of what a live worker holds', SETTLE, STATEMENTS, [
    `        and w.state in ('lost', 'stopped')                   -- and that life is over\n`,
    '',
  ]),
  mutation('settle of what another holds by now', SETTLE, STATEMENTS, [
    '      where l.holder = i.holder                              -- not claimed again meanwhile\n        and',
    '      where',
  ]),
  mutation('settle requeues what was running', SETTLE, STATEMENTS, [
    `        and k.state = 'claimed'                              -- its tool never started\n`,
    '',
  ]),
  mutation('settle requeues in spite of a cancel request', SETTLE, STATEMENTS, [
    '        and k.cancel_requested_at is null\n',
    '',
  ]),
  mutation('settle does not lock the run', SETTLE, RACES, [
    '      order by l.run_id\n      for update of l\n',
    '      order by l.run_id\n',
  ]),
  mutation('renewal of a life that is over', RENEW, RENEWS, [
    `       and state in ('live', 'draining')        -- neither stopped nor reaped\n`,
    '',
  ]),
  // output
  mutation('output of another holder', OUTPUT, OUTPUTS, ['        and holder = ${worker}\n', '']),
  mutation('output under an old fence', OUTPUT, OUTPUTS, ['        and fence = ${hold.fence}\n', '']),
  mutation('output before the start', OUTPUT, OUTPUTS, [`        and state = 'running'\n`, '']),
  mutation('output does not lock the run', OUTPUT, RACES, ['      for key share\n', '']),
  mutation('output sent again is a fault', OUTPUT, OUTPUTS, ['      on conflict do nothing\n', '']),
  // submit
  mutation('submit of a known id', SUBMIT, STATEMENTS, [
    '      where not exists (select from runs r where r.id = i.id)            -- the id is new\n',
    '',
  ]),
  mutation('submit with a known key', SUBMIT, SUBMITS, [
    '      where u.key is null or u.id in (select run_id from keyed)          -- the key is new\n',
    '',
  ]),
  mutation('submit does not wait for the same key in flight', SUBMIT, SUBMITS, [
    '      on conflict do nothing                                             -- waits for one that is in flight\n',
    '',
  ]),
  mutation('keys are forgotten while their run lives', SUBMIT, SUBMITS, [
    "        and (r.id is null or r.ended_at < db_now() - ${ttlMs} * interval '1 millisecond')\n",
    '',
  ]),
  // what the database refuses by itself
  mutation(
    'an ended run may change',
    GROUND,
    ENDED,
    ['create trigger runs_ended_never_change before update', 'create trigger runs_ended_never_change before insert'],
    ['  for each row when (old.state is not null)\n', '  for each row when (false)\n'],
  ),
  mutation('a life that is over may change', GROUND, ENDED, [
    `  for each row when (old.state in ('stopped', 'lost'))\n`,
    '  for each row when (false)\n',
  ]),
  mutation('an audit entry may be deleted', GROUND, ENDED, [
    'before update or delete or truncate on audit_entries',
    'before update or truncate on audit_entries',
  ]),
  mutation('an audit entry may be updated', GROUND, ENDED, [
    'before update or delete or truncate on audit_entries',
    'before delete or truncate on audit_entries',
  ]),
  mutation('the audit entries may be truncated', GROUND, ENDED, [
    'before update or delete or truncate on audit_entries',
    'before update or delete on audit_entries',
  ]),
  mutation('a head may go back', GROUND, ENDED, [
    'when (new.seq <= old.seq or new.chain_id <> old.chain_id)',
    'when (new.chain_id <> old.chain_id)',
  ]),
  mutation('a pending run may have a holder', GROUND, ENDED, [
    `  check ((state in ('claimed', 'running')) = (holder is not null)),\n`,
    '',
  ]),
  mutation('a pending run may have a cancel request', GROUND, ENDED, [
    `  check (cancel_requested_at is null or state in ('claimed', 'running')),\n`,
    '',
  ]),
  mutation('two bootstrap tokens', GROUND, ACCESSES, [
    'create unique index tokens_one_bootstrap',
    'create index tokens_one_bootstrap',
  ]),
  // the chain
  mutation('entries are appended without the lock', GROUND, CHAINS, [
    '    perform pg_advisory_xact_lock(1129337940, v_chain.lock_key);\n',
    '',
  ]),
  mutation('entries without a chain are dropped', GROUND, RECORDED, [
    '  if v_done <> cardinality(p_chain) then',
    '  if false then',
  ]),
  mutation('the time of an entry goes back', GROUND, CHAINS, [
    `greatest(v_head.at, date_trunc('milliseconds', db_clock()))`,
    `date_trunc('milliseconds', db_clock())`,
  ]),
  mutation('entries are not linked to the one before', GROUND, CHAINS, [
    '    v_prev := v_head.link;\n',
    `    v_prev := '';\n`,
  ]),
  mutation('the time of an entry depends on the session', GROUND, CHAINS, [
    `to_char(p_at at time zone 'UTC',`,
    'to_char(p_at,',
  ]),
  mutation('a missing entry is not seen', CHAIN, CHAIN_RULES, ['if (entry.seq !== position.seq + 1)', 'if (false)']),
  mutation('another previous link is not seen', CHAIN, CHAIN_RULES, [
    'if (entry.prev !== position.link)',
    'if (false)',
  ]),
  mutation('another content is not seen', CHAIN, CHAINS, [
    'if (entry.link !== linkOf(chain, entry.seq, entry.prev, entry.claim))',
    'if (false)',
  ]),
  mutation('another head is not seen', CHAIN, CHAINS, [
    'return position.link === head.link ? undefined',
    'return true ? undefined',
  ]),
  mutation('a chain that grew shorter is not seen', 'src/audit/audit.service.ts', CHAINS, [
    'head.seq < Math.max(furthest, lastSeq)',
    'false',
  ]),
  // decisions
  mutation('a row applies when one of its guards holds', DECIDE, TABLE, [
    'row.guard.every(holds)',
    'row.guard.some(holds)',
  ]),
  mutation('the table lets start without a live lease', MACHINE, MODEL, [
    `row('7', 'start', ['claimed'], ['held', 'worker_live', 'no_cancel']`,
    `row('7', 'start', ['claimed'], ['held', 'no_cancel']`,
  ]),
  mutation('the table lets settle requeue what was running', MACHINE, MODEL, [
    `row('11', 'settle', ['running'], ['holder_gone'], ['interrupted'], ended)`,
    `row('11', 'settle', ['running'], ['holder_gone'], ['pending'], { audited: true, event: 'run.requeued' })`,
  ]),
  mutation('the table lets anybody release', MACHINE, MODEL, [
    `row('9', 'release', ['claimed'], ['held', 'no_cancel']`,
    `row('9', 'release', ['claimed'], ['no_cancel']`,
  ]),
  mutation('the table lets settle take from the living', MACHINE, MODEL, [
    `row('8', 'settle', ['claimed'], ['holder_gone', 'no_cancel']`,
    `row('8', 'settle', ['claimed'], ['no_cancel']`,
  ]),
  mutation('the table audits each cancel', MACHINE, MODEL, [
    `['claimed', 'running'], ['no_cancel'], 'unchanged', {`,
    `['claimed', 'running'], [], 'unchanged', {`,
  ]),
  mutation('the table ends without an entry', MACHINE, MODEL, [
    `const ended = { audited: true, event: 'run.ended' } as const;`,
    `const ended = { event: 'run.ended' } as const;`,
  ]),
  // plumbing
  mutation('an error of one item is given to its whole flush', LANE, LANES, [
    'if (batch.length === 1 || (isTransient(error) && !isTried))',
    'if (batch.length > 0)',
  ]),
  mutation('a transient error is not tried again', LANE, LANES, [
    'const isTried = !this.stopped && isTransient(error) && spent < this.options.retryForMs;',
    'const isTried = false;',
  ]),
  mutation('a transient error is tried for ever', LANE, LANES, [
    ' && spent < this.options.retryForMs',
    ' && batch.length > 1',
  ]),
  mutation('a flush of more than it may', LANE, LANES, ['if (count === maxItems || (', 'if ((']),
  mutation('a flush of more bytes than it may', LANE, LANES, [
    'count > 0 && bytes + waiting.bytes > maxBytes',
    'false',
  ]),
  mutation('a flush that took too long is sent again whole', LANE, LANES, [
    'if (isTried && (batch.length === 1 || !isTimeout(error)))',
    'if (isTried)',
  ]),
  mutation('a lane takes whatever comes', LANE, LANES, ['if (isFull)', 'if (false)']),
  mutation('a statement is sent behind another', DB, POOLS, [
    'if (!this.permits.tryTake()) await this.permits.wait();',
    'this.permits.tryTake();',
  ]),
  mutation('migrations without the lock', MIGRATE, MIGRATES, ['    await lockWithin(client, options, timing);\n', '']),
  mutation('a newer database is taken', MIGRATE, MIGRATES, ['if (foreign.length > 0)', 'if (false)']),
  mutation('a database of another encoding is taken', MIGRATE, MIGRATES, [
    `if (server.encoding !== 'UTF8')`,
    'if (false)',
  ]),
  mutation('a revoked token is taken', ACCESS, ACCESSES, [' and revoked_at is null', '']),
  mutation('a revoked token is remembered for too long', SERVICE, ACCESSES, [
    'const REMEMBER_MS = 2_000',
    'const REMEMBER_MS = 20_000',
  ]),
];
