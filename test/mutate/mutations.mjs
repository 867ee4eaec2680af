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

const RUN_LAWS = 'src/doctor/run-laws.sql.ts';
const RUNS_LOOK = 'src/doctor/runs.sql.ts';
const STANDING = 'src/doctor/standing.sql.ts';
const LAWS_LOOP = 'src/doctor/invariants.loop.ts';
const LAWS_BROKEN = 'test/doctor/laws.contract.spec.ts';
const LAWS_STANDING = 'test/doctor/standing.contract.spec.ts';
const LAWS_LOOPED = 'test/doctor/invariants-loop.contract.spec.ts';
const DOCTOR = 'test/doctor/doctor.process.spec.ts';
const DOCTOR_BUDGET = 'test/doctor/budget.contract.spec.ts';
const DOCTOR_RULES = 'test/doctor/rules.unit.spec.ts';
const DOCTOR_SERVER = 'test/doctor/server.contract.spec.ts';
const TRANSPORT = 'src/client/transport.ts';
const CLIENT_REQUESTS = 'test/client/requests.unit.spec.ts';
const CLIENT_STREAM = 'test/client/stream.unit.spec.ts';
const CLAIM = 'src/runs/claim.sql.ts';
const PULSE = 'src/runs/pulse.sql.ts';
const WHY = 'src/runs/why.sql.ts';
const FINISH = 'src/runs/finish.sql.ts';
const CANCEL = 'src/runs/cancel.sql.ts';
const QUEUE_SQL = 'src/runs/queue.sql.ts';
const SETTLE = 'src/runs/settle.sql.ts';
const OUTPUT = 'src/runs/output.sql.ts';
const SUBMIT = 'src/runs/submit.sql.ts';
const WORKER = 'src/runs/worker.sql.ts';
const ENDING = 'src/runs/ending.sql.ts';
const RENEW = 'src/execution/keeper/renew.sql.ts';
const MACHINE = 'src/runs/run.machine.ts';
const DECIDE = 'src/kernel/machine.ts';
const GROUND = 'migrations/0001_ground.sql';
const APPEND = 'migrations/0004_evidence.sql';
const CHAIN = 'src/audit/chain.rules.ts';
const CHAIN_SQL = 'src/audit/chain.sql.ts';
const VERIFYING = 'src/audit/audit.service.ts';
const KNOWLEDGE = 'src/audit/chain-knowledge.ts';
const CHAIN_LINE = 'src/audit/chain-line.ts';
const RECHECK = 'src/audit/recheck.loop.ts';
const ENTRIES = 'src/audit/entries.service.ts';
const ENTRIES_SQL = 'src/audit/entries.sql.ts';
const LANE = 'src/platform/db/lane.ts';
const DB = 'src/platform/db/db.ts';
const MIGRATE = 'src/platform/db/migrate.ts';
const ACCESS = 'src/access/access.sql.ts';
const SERVICE = 'src/access/access.service.ts';
const ADDRESSES = 'src/execution/requester/addresses.ts';
const CONNECT = 'src/execution/requester/connect.ts';
const EXCHANGE = 'src/execution/requester/exchange.ts';
const HOPS = 'src/execution/requester/hops.rules.ts';
const RESULT = 'src/execution/requester/result.rules.ts';
const FLEET = 'src/execution/supervisor/fleet.ts';
const REQUESTER = 'src/execution/supervisor/requester.ts';
const HTTP_RUN = 'src/execution/supervisor/http-run.ts';
const HTTP_SPEC = 'src/runs/http-spec.dto.ts';
const PLAN = 'src/execution/plan.rules.ts';

const CGROUP = 'src/execution/supervisor/cgroup.ts';
const TOOL_CGROUPS = 'src/execution/supervisor/tool-cgroups.ts';
const PROCESSES = 'src/execution/supervisor/processes.ts';
const OUTCOME = 'src/execution/outcome.rules.ts';
const CGROUP_TOOLS = 'test/execution/supervisor/cgroup.system.spec.ts';
const CGROUP_NONE = 'test/execution/supervisor/cgroup.process.spec.ts';
const CGROUP_FACTS = 'test/execution/supervisor/cgroup.unit.spec.ts';
const CANCELS = 'test/execution/cancel.process.spec.ts';

const EXECUTOR = 'src/execution/executor.ts';
const CAPTURE = 'src/execution/capture.ts';
const EXECUTIONS = 'test/execution/executor.unit.spec.ts';

const GUARD = 'src/access/access.guard.ts';
const REFUSALS = 'src/access/refusals.service.ts';
const WORKERS = 'src/runs/workers.service.ts';
const REFUSED = 'test/audit/refused.api.spec.ts';
const DOCS = 'src/platform/http/docs.controller.ts';
const DOCS_API = 'test/platform/http/docs.api.spec.ts';
const EXAMPLES = 'test/platform/http/examples.api.spec.ts';
const OPENAPI = 'test/platform/http/openapi.unit.spec.ts';
const CONVENTIONS = 'test/platform/http/conventions.api.spec.ts';
const WRONG_INPUT = 'test/platform/http/wrong-input.api.spec.ts';
const PAGING = 'test/platform/http/paging.api.spec.ts';
const WORKERS_API = 'test/runs/workers.api.spec.ts';
const COVERAGE = 'test/audit/coverage.contract.spec.ts';
const COVERAGE_API = 'test/audit/coverage.api.spec.ts';
const ATTACKED = 'test/audit/attack.contract.spec.ts';

const SIMULATED = 'test/simulate/cluster.contract.spec.ts';
const EVIDENCE = 'migrations/0005_evidence_indexes.sql';
const KEYS = 'src/audit/key.sql.ts';
const KEY_SERVICE = 'src/audit/key.service.ts';
const KEY_API = 'test/audit/key.api.spec.ts';
const BUNDLES = 'src/audit/bundle.service.ts';
const BUNDLE_API = 'test/audit/bundle.api.spec.ts';

const STATEMENTS = 'test/runs/statements.contract.spec.ts';
const RACES = 'test/runs/races.contract.spec.ts';
const QUEUE = 'test/runs/queue.contract.spec.ts';
const SUBMITS = 'test/runs/submit.contract.spec.ts';
const OUTPUTS = 'test/runs/output.contract.spec.ts';
const OUTPUT_KEEP = 'src/execution/output-keep.rules.ts';
const OUTPUT_WRITES = 'test/execution/output-writer.unit.spec.ts';
const ENDED = 'test/runs/ended.contract.spec.ts';
const TABLE = 'test/runs/run.machine.unit.spec.ts';
const MODEL = 'test/runs/protocol.model.spec.ts';
const CHAINS = 'test/audit/chain.contract.spec.ts';
const CHAIN_RULES = 'test/audit/chain-rules.unit.spec.ts';
const WINDOWS = 'test/audit/windows.contract.spec.ts';
const RECHECKS = 'test/audit/recheck.contract.spec.ts';
const BACKLOG = 'test/runs/backlog.contract.spec.ts';
const ENTRY_LISTS = 'test/audit/entries.contract.spec.ts';
const ENTRY_API = 'test/audit/entries.api.spec.ts';
const VERIFY_API = 'test/audit/verify.api.spec.ts';
const RECORDED = 'test/audit/recorded.contract.spec.ts';
const ACCESSES = 'test/access/access.contract.spec.ts';
const MIGRATES = 'test/platform/db/migrate.contract.spec.ts';
const LANES = 'test/platform/db/lane.unit.spec.ts';
const POOLS = 'test/platform/db/pool.contract.spec.ts';
const RENEWS = 'test/execution/keeper/renew.contract.spec.ts';
const CONNECTS = 'test/execution/requester/connect.process.spec.ts';
const REQUESTS = 'test/execution/requester/requester.process.spec.ts';
const HELD_UP = 'test/execution/requester/congested.process.spec.ts';
const REQUEST_RULES = 'test/execution/requester/rules.unit.spec.ts';
const HTTP_SPECS = 'test/runs/http-spec.api.spec.ts';
const HTTP_PLANS = 'test/execution/http-plan.unit.spec.ts';

const BYTE_POOL = 'src/platform/db/byte-pool.ts';
const ROOMS = 'test/platform/db/room.process.spec.ts';

const READINESS = 'test/replica/readiness-rules.unit.spec.ts';
const READINESS_SEEN = 'test/replica/readiness.process.spec.ts';
const READINESS_STARTS = 'test/replica/readiness-start.process.spec.ts';
const READINESS_STOPS = 'test/replica/readiness-stop.process.spec.ts';

const RUNS = 'src/runs/runs.service.ts';
const RUNS_EDGE = 'src/runs/runs.controller.ts';
const RUNS_MODULE = 'src/runs/runs.module.ts';
const HOLDER = 'src/runs/holder.service.ts';
const ENDS = 'src/runs/ends.service.ts';
const RERUNS = 'test/runs/rerun.api.spec.ts';
const WAITS = 'test/runs/waiters.api.spec.ts';
const BATCHES = 'src/runs/batch.service.ts';
const BULK = 'src/runs/bulk.service.ts';
const BULK_DTO = 'src/runs/bulk.dto.ts';
const BATCH_KEYS = 'test/runs/batch.contract.spec.ts';
const BATCH_API = 'test/runs/batch.api.spec.ts';
const BULK_API = 'test/runs/bulk.api.spec.ts';
const KEY_FAULTS = 'test/runs/idempotency-faults.contract.spec.ts';
const HOSTILE = 'test/platform/http/hostile.api.spec.ts';

const REPORTS_SQL = 'src/runs/reports.sql.ts';
const REPORT_RULES = 'src/execution/report.rules.ts';
const TOOL_REPORTS = 'src/execution/tool-reports.ts';
const PRIVATE_FOLDERS = 'src/execution/supervisor/private-folders.ts';
const PLACES = 'src/execution/supervisor/places.ts';
const SPAWN_FOLDERS = 'test/execution/supervisor/folders.process.spec.ts';
const SPAWN_START = 'test/execution/supervisor/start.process.spec.ts';
const REPORT_FILES = 'src/execution/supervisor/reports.ts';
const GROWTH = 'src/execution/supervisor/growth.rules.ts';
const GATHERER = 'src/execution/gatherer.ts';
const REPORT_STORES = 'test/runs/reports.contract.spec.ts';
const REPORT_READS = 'test/execution/report-rules.unit.spec.ts';
const SLICES = 'test/execution/slices.unit.spec.ts';
const REPORT_WRITES = 'test/execution/tool-reports.unit.spec.ts';
const REPORT_GROWS = 'test/execution/supervisor/growth.unit.spec.ts';
const REPORT_LOOKS = 'test/execution/supervisor/reports.process.spec.ts';

const CLIENT_EVENTS = 'src/client/events.ts';
const CLIENT_MESSAGES = 'src/client/stream.ts';
const CLI_WAITS = 'test/cli/wait.process.spec.ts';
const CLI_LOGS = 'test/cli/logs.process.spec.ts';
const CLI_CTRL_C = 'test/cli/ctrl-c.process.spec.ts';
const CLI_CREDENTIALS = 'test/cli/credentials.process.spec.ts';
const CLI_SUBMITS = 'test/cli/submit.process.spec.ts';
const CLI_PIPES = 'test/cli/closed-pipe.process.spec.ts';
const CLI_USAGE = 'test/cli/usage.unit.spec.ts';

const WAKE = 'src/platform/db/wake.ts';
const WAKE_RULES = 'src/platform/db/wake.rules.ts';
const WORK = 'src/replica/work.loop.ts';
const WAKES = 'test/platform/db/wake.contract.spec.ts';
const WAKE_WORDS = 'test/platform/db/wake-rules.unit.spec.ts';
const WORKS = 'test/replica/work-loop.unit.spec.ts';

/** @returns {Mutation} */
const mutation = (name, file, test, ...edits) => ({ name, file, test, edits });

const IDLES = 'test/replica/idle.contract.spec.ts';
const READINESS_RULES = 'src/replica/readiness.rules.ts';
const SPEED = 'migrations/0008_speed.sql';
const HISTORY = 'test/runs/history.contract.spec.ts';
const SNAPSHOT = 'test/runs/snapshot.contract.spec.ts';
const LONG_LIVED = 'test/platform/http/long-lived.contract.spec.ts';
const ABANDONED = 'test/runs/abandoned-lists.process.spec.ts';
const DRAIN = 'src/runs/drain.sql.ts';
const DRAINS = 'test/runs/workers-drain.contract.spec.ts';
const DRAIN_WORKS = 'test/replica/drain.contract.spec.ts';
const DRAIN_STOPS = 'test/replica/drain.process.spec.ts';
const CLI_WORKERS = 'test/cli/workers.process.spec.ts';

const JANITOR = 'src/runs/janitor.service.ts';

const RUN_METRICS = 'src/runs/run.metrics.ts';
const QUEUE_METRICS = 'src/runs/queue.metrics.ts';
const HTTP_METRICS = 'src/platform/http/http.metrics.ts';
const DEPTH = 'src/runs/queue-depth.sql.ts';
const RUNS_COUNTED = 'test/runs/run-metrics.contract.spec.ts';
const HTTP_COUNTED = 'test/platform/http/metrics.api.spec.ts';
const DEPTHS = 'test/runs/queue-depth.contract.spec.ts';
const QUEUES_ASKED = 'test/runs/queue-metrics.unit.spec.ts';
const LOOPS_COUNTED = 'test/replica/loop-runner.unit.spec.ts';
const TRACES = 'test/execution/trace.unit.spec.ts';
const JANITOR_LOOP = 'src/replica/janitor.loop.ts';
const CROWD = 'test/runs/settle-crowd.contract.spec.ts';
const JANITOR_STEPS = 'test/replica/janitor-loop.unit.spec.ts';
const KEEPER_RULES = 'src/execution/keeper/keeper.rules.ts';
const KEEPER_RULES_SPEC = 'test/execution/keeper/keeper-rules.unit.spec.ts';
const KEEPER_OUTAGE = 'test/execution/keeper/outage.process.spec.ts';
const LAST_TRY = 'test/runs/last-try.contract.spec.ts';

const TIMESTAMP = 'src/verifier/rfc3161.ts';
const TOKEN_PARTS = 'src/verifier/signed-data.ts';
const DER = 'src/verifier/der.ts';
const TOKENS = 'test/verifier/rfc3161.contract.spec.ts';
const DER_UNITS = 'test/verifier/der.unit.spec.ts';
const TSA = 'src/audit/tsa.ts';
const TSA_CLIENT = 'test/audit/tsa.contract.spec.ts';
const ANCHORS = 'src/audit/anchors.sql.ts';
const ANCHOR_LOOP = 'src/audit/anchor.loop.ts';
const ANCHORED = 'test/audit/anchors.contract.spec.ts';
const COLUMNS = 'src/audit/columns.sql.ts';
const WIDTHS = 'src/audit/windows.ts';
const ANCHOR_CHECK = 'src/audit/anchor-check.ts';
const ANCHOR_CHECKED = 'test/audit/anchor-check.contract.spec.ts';

const VERIFY = 'test/verifier/verify.unit.spec.ts';
const JOINED = 'test/verifier/join.unit.spec.ts';
const PROGRAMS = 'test/verifier/programs.process.spec.ts';
const STAMPED = 'test/verifier/anchors.contract.spec.ts';
const STRICT = 'src/verifier/json.ts';
const VERIFIER = (name) => `src/verifier/${name}.ts`;

/** @type {readonly Mutation[]} */
const HELPERS = 'helm/capstan/templates/_helpers.tpl';
const POD = 'helm/capstan/templates/_pod.tpl';
const CHARTED = 'test/helm/chart.system.spec.ts';

export const MUTATIONS = [
  // claim
  mutation('claim takes for a life that drains or is lost', CLAIM, STATEMENTS, [
    '        and ${isLive(sql)}                                   -- not draining, not reaped\n',
    '',
  ]),
  mutation(
    'claim takes under a lease that is over',
    CLAIM,
    STATEMENTS,
    ['        and ${holdsLease(sql)}                               -- at this very moment\n', ''],
    [
      '      where ${holdsLease(sql)}                               -- read again, after the row was waited for\n        and',
      '      where',
    ],
  ),
  mutation('claim does not look at the lease again after it waited', CLAIM, RACES, [
    '      where ${holdsLease(sql)}                               -- read again, after the row was waited for\n        and',
    '      where',
  ]),
  mutation('claim looks at the worker row without locking it', CLAIM, RACES, [
    '      for key share\n    ),\n    ${marks.length',
    '    ),\n    ${marks.length',
  ]),
  mutation('claim takes what is held or parked', CLAIM, STATEMENTS, [
    '        where ${isClaimable(sql)}                            -- pending and due\n',
    '        where l.holder is null and l.not_before is null\n',
  ]),
  mutation('claim takes what is not due', CLAIM, STATEMENTS, [
    '        where ${isClaimable(sql)}                            -- pending and due\n',
    "        where l.state = 'pending'\n",
  ]),
  mutation('claim takes from queues that the worker does not serve', CLAIM, STATEMENTS, [
    '          and ${isInQueue(sql)}\n',
    '',
  ]),
  mutation('claim waits for rows that others hold', CLAIM, QUEUE, [
    '        for update skip locked\n      ) next',
    '        for update\n      ) next',
  ]),
  mutation('claim keeps the fence', CLAIM, STATEMENTS, ['fence = l.fence + 1', 'fence = l.fence']),
  mutation('claim forgets the priority', CLAIM, QUEUE, [
    '        order by ${claimOrder(sql)}\n',
    '        order by l.position\n',
  ]),
  mutation('claim takes the newest first', CLAIM, QUEUE, [
    '        order by ${claimOrder(sql)}\n',
    '        order by ${claimOrder(sql)} desc\n',
  ]),
  // start
  mutation('start for a life that is lost', CLAIM, STATEMENTS, [
    `        and state in ('live', 'draining')                    -- neither stopped nor reaped\n`,
    '',
  ]),
  mutation('start for a life that drains', CLAIM, STATEMENTS, [
    "l.cancel_requested_at is null\n                   and me.state = 'live')",
    'l.cancel_requested_at is null)',
  ]),
  mutation('a start that committed is refused to a life that drains since', CLAIM, DRAINS, [
    `state in ('live', 'draining')                    -- neither`,
    `state = 'live'                    -- neither`,
  ]),
  mutation(
    'start under a lease that is over',
    CLAIM,
    STATEMENTS,
    [`-- neither stopped nor reaped\n        and lease_until > db_clock()\n`, '-- neither stopped nor reaped\n'],
    ['      where me.lease_until > db_clock()                      -- read again, after the row was waited for\n', ''],
  ),
  mutation('start does not look at the lease again after it waited', CLAIM, RACES, [
    '      where me.lease_until > db_clock()                      -- read again, after the row was waited for\n',
    '',
  ]),
  mutation('start looks at the worker row without locking it', CLAIM, RACES, [
    '        and lease_until > db_clock()\n      for key share\n',
    '        and lease_until > db_clock()\n',
  ]),
  mutation('start by another holder', CLAIM, STATEMENTS, [
    "          and (l.holder = me.id) is true                     -- still this life's\n",
    '',
  ]),
  mutation('start under an old fence', CLAIM, STATEMENTS, [
    "          and l.fence = i.fence                              -- and this claim's\n",
    '',
  ]),
  mutation('start in spite of a cancel request', CLAIM, STATEMENTS, [
    `l.state = 'claimed' and l.cancel_requested_at is null\n`,
    `l.state = 'claimed'\n`,
  ]),
  mutation('start does not lock the run', CLAIM, RACES, [
    '-- a life that drains starts nothing\n        for update\n',
    '-- a life that drains starts nothing\n',
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
  mutation('promotion before the instant has come', PULSE, QUEUE, [
    '        and not_before <= db_now()\n      order',
    '        and not_before is not null\n      order',
  ]),
  // finish
  mutation('finish by another holder', FINISH, STATEMENTS, [
    "(l.holder = ${worker}) is true                 -- still this life's",
    'true',
  ]),
  mutation('finish under an old fence', FINISH, STATEMENTS, [
    "          and l.fence = i.fence                              -- and this claim's\n",
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
    'l.cancel_requested_at is not null)\n        for update\n',
    'l.cancel_requested_at is not null)\n',
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
    'delete from live_runs where run_id = any (array(select run_id from ending))\n',
    'update live_runs set priority = priority where run_id = any (array(select run_id from ending))\n',
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
    "      where k.live_state in ('held', 'pending', 'parked')\n",
    '',
  ]),
  mutation('cancel does not lock the run', CANCEL, RACES, [
    '      order by l.run_id\n      for update of l\n',
    '      order by l.run_id\n',
  ]),
  mutation('cancel builds on what was there before a claim', CANCEL, RACES, [
    '          state = k.live_state, not_before = k.not_before, holder = k.holder, claimed_at = k.claimed_at,\n          started_at = k.started_at\n',
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
    '    -- an answer was lost: it is said and recorded once\n      for update\n',
    '\n',
  ]),
  mutation('a life that is over leaves once more', WORKER, RECORDED, [
    `        and state in ('live', 'draining')\n        and (state <>`,
    '        and (state <>',
  ]),
  mutation('a drain is recorded each time it is said', WORKER, RECORDED, [
    '        and (state <> ${state} or drained_by is not null)    ',
    '        ',
  ]),
  mutation('settle of what a live worker holds', SETTLE, STATEMENTS, [
    `        and w.state in ('lost', 'stopped')                   -- and that life is over\n`,
    '',
  ]),
  mutation('settle of what another holds by now', SETTLE, STATEMENTS, [
    '      where l.holder = i.holder                              -- not claimed again meanwhile\n        and',
    '      where',
  ]),
  mutation('settle requeues what was running', SETTLE, STATEMENTS, [
    "        and k.live_state = 'claimed' ",
    '        and true ',
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
  mutation('output of another holder', OUTPUT, OUTPUTS, [
    `        and holder = $2\n        and fence = $3\n        and state = 'running'\n      for key share\n    ),\n    stored`,
    `        and fence = $3\n        and state = 'running' and $2 = $2\n      for key share\n    ),\n    stored`,
  ]),
  mutation('output under an old fence', OUTPUT, OUTPUTS, [
    `        and fence = $3\n        and state = 'running'\n      for key share\n    ),\n    stored`,
    `        and $3 = $3\n        and state = 'running'\n      for key share\n    ),\n    stored`,
  ]),
  mutation('output before the start', OUTPUT, OUTPUTS, [
    `        and state = 'running'\n      for key share\n    ),\n    stored`,
    `      for key share\n    ),\n    stored`,
  ]),
  mutation('output does not lock the run', OUTPUT, RACES, [
    `      for key share\n    ),\n    stored`,
    `    ),\n    stored`,
  ]),
  mutation('output sent again is a fault', OUTPUT, OUTPUTS, ['      on conflict do nothing\n', '']),
  mutation('output dropped by another holder', OUTPUT, OUTPUTS, [
    `        and holder = $2\n        and fence = $3\n        and state = 'running'\n      for key share\n    ),\n    dropped`,
    `        and fence = $3\n        and state = 'running' and $2 = $2\n      for key share\n    ),\n    dropped`,
  ]),
  mutation('output dropped under an old fence', OUTPUT, OUTPUTS, [
    `        and fence = $3\n        and state = 'running'\n      for key share\n    ),\n    dropped`,
    `        and $3 = $3\n        and state = 'running'\n      for key share\n    ),\n    dropped`,
  ]),
  mutation('a cut that shrinks', OUTPUT, OUTPUTS, [
    '      where c.through_batch < excluded.through_batch         -- a cut only grows\n',
    '',
  ]),
  mutation('more output is kept than the limit', OUTPUT_KEEP, OUTPUT_WRITES, [
    'return undefined;\n    while (',
    'return undefined;\n    if (false) while (',
  ]),
  mutation('the first half of an output goes too', OUTPUT_KEEP, OUTPUT_WRITES, [
    'if (charge + chargeOf(bytes) > this.limitBytes / 2) break;',
    'if (charge + chargeOf(bytes) > 0) break;',
  ]),
  mutation('what the store refuses is missing in silence', 'src/execution/output-writer.ts', OUTPUT_WRITES, [
    `return stored === 'refused' ? this.tryToStore(...refusalOf(pieces, used)) : stored;`,
    'return stored;',
  ]),
  mutation('rows of output cost nothing', OUTPUT_KEEP, 'test/execution/output-keep.unit.spec.ts', [
    'return bytes + BATCH_OVERHEAD_BYTES;',
    'return bytes;',
  ]),
  mutation(
    'chunks of output cost nothing but their bytes',
    'src/execution/supervisor/frames.ts',
    'test/execution/supervisor/output.process.spec.ts',
    ['return bytes + CHUNK_OVERHEAD_BYTES;', 'return bytes;'],
  ),
  mutation('a stop waits for its tools for ever', EXECUTOR, EXECUTIONS, [' && timing.monotonicMs() < untilMs', '']),
  mutation('credit for what is not stored', 'src/execution/gatherer.ts', OUTPUT_WRITES, [
    '      if (!this.lost) await this.store(batch);\n',
    '      if (!this.lost) void this.store(batch);\n',
  ]),
  mutation('a gap in an output is passed over in silence', 'src/runs/output.rules.ts', 'test/runs/output.api.spec.ts', [
    ', { fence, pos: gap.from, bytes: line.length, line }',
    '',
  ]),
  mutation(
    'a reader who was overtaken is not told',
    'src/runs/output.service.ts',
    'test/runs/output-flow.api.spec.ts',
    ['        if (at > expected) yield onGap(expected, Math.min(at, end));\n', ''],
  ),
  mutation('a tail reaches over a gap', 'src/runs/output.service.ts', 'test/runs/output.api.spec.ts', [
    'if (isBehindGap) return {',
    'if (isBehindGap && at < 0) return {',
  ]),
  // submit
  mutation('submit of a known id', SUBMIT, STATEMENTS, ['(select true from runs r where r.id = i.id) is null', 'true']),
  mutation('submit with a known key', SUBMIT, SUBMITS, [
    '      where u.key is null or u.id in (select run_id from keyed)          -- the key is new\n',
    '',
  ]),
  mutation('submit does not wait for the same key in flight', SUBMIT, SUBMITS, [
    '      on conflict do nothing                                             -- waits for one that is in flight\n',
    '',
  ]),
  mutation('keys are forgotten while their run lives', SUBMIT, SUBMITS, [
    "            and (r.ended_at is null or r.ended_at >= db_now() - ${ttlMs} * interval '1 millisecond'))\n",
    "            and r.ended_at >= db_now() - ${ttlMs} * interval '1 millisecond')\n",
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
  mutation('a head may go back', APPEND, ENDED, [
    'when (new.seq <= old.seq and old.seq <= 999999999999999 or',
    'when (false or',
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
  mutation('entries are appended without the lock', APPEND, CHAINS, [
    '    perform pg_advisory_xact_lock(1129337940, v_chain.lock_key);\n',
    '',
  ]),
  mutation('entries without a chain are dropped', APPEND, RECORDED, [
    '  if v_done <> cardinality(p_chain) then',
    '  if false then',
  ]),
  mutation('the time of an entry goes back', APPEND, CHAINS, ['      v_at := v_last.at;\n', '      null;\n']),
  mutation('entries are not linked to the one before', APPEND, CHAINS, [
    "case when v_head.seq <= c_last then v_head.link else '' end",
    `''::bytea`,
  ]),
  mutation('the time of an entry depends on the session', GROUND, CHAINS, [
    `to_char(p_at at time zone 'UTC',`,
    'to_char(p_at,',
  ]),
  mutation('a missing entry is not seen', CHAIN_SQL, CHAINS, [
    'when (e.seq = lag(e.seq, 1, asked.seq) over chain + 1) is not true then',
    'when false then',
  ]),
  mutation('entries that end too soon are not seen', VERIFYING, CHAINS, [
    'if (after.seq < until) return',
    'if (check) return',
  ]),
  mutation('another previous link is not seen', CHAIN_SQL, CHAINS, [
    `when (e.prev = lag(e.link, 1, pg_catalog.decode(asked.link, 'hex')) over chain) is not true then`,
    'when false then',
  ]),
  mutation('what the first entry of a window follows is not compared', CHAIN_SQL, WINDOWS, [
    "(select min(encode(link, 'hex')) from audit_entries where chain_id = ${chain} and seq = ${seq - 1}),",
    'null,',
  ]),
  mutation('another content is not seen', CHAIN_SQL, CHAINS, [
    'when (e.link = ${linkOf(sql)}) is not true then',
    'when false then',
  ]),
  mutation('another link than the format says', 'src/audit/link.sql.ts', CHAINS, [
    '"loomseal-chain-v1","install_id"',
    '"loomseal-chain-v1", "install_id"',
  ]),
  mutation('another head is not seen', CHAIN, CHAINS, ['linkAtHead !== null && linkAtHead !== link', 'false']),
  mutation('a head that was moved back is not seen', CHAIN, CHAINS, ['lastSeq > seq', 'lastSeq < 0']),
  mutation('a chain that grew shorter is not seen', CHAIN, CHAINS, [
    'seen && linkAtSeen !== seen.link',
    'seen && !seen',
  ]),
  mutation('a chain that leads elsewhere is not seen', CHAIN, CHAINS, [
    'seen && linkAtSeen !== seen.link',
    'seen && linkAtSeen === null',
  ]),
  mutation('a stray anchor is not seen', CHAIN, WINDOWS, ['strayAnchor === null ? undefined', 'true ? undefined']),
  mutation('an anchor of an entry that is gone counts', CHAIN_SQL, WINDOWS, [
    '(e.link = a.link) is not true',
    'e.link <> a.link',
  ]),
  mutation('an entry whose text is null holds', CHAIN_SQL, WINDOWS, [
    '(e.link = ${linkOf(sql)}) is not true',
    'e.link <> ${linkOf(sql)}',
  ]),
  mutation('an entry that is there twice stops the verification', CHAIN_SQL, WINDOWS, [
    "(select min(encode(e.link, 'hex')) from audit_entries e\n            where e.chain_id = h.chain_id and e.seq = h.seq)",
    "(select encode(e.link, 'hex') from audit_entries e\n            where e.chain_id = h.chain_id and e.seq = h.seq)",
  ]),
  mutation('a window hides the first break of a chain', VERIFYING, WINDOWS, [
    '(isWhole || broken.brokenAt < known)',
    'broken',
  ]),
  mutation('the last break is named, not the first', CHAIN, CHAIN_RULES, [
    'first.brokenAt <= each.brokenAt',
    'first.brokenAt > each.brokenAt',
  ]),
  mutation('a window that holds takes a break back', VERIFYING, WINDOWS, ['if (!broken && isWhole)', 'if (!broken)']),
  mutation('a window is only verified up to where nothing is', VERIFYING, WINDOWS, [
    'to: Math.min(to ?? seq, seq)',
    'to: to ?? seq',
  ]),
  mutation('a recomputation that nobody waits for goes on', VERIFYING, CHAINS, [
    '      signal.throwIfAborted();\n',
    '',
  ]),
  mutation('who goes away ends what others wait for', CHAIN_LINE, CHAIN_RULES, ['if (place.askers.size === 0) ', '']),
  mutation('somebody joins a recomputation that is over', CHAIN_LINE, CHAIN_RULES, [' && !over.signal.aborted', '']),
  mutation('a recomputation under way is shared', CHAIN_LINE, CHAIN_RULES, [
    'return this.waiting.find(',
    'return [this.running, ...this.waiting].filter((one) => one !== undefined).find(',
  ]),
  mutation('a break is told again and again', KNOWLEDGE, CHAIN_RULES, [
    'if (known.broken?.brokenAt === broken.brokenAt && known.broken.check === broken.check) return;',
    '',
  ]),
  mutation('an older verification takes a break back', KNOWLEDGE, CHAIN_RULES, [
    'if (known.broken !== before) return;',
    '',
  ]),
  mutation('a break that the loop meets is none', RECHECK, RECHECKS, [
    'if (brokenAt <= until) walk',
    'if (!chain) walk',
  ]),
  mutation('a pass never begins anew', RECHECK, RECHECKS, [`chains.length < CHAINS ? ''`, `chains.length < 0 ? ''`]),
  mutation('the loop takes no rest', RECHECK, RECHECKS, ['this.tookMs * IDLE_SHARE', '0']),
  mutation('a search looks at a whole chain at once', ENTRIES, ENTRY_LISTS, [
    'isDirect(filter) ? undefined',
    'true ? undefined',
  ]),
  mutation('a search has no end', ENTRIES, ENTRY_LISTS, ['performance.now() >= untilMs', 'performance.now() < 0']),
  mutation('`after` includes its instant', ENTRIES, ENTRY_LISTS, [
    'seqAt(this.pool, chain, after, 1)',
    'seqAt(this.pool, chain, after, 0)',
  ]),
  mutation('a refusal about a run is not found by its object', ENTRIES_SQL, ENTRY_LISTS, [
    'objectRunId === undefined\n    ? { place }',
    "objectRunId === undefined\n    ? { place }\n    : objectRunId !== ''\n      ? { place: sql`e.run_id = ${objectRunId} and ${says(sql, 'object', object)}` }",
  ]),
  mutation('a text is searched as it is, not as it stands there', ENTRIES_SQL, ENTRY_LISTS, [
    '${canonicalJson(value)}',
    '"${value}"',
  ]),
  mutation('a receipt beyond the head holds', ENTRIES, ENTRY_LISTS, ['!found?.isLed', '!found']),
  mutation('a receipt of rewritten content holds', ENTRIES, ENTRY_LISTS, [': !found.isWhole', ': found.seq < 0']),
  mutation('a receipt of another entry holds', ENTRIES, ENTRY_LISTS, ['found.link !== receipt.link', 'found.seq < 0']),
  mutation("another organization's receipt is answered", ENTRIES, ENTRY_API, [
    '!(isOwn || receipt.chain === (await this.audit.installationChain()))',
    '!receipt.chain',
  ]),
  mutation("the installation's entries are for everybody", ENTRIES, ENTRY_LISTS, [
    'isOwn || caller.isInstallationAdmin',
    'true',
  ]),
  mutation("the installation's chain is for everybody", VERIFYING, VERIFY_API, [
    'if (!caller.isInstallationAdmin) {',
    'if (!caller.chain) {',
  ]),
  mutation("another chain's cursor is taken", 'src/audit/entry.dto.ts', ENTRY_API, [
    'place && place.chain !== chain',
    'place && !chain',
  ]),
  mutation('a damaged cursor is taken', 'src/audit/entry-cursor.rules.ts', CHAIN_RULES, [
    'return entryCursorOf(place) === cursor ? place : undefined;',
    'return place;',
  ]),
  mutation('an answer of events without a result ends in order', 'src/audit/progress-stream.ts', VERIFY_API, [
    'if (!this.out?.writableEnded) this.out?.destroy();',
    'this.out?.end();',
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
    'if (!this.permits.tryTake()) await watched(this.permits.wait(), this.options.watch);',
    'this.permits.tryTake();',
  ]),
  mutation('migrations without the lock', MIGRATE, MIGRATES, ['    await lock(client);\n', '']),
  mutation('a newer database is taken', MIGRATE, MIGRATES, ['if (foreign.length > 0)', 'if (false)']),
  mutation('a database of another encoding is taken', MIGRATE, MIGRATES, [
    `if (server.encoding !== 'UTF8')`,
    'if (false)',
  ]),
  mutation('a revoked token is taken', ACCESS, ACCESSES, [
    'revoked_at is not null as is_revoked',
    'false as is_revoked',
  ]),
  mutation('a revoked token is remembered for too long', SERVICE, ACCESSES, [
    'const REMEMBER_MS = 2_000',
    'const REMEMBER_MS = 20_000',
  ]),
  // run again, and wait
  mutation('what has not ended is run again', RUNS, RERUNS, ['if (!isEnded(earlier.state))', 'if (false)']),
  mutation('a rerun does not say of what', RUNS, RERUNS, ['id: undefined }, earlier.id)', 'id: undefined }, null)']),
  mutation('a rerun without an entry of what it does again', SUBMIT, RERUNS, [
    '      rerunOf,\n      specDigest',
    '      specDigest',
  ]),
  mutation('a rerun without an event of what it does again', SUBMIT, RERUNS, [
    'submitted: { origin, principal, rerunOf }',
    'submitted: { origin, principal }',
  ]),
  mutation('a rerun without its key', RUNS_EDGE, RERUNS, [
    'this.runs.rerun(caller, id, bearingOf(request))',
    'this.runs.rerun(caller, id, { ...bearingOf(request), key: null })',
  ]),
  mutation('a rerun starts behind the others', 'src/runs/submits.ts', RERUNS, [
    'return { kind, name, queue, priority,',
    'return { kind, name, queue, priority: Math.min(priority, 0),',
  ]),
  mutation('an end written here is not told here', HOLDER, WAITS, [
    'this.platform.bells.ended.ring([...written]);',
    '[...written];',
  ]),
  mutation('a cancel written here is not told here', RUNS, WAITS, ['this.platform.bells.ended.ring([id]);', '']),
  mutation('ends of other replicas are not seen', ENDS, WAITS, ['this.tell(ended.map(({ id }) => id));', '']),
  mutation('who went away is waited for', ENDS, WAITS, [`signal.addEventListener('abort', tell);`, '']),
  mutation('anybody may wait', ENDS, WAITS, ['this.count >= MAX_WAITERS', 'false']),
  mutation('who stops lets everybody wait', RUNS_MODULE, WAITS, ['this.ends.close();', '']),
  mutation(
    'polls when nobody waits',
    ENDS,
    WAITS,
    ['while (this.count > 0)', 'while (!this.isClosed)'],
    ['if (this.count === 0) break;', ''],
  ),
  mutation('a wait without end', ENDS, WAITS, ['setTimeout(tell, forMs)', 'setTimeout(() => undefined, forMs)']),
  mutation('a wait hangs with the database', ENDS, WAITS, ['if (isTransient(error)) return undefined;', '']),
  // what a tool reports
  mutation('reports of a run that does not run', REPORTS_SQL, REPORT_STORES, [
    `        and state = 'running'                                -- not ended\n`,
    '',
  ]),
  mutation('reports under an old fence', REPORTS_SQL, REPORT_STORES, [
    `        and fence = $3                                       -- and this claim's\n`,
    `        and $3::integer > 0\n`,
  ]),
  mutation('reports of another holder', REPORTS_SQL, REPORT_STORES, [
    `        and holder = $2                                      -- still this life's\n`,
    `        and $2::uuid is not null\n`,
  ]),
  mutation('a batch of reports that is sent again is stored again', REPORTS_SQL, REPORT_STORES, [
    `        and h.report_batch < $4::integer                     -- not stored before\n`,
    '',
  ]),
  mutation('reports on an unlocked look at the live row', REPORTS_SQL, REPORT_STORES, [
    '      for no key update\n',
    '',
  ]),
  mutation('a batch without progress forgets it', REPORTS_SQL, REPORT_STORES, [
    'coalesce($7::jsonb, l.progress)',
    '$7::jsonb',
  ]),
  mutation('a claim goes on with the batches of another', CLAIM, REPORT_STORES, [
    'report_batch = 0, progress = null ',
    'not_before = null ',
  ]),
  mutation('an end without its progress', ENDING, REPORT_STORES, [
    '        progress = e.progress\n',
    '        progress = null\n',
  ]),
  mutation('a tool may report the events of the product', REPORT_RULES, REPORT_READS, ['(?!run\\.)', '']),
  mutation('a line of any length is kept', REPORT_RULES, REPORT_READS, [
    'bytes > MAX_LINE_BYTES ? null',
    'bytes < 0 ? null',
  ]),
  mutation('a report may be nested as deep as it likes', REPORT_RULES, REPORT_READS, [
    'if (isTooDeep(text))',
    'if (false)',
  ]),
  mutation('a report may hold what cannot be stored', REPORT_RULES, REPORT_READS, [
    'const fault = findUnstorable(value);',
    'const fault = findUnstorable(null);',
  ]),
  mutation('the reason quotes what was refused', REPORT_RULES, REPORT_READS, [
    'cannot be stored: ${fault.message}',
    'cannot be stored: ${fault.pointer}${fault.message}',
  ]),
  mutation('credit before a report is stored', TOOL_REPORTS, REPORT_WRITES, [
    'if (last && !last.isReleased) last.credit += data.length;\n    else this.ports',
    'this.ports',
  ]),
  mutation('as many events as a tool likes', TOOL_REPORTS, REPORT_WRITES, ['|| this.reports > MAX_REPORTS', '']),
  mutation('as many refusals as a tool likes', TOOL_REPORTS, REPORT_WRITES, [
    'if (this.refusals > MAX_REFUSALS + 1) return;',
    '',
  ]),
  mutation('an output before the events are stored', TOOL_REPORTS, REPORT_WRITES, [
    '    await this.gatherer.drained();\n',
    '',
  ]),
  mutation('an output of which a part was not read', TOOL_REPORTS, REPORT_WRITES, [
    'if (source === 4) this.outputUnread = reason;\n    else ',
    '',
  ]),
  mutation('reports are stored for a run that was lost', GATHERER, REPORT_WRITES, ['if (!this.lost) await', 'await']),
  mutation('two batches of reports in flight', GATHERER, REPORT_WRITES, [
    'this.running ??= this.run();',
    'this.run();',
  ]),
  mutation('every report goes alone', GATHERER, REPORT_WRITES, ['if (waitMs <= 0) return;', 'if (waitMs) return;']),
  mutation('the end of a run waits for company', GATHERER, REPORT_WRITES, [
    '    this.isEnding = true;\n    this.holding?.abort();\n',
    '',
  ]),
  mutation('a report that was not read is the end of the run', 'src/execution/supervisor/launches.ts', REPORT_LOOKS, [
    "if (event.type === 'unread') {\n",
    "if (event.type === 'unread') {\n      this.#open.delete(event.key);\n",
  ]),
  mutation(
    'a link is followed to a report',
    REPORT_FILES,
    REPORT_LOOKS,
    ['if (info === null || info.isFile()) return info;', 'if (info === null || !info.isDirectory()) return info;'],
    [' | constants.O_NOFOLLOW', ''],
    ['info?.isFile() && !this.#isOver', 'info !== null'],
  ),
  mutation('an end before its reports', 'src/execution/supervisor/tool.ts', REPORT_LOOKS, [
    ' || !this.#areReportsRead',
    '',
  ]),
  mutation('a run says where its reports are', 'src/execution/supervisor/launch.ts', REPORT_LOOKS, [
    '...given, ...told]',
    '...told, ...given]',
  ]),
  mutation('what is no file is told with every look', REPORT_FILES, REPORT_LOOKS, [' || this.#told.has(source)', '']),
  mutation('a file that was renamed is not read to its end', REPORT_FILES, REPORT_LOOKS, [
    '      await this.#readTo(before, held);\n      if (isInPlace) return;',
    '      if (isInPlace) return this.#readTo(before, held);',
  ]),
  mutation('a file that was emptied is read on from where it was', GROWTH, REPORT_LOOKS, [
    'isBelieved || size < this.#offset',
    'isBelieved',
  ]),
  mutation('a file that was written over stands still', GROWTH, REPORT_LOOKS, ['isBelieved || size', 'size']),
  mutation('a file that was written over and renamed is passed over', REPORT_FILES, REPORT_LOOKS, [
    'isLast || !isInPlace',
    'isLast',
  ]),
  mutation('an append that is under way has all events come twice', GROWTH, REPORT_GROWS, [
    '(this.#isSuspect || isLast)',
    'true',
  ]),
  mutation('reports without credit', REPORT_FILES, REPORT_LOOKS, [
    'while (!this.#isOver && !this.#ports.canRead()) {',
    'while (false) {',
  ]),
  mutation('an end that waits for credit whatever the stop', REPORT_FILES, REPORT_LOOKS, [
    '    this.#mayWait = false;\n',
    '',
  ]),
  mutation(
    'an events file without an end',
    REPORT_FILES,
    REPORT_LOOKS,
    [' && this.#eventsBytes <= MAX_EVENTS_FILE_BYTES', ''],
    [', MAX_EVENTS_FILE_BYTES + 1 - this.#eventsBytes', ''],
  ),
  // the command line
  mutation('client: a new connection begins anew', CLIENT_MESSAGES, CLI_WAITS, [
    ", ...(lastId === undefined ? {} : { 'last-event-id': lastId })",
    '',
  ]),
  mutation('client: a tail leaves out what came while the connection was away', CLIENT_MESSAGES, CLI_LOGS, [
    'tail !== undefined && lastId === undefined',
    'tail !== undefined',
  ]),
  mutation('client: a half open connection is listened to for ever', CLIENT_EVENTS, CLI_WAITS, [
    'await Promise.race([reader.read(), silence])',
    'await reader.read()',
  ]),
  mutation('client: a server that closes every stream is rushed at', CLIENT_EVENTS, CLI_WAITS, [
    '    tries += 1;\n',
    '    tries = 1;\n',
  ]),
  mutation('client: a wait has no more patience than a question', CLIENT_EVENTS, CLI_WAITS, [
    '{ patienceMs: PATIENCE_MS, ...request(lastId) }',
    '{ patienceMs: undefined, ...request(lastId) }',
  ]),
  mutation('client: a strange answer amidst good ones is the end', TRANSPORT, 'test/cli/errors.process.spec.ts', [
    ' || (this.hasReached && attempt.error instanceof NoConnection)',
    '',
  ]),
  mutation('client: what is no stream is read as one', CLIENT_EVENTS, CLI_WAITS, [
    'if (!isStream || response.body === null)',
    'if (response.body === null)',
  ]),
  mutation('client: a queue that nobody serves is silent', 'src/cli/follow.ts', CLI_WAITS, [
    '    if (line !== undefined) await session.note(line, whyHint(run.id));\n',
    '',
  ]),
  mutation('client: nobody is asked twice whether to cancel', 'src/cli/wait.ts', CLI_CTRL_C, [
    'if (!isSure) return EXIT_CODES.interrupted.code;',
    '',
  ]),
  mutation('client: a pipe is offered a second Ctrl-C', 'src/cli/wait.ts', CLI_CTRL_C, [
    'if (isJson || !shell.isInteractive)',
    'if (isJson)',
  ]),
  mutation('client: the end of a canceled run hides the cancel', 'src/cli/wait.ts', CLI_CTRL_C, [
    '    if (departure.canceling !== undefined) return await departure.canceling;\n    if (session.isJson)',
    '    if (session.isJson)',
  ]),
  mutation('client: a third Ctrl-C is not heard', 'src/cli/shell.ts', CLI_CTRL_C, [
    '      process.exit(EXIT_CODES.interrupted.code);\n',
    '',
  ]),
  mutation('client: a cut is told amidst the bytes of the tool', 'src/cli/wait.ts', CLI_WAITS, [
    'await shell.stderr.write(lineBehind(shell',
    'await shell.stdout.write(lineBehind(shell',
  ]),
  mutation('client: who knows no ranges gets bytes written twice', 'src/cli/output.ts', CLI_LOGS, [
    'let skip = isPart ? 0 : this.position;',
    'let skip = 0;',
  ]),
  mutation('client: half of the last lines pass for all of them', 'src/cli/output.ts', CLI_LOGS, [
    '    if (tail !== undefined && this.position > 0) throw brokenTail();\n',
    '',
  ]),
  mutation('client: one header twice', 'src/cli/http-launch.ts', CLI_SUBMITS, [
    '    if (seen.has(name.toLowerCase())) throw',
    '    if (headers.has(name)) throw',
  ]),
  mutation('client: a copy goes on behind a byte that has moved', 'src/cli/output.ts', CLI_LOGS, [
    '    if (cut !== this.cut) throw movedOutput(this.id);\n',
    '',
  ]),
  mutation('client: a shorter output passes for the end of a longer one', 'src/cli/output.ts', CLI_LOGS, [
    ' || Number(total) !== this.position',
    '',
  ]),
  mutation('client: standard input is read twice, the second time empty', 'src/cli/http-launch.ts', CLI_SUBMITS, [
    'if (readers.length > 1)',
    'if (readers.length > 2)',
  ]),
  mutation('client: of two bodies the last is sent', 'src/cli/http-launch.ts', CLI_SUBMITS, [
    'if (before === undefined) return text;',
    'if (before !== text) return text;',
  ]),
  mutation("client: a tool's --json makes errors JSON", 'src/cli/commands.ts', CLI_USAGE, [
    'return this.session?.isJson ?? this.seeksJson(argv);',
    "return argv.includes('--json');",
  ]),
  mutation("client: of a refused command line a tool's words are taken for ours", 'src/cli/commands.ts', CLI_USAGE, [
    '      if (this.launching.has(command)) return false;\n',
    '',
  ]),
  mutation('client: a closed pipe leaves a run behind without a word', 'src/cli/wait.ts', CLI_PIPES, [
    '  await session.note(`standard output was closed; ${id} goes on to its own end`, ...hints).catch(() => undefined);\n',
    '',
  ]),
  mutation('client: a cut is told at another place than the server tells it', 'src/cli/stream.ts', CLI_WAITS, [
    '  count.add(fence, bytes.length);\n',
    '',
  ]),
  // following a run
  mutation(
    'the end of a run is told before its output',
    'src/runs/tail.rules.ts',
    'test/runs/tail-rules.unit.spec.ts',
    [`event.type === 'run.ended' ? Number.POSITIVE_INFINITY : Date.parse(event.at)`, 'Date.parse(event.at)'],
  ),
  mutation(
    'a page goes on behind output that it can not see',
    'src/runs/tail.rules.ts',
    'test/runs/tail-rules.unit.spec.ts',
    ['if ((!done && moreWork) || (!event && moreEvents)) return mixed;', 'if (!event && moreEvents) return mixed;'],
  ),
  mutation(
    'a stream closes with output that was not told',
    'src/runs/tail.rules.ts',
    'test/runs/run-tail.unit.spec.ts',
    ['isLast: standing.endedAt !== null && !hasMore &&', 'isLast: standing.endedAt !== null &&'],
  ),
  mutation('dropped output leaves no mark', 'src/runs/tail.rules.ts', 'test/runs/tail-rules.unit.spec.ts', [
    'if (batch === before.batch + 1) return [told];',
    'if (batch > 0) return [told];',
  ]),
  mutation('a start is told again and again', 'src/runs/tail.rules.ts', 'test/runs/tail-rules.unit.spec.ts', [
    'told < fence && fence <= limit',
    'fence <= limit',
  ]),
  mutation('who is behind reads past the others', 'src/runs/tail.rules.ts', 'test/runs/tail-rules.unit.spec.ts', [
    'events: standing.events.filter(({ seq }) => seq <= upTo.seq),',
    'events: standing.events,',
  ]),
  mutation('an id forgets that the run has started', 'src/runs/place.rules.ts', 'test/runs/tail-rules.unit.spec.ts', [
    'start > fence ? ',
    'start < 0 ? ',
  ]),
  mutation('each viewer reads for himself', 'src/runs/run-tail.ts', 'test/runs/run-tail.unit.spec.ts', [
    '    if (known) return known;\n',
    '',
  ]),
  mutation('viewers that came apart never meet', 'src/runs/run-tail.ts', 'test/runs/run-tail.unit.spec.ts', [
    'const limit = this.edge && joined(this.edge, place);',
    'const limit = undefined;',
  ]),
  mutation('a viewer waits for ever for what was dropped', 'src/runs/run-tail.ts', 'test/runs/run-tail.unit.spec.ts', [
    'if (page && page.steps.length > 0) return page;',
    'if (page) return page;',
  ]),
  mutation(
    'a database that is away is asked without a pause',
    'src/runs/run-tail.ts',
    'test/runs/run-tail.unit.spec.ts',
    ['FIRST_RETRY_MS * 2 ** this.failures', '0 * 2 ** this.failures'],
  ),
  mutation('a run is read on when nobody follows', 'src/runs/run-tail.ts', 'test/runs/run-tail.unit.spec.ts', [
    'if (!this.isFollowed || edge === undefined) return;',
    'if (edge === undefined) return;',
  ]),
  mutation(
    'what is kept for viewers grows without end',
    'src/runs/message-store.ts',
    'test/runs/message-store.unit.spec.ts',
    ['untilMs > nowMs && this.bytes <= this.bounds.maxBytes', 'untilMs > nowMs'],
  ),
  mutation('a slow viewer is written to all the same', 'src/runs/viewer.ts', 'test/runs/stream-viewers.api.spec.ts', [
    ') await this.drained();',
    ') await undefined;',
  ]),
  mutation('a viewer that takes nothing is kept', 'src/runs/viewer.ts', 'test/runs/stream-viewers.api.spec.ts', [
    'setTimeout(() => out.destroy(), this.options.stallMs)',
    'setTimeout(() => undefined, this.options.stallMs)',
  ]),
  mutation('a heartbeat in the middle of a message', 'src/runs/viewer.ts', 'test/runs/stream-viewers.api.spec.ts', [
    '!this.isSending && !this.isOver',
    '!this.isOver',
  ]),
  mutation(
    'a caller opens as many streams as he likes',
    'src/runs/stream-places.ts',
    'test/runs/stream-viewers.api.spec.ts',
    ['if (own >= maxStreamsOfCaller)', 'if (own < 0)'],
  ),
  mutation(
    'a replica takes any number of streams',
    'src/runs/stream-places.ts',
    'test/runs/stream-viewers.api.spec.ts',
    ['if (this.taken >= maxStreams)', 'if (this.taken < 0)'],
  ),
  mutation(
    'a stream that came to nothing keeps its place',
    'src/runs/stream.service.ts',
    'test/runs/stream-viewers.api.spec.ts',
    ['      leave();\n      throw error;', '      throw error;'],
  ),
  mutation(
    'a stopping replica keeps its streams',
    'src/runs/stream.service.ts',
    'test/runs/stream-viewers.api.spec.ts',
    ['for (const viewer of this.viewers) viewer.stop();', ''],
  ),
  mutation(
    'a run that is followed is open to every organization',
    'src/runs/stream.service.ts',
    'test/runs/stream.api.spec.ts',
    [
      'known?.run.organizationId === organizationId && !known.tail.isBroken',
      'known !== undefined && !known.tail.isBroken',
    ],
  ),

  // requests
  mutation('a request may go to a private address', ADDRESSES, REQUEST_RULES, [
    `address.range() !== 'unicast' || `,
    '',
  ]),
  mutation('a request may go to an address that was given out to nobody', ADDRESSES, REQUEST_RULES, [
    `address.kind() === 'ipv4' || address.match(...GLOBAL_IPV6)`,
    'true',
  ]),
  mutation('a mapped address is judged as it is written', ADDRESSES, REQUEST_RULES, [
    'const parsed = ipaddr.process(address);',
    'const parsed = ipaddr.parse(address);',
  ]),
  mutation('a literal address is connected to unchecked', CONNECT, CONNECTS, [
    'if (isIP(host) !== 0 && !isAllowed(host))',
    'if (false)',
  ]),
  mutation('a name is taken for all of its addresses', CONNECT, CONNECTS, [
    'addresses.filter(({ address }) => isAllowed(address))',
    'addresses',
  ]),
  mutation('nobody looks where a connection ends up', CONNECT, CONNECTS, [
    'if (!isAllowed(remoteAddress))',
    'if (false)',
  ]),
  mutation('a redirect takes credentials along to another origin', HOPS, REQUEST_RULES, [
    'if (url.origin !== hop.url.origin && !HARMLESS.has(word)) return false;',
    '',
  ]),
  mutation('a redirect leads out of the web', HOPS, REQUEST_RULES, ['!isWeb || ', '']),
  mutation('a result is as long as it comes', RESULT, REQUEST_RULES, [
    'if (Buffer.byteLength(json) <= MAX_RESULT_BYTES) return json;',
    'if (json) return json;',
  ]),
  mutation('a result holds a NUL', RESULT, REQUEST_RULES, [`if (!text.includes('\\0')) return`, 'if (true) return']),
  mutation('a body is kept whole', EXCHANGE, REQUESTS, [
    'const room = MAX_KEPT_BODY_BYTES - this.#keptBytes;',
    'const room = Number.MAX_SAFE_INTEGER;',
  ]),
  mutation('a body is read without credit', EXCHANGE, REQUESTS, ['if (!this.#canRead()) response.pause();', '']),
  mutation('a request goes out behind the deadline', FLEET, REQUESTS, [
    `if (refusal !== null) this.#refuse(start, refusal);\n    else if ('code' in requester)`,
    `if ('code' in requester)`,
  ]),
  mutation('a request is told as stopped while it is under way', HTTP_RUN, REQUESTS, [
    'setTimeout(() => this.#requester.kill(), ms)',
    'setTimeout(() => this.#end(null), ms)',
  ]),
  mutation('a request has no timeout', PLAN, HTTP_PLANS, [' ?? HTTP_TIMEOUT_MS', ' ?? 2 ** 40']),
  mutation('a caller sets how a request is framed', HTTP_SPEC, HTTP_SPECS, ['OWN_HEADERS.has(word) || ', '']),
  mutation('a URL holds credentials', HTTP_SPEC, HTTP_SPECS, [
    `if (url.username !== '' || url.password !== '')`,
    'if (false)',
  ]),
  mutation('refused lines cost a tool nothing', TOOL_REPORTS, REPORT_WRITES, [
    'if (decoded !== null) this',
    "if (decoded !== null && !('refused' in decoded)) this",
  ]),
  mutation('as many blank lines as a tool likes', TOOL_REPORTS, REPORT_WRITES, ['line.number <= MAX_LINES', 'true']),
  mutation(
    'lines are looked for in what is counted away',
    TOOL_REPORTS,
    REPORT_WRITES,
    ['if (source === 3 && !this.isOver)', 'if (source === 3)'],
    ['of this.isOver ? [] : this', 'of this'],
  ),
  mutation('client: a token file is read to its end', 'src/cli/credentials.ts', CLI_CREDENTIALS, [
    'bytes > TOKEN_FILE_BYTES',
    'bytes < 0',
  ]),
  mutation('reports of any number are one turn of the loop', 'src/execution/slices.ts', SLICES, [
    'if (this.timing.monotonicMs() >= untilMs) return;',
    '',
  ]),
  mutation('client: a device is read to its end', 'src/cli/text-file.ts', CLI_SUBMITS, [
    'if (bytes.length > limitBytes)',
    'if (bytes.length < 0)',
  ]),
  mutation('client: each cut of unknown size is told', 'src/cli/cut.rules.ts', CLI_WAITS, [
    'if (this.isUnknownTold) return undefined;',
    '',
  ]),
  mutation('a server has a whole result refused by a header', RESULT, REQUEST_RULES, [
    `.filter(([name]) => name !== '__proto__')`,
    '',
  ]),
  mutation('the service of a platform is public', ADDRESSES, REQUEST_RULES, [
    ' || PLATFORM_ADDRESSES.has(address.toString())',
    '',
  ]),
  mutation('a stop loses what came of an answer', EXCHANGE, REQUESTS, [
    'if (result !== null) this.#ports.onResult(result);\n  }\n\n  /** The replica',
    '}\n\n  /** The replica',
  ]),
  mutation('surplus bytes take a whole answer away', EXCHANGE, REQUESTS, [
    'if (attempt.response?.complete !== true) ',
    '',
  ]),
  mutation('a fault takes away what came before it', EXCHANGE, REQUESTS, [
    'if (attempt.response !== null) this.#takeRest(attempt.response);',
    '',
  ]),
  mutation('a request cannot say that it obeyed while output is held up', REQUESTER, HELD_UP, [
    ' && this.#aborting.size === 0',
    '',
  ]),
  mutation('client: standard input is for the script and its tool', 'src/cli/launch.ts', CLI_USAGE, [
    "if (file === '-' && options.stdin === '-')",
    'if (false)',
  ]),
  mutation('client: refused reports are silent', 'src/cli/wait.ts', CLI_WAITS, ['if (refusals > 0) ', 'if (false) ']),
  mutation('client: a run that was found is told as submitted', 'src/cli/wait.ts', CLI_SUBMITS, [
    'else if (isAwaited) await',
    'if (isAwaited) await',
  ]),
  mutation('client: a word passes for an id', 'src/cli/ids.ts', CLI_USAGE, ['if (RUN_ID.test(id))', "if (id !== '')"]),
  mutation('client: a mistyped word is left to the server', 'src/cli/filters.ts', CLI_USAGE, [
    'if (choices.includes(text)) return text;',
    'return text;',
  ]),
  mutation('client: a run that goes on looks interrupted', 'src/cli/failure.ts', CLI_LOGS, [
    "detail && exit === 'interrupted' ? detail : ",
    '',
  ]),

  // wake-ups
  mutation('a replica that listens anew does not ask what it missed', WAKE, WAKES, [
    '    this.relay(WAKE_WORDS);\n',
    '',
  ]),
  mutation('a replica hears itself', WAKE_RULES, WAKE_WORDS, [' || message.from === self', '']),
  mutation('what others told is told again', WAKE, WAKES, ['    if (this.isRelaying) return;\n', '']),
  mutation('each ring is a NOTIFY of its own', WAKE, WAKES, [
    '    await this.platform.timing.delay(QUIET_MS, this.stopping.signal);\n',
    '',
  ]),
  mutation('what could not be told is forgotten', WAKE, WAKES, [
    '      for (const word of words) this.untold.add(word);\n',
    '',
  ]),
  mutation('a silent connection is listened to for ever', WAKE, WAKES, [
    '    await refuseReadOnly(session);\n    this.failures',
    '    this.failures',
  ]),
  mutation('a cancel is told to nobody', WAKE_RULES, WAKES, [
    "['claimable', 'canceled'] as const",
    "['claimable'] as const",
  ]),
  mutation('strangers can make a replica fail', WAKE_RULES, WAKE_WORDS, [
    '  } catch {\n    return undefined;',
    '  } catch (error) {\n    throw error;',
  ]),
  mutation('what is told during a claim is forgotten after it', WORK, WORKS, [
    'if (mayBeMore) this.wantsClaim = true;',
    'this.wantsClaim = mayBeMore;',
  ]),
  // drain
  mutation('a person drains whatever there is', DRAIN, DRAINS, [
    '        and state = ${from}                                  -- never a life that is over\n',
    '',
  ]),
  mutation('the drain of a person does not lock the worker row', DRAIN, DRAINS, ['      for update\n', '']),
  mutation('an undrain of a process that is stopping', DRAIN, DRAINS, [
    "        and (state = 'live' or drained_by is not null)       -- nor a process that is stopping\n",
    '',
  ]),
  mutation('a drain or undrain that comes late undoes a later one', DRAIN, DRAINS, [
    '        and drains = ${seen}                                 -- a statement that comes late undoes no later decision\n',
    '',
  ]),
  mutation('a drain is not counted', DRAIN, DRAINS, [', drains = w.drains + 1', '']),
  mutation('a run that goes back to others is told to nobody', 'src/execution/starting.ts', EXECUTIONS, [
    '  parts.platform.bells.claimable.ring();\n',
    '',
  ]),
  mutation('a start that a drain refuses is a warning', 'src/execution/starting.ts', EXECUTIONS, [
    "mode() === 'draining' || (await holder.isDraining())",
    "mode() === 'draining'",
  ]),
  mutation('a run whose start fails is kept', 'src/execution/starting.ts', EXECUTIONS, [
    "    onStartFailed(error);\n    await giveBack(run, 'start', parts);\n",
    '    onStartFailed(error);\n',
  ]),
  mutation('starts that fail are tried in a storm', WORK, WORKS, [' || timing.monotonicMs() < this.pausedUntilMs', '']),
  mutation('the starts of one claim that fail count each', WORK, WORKS, [
    '    if (now < this.pausedUntilMs) return;\n',
    '',
  ]),
  mutation('a start that went well ends no pause', WORK, WORKS, ['    this.startFailures = 0;\n', '']),
  mutation('a process that stops leaves the drain of a person as it was', WORKER, DRAINS, [
    '(state <> ${state} or drained_by is not null)',
    'state <> ${state}',
  ]),
  mutation('a process that stops may be undrained', WORKER, DRAINS, [
    "state === 'stopped' ? sql`w.drained_by` : sql`null`",
    "state === 'stopped' ? sql`w.drained_by` : sql`w.drained_by`",
  ]),
  mutation('a pulse says nothing of a drain', PULSE, DRAINS, [
    "not exists (select from workers where id = ${worker} and state = 'live') as draining",
    'false as draining',
  ]),
  mutation('a life that drains claims on in vain', WORK, DRAIN_WORKS, ['this.isDraining || ', '']),
  mutation('a replica that stops does not say so', 'src/replica/life.ts', DRAIN_STOPS, [
    "this.leave('draining', timing.monotonicMs() + drainMs + config.killGraceMs)",
    'Promise.resolve()',
  ]),
  mutation('a life begun while its process stops is left alone', 'src/replica/replica.service.ts', DRAIN_STOPS, [
    '      if (stopping.signal.aborted) return await life.end(0, stopping.signal);\n',
    '',
  ]),
  mutation('client: one of several workers of a name is guessed', 'src/cli/workers.ts', CLI_WORKERS, [
    'if (one && others.length === 0) return one.id;',
    'if (one) return one.id;',
  ]),
  mutation('client: a life that no longer renews stands in the way of its name', 'src/cli/workers.ts', CLI_WORKERS, [
    ' && lastMs - seenMs(worker) <= ttlMs / 3',
    '',
  ]),
  mutation('client: a drain is waited for in spite of its end', 'src/cli/workers.ts', CLI_WORKERS, [
    "if (state === 'live') {",
    "if (state === '') {",
  ]),
  mutation('client: what stands behind the name of a group is lost', 'src/cli/commands.ts', CLI_WORKERS, [
    ' ...group,',
    '',
  ]),

  // janitors: what the statements of architecture §3 and their callers promise beside the guards above
  mutation('a start sent again is refused', CLAIM, RACES, [
    "(l.state = 'running'                           -- started before\n               or (l.state = 'claimed'",
    `((l.state = 'claimed'`,
  ]),
  mutation('release does not lock the run', CLAIM, RACES, [
    `        and l.state = 'claimed'\n      order by l.run_id\n      for update of l\n`,
    `        and l.state = 'claimed'\n      order by l.run_id\n`,
  ]),
  mutation('renewal of whoever there is', RENEW, RENEWS, [
    '     where id = $1::uuid                        -- this life, and no other of the same name\n',
    '     where $1::uuid is not null\n',
  ]),
  mutation('renewal only of what has not expired', RENEW, RENEWS, [
    `       and state in ('live', 'draining')        -- neither stopped nor reaped\n`,
    `       and state in ('live', 'draining') and lease_until > db_clock()\n`,
  ]),
  mutation('reap of a life that is over', WORKER, RACES, [
    `      where w.state in ('live', 'draining')\n        and w.lease_until < db_clock()\n      order by w.id\n`,
    '      where w.lease_until < db_clock()\n      order by w.id\n',
  ]),
  mutation('a reap leaves no entry', WORKER, RACES, [
    'select count(*) as n from entry e cross join lateral audit_append(e.chains, e.payloads, e.run_ids)\n    )\n    select r.id',
    'select count(*) as n from entry e\n    )\n    select r.id',
  ]),
  mutation('a requeue raises the fence', SETTLE, CROWD, [
    `      set state = 'pending', holder = null,`,
    `      set state = 'pending', fence = l.fence + 1, holder = null,`,
  ]),
  mutation('a requeue goes to the end of its queue', SETTLE, CROWD, [
    `      set state = 'pending', holder = null,`,
    `      set state = 'pending', position = default, holder = null,`,
  ]),
  mutation('a janitor takes the word of another for its own', JANITOR, CROWD, [
    'const settled = await settleIfOrphaned(\n',
    "const settled: Settled[] = orphans.map(({ runId }) => ({ runId, result: 'interrupted' }));\n    await settleIfOrphaned(\n",
  ]),
  mutation('a janitor settles all there is at once', JANITOR, CROWD, ['const BATCH = 200;', 'const BATCH = 20_000;']),
  mutation('a janitor settles one batch only', JANITOR_LOOP, JANITOR_STEPS, [
    '    this.seen = { ...this.seen, orphaned: settled.length > 0 };\n',
    '',
  ]),
  mutation('a janitor reaps before its own keeper has renewed', JANITOR_LOOP, JANITOR_STEPS, [
    'this.keeper.stats.renewalsSinceOutage >= enough && ',
    '',
  ]),
  mutation('a janitor reaps right after the clock jumped', JANITOR_LOOP, JANITOR_STEPS, [
    'this.keeper.stats.renewalsSinceOutage >= enough && !isPatient',
    'this.keeper.stats.renewalsSinceOutage >= enough',
  ]),
  mutation('a janitor trusts a clock that just jumped', JANITOR_LOOP, JANITOR_STEPS, [
    'return !hasJumped;',
    'return true;',
  ]),
  mutation('a janitor trusts a look at the clock that took long', JANITOR_LOOP, JANITOR_STEPS, [
    '    if (clock.receivedAtMs - clock.sentAtMs > SHARP_MS) return false;\n',
    '',
  ]),
  mutation('a promotion of what is held', PULSE, QUEUE, [
    `      where state = 'pending'\n        and not_before <= db_now()\n      order`,
    '      where not_before <= db_now()\n      order',
  ]),
  mutation('output dropped of what does not run', OUTPUT, OUTPUTS, [
    `        and fence = $3\n        and state = 'running'\n      for key share\n    ),\n    dropped`,
    `        and fence = $3\n      for key share\n    ),\n    dropped`,
  ]),
  mutation('output dropped on an unlocked look at the run', OUTPUT, OUTPUTS, [
    `      for key share\n    ),\n    dropped`,
    `    ),\n    dropped`,
  ]),
  mutation('the table lets settle requeue in spite of a cancel request', MACHINE, STATEMENTS, [
    `row('8', 'settle', ['claimed'], ['holder_gone', 'no_cancel']`,
    `row('8', 'settle', ['claimed'], ['holder_gone']`,
  ]),
  mutation('a janitor reaps before the last owner is back from an outage', KEEPER_RULES, KEEPER_RULES_SPEC, [
    'statementLimitMs(renewMs) + LONGEST_BACKOFF_MS + NEXT_TRY_MS;',
    'renewMs;',
  ]),
  mutation('KILL stops at the process group', PROCESSES, CGROUP_TOOLS, ['    this.#cgroup?.kill();\n', '']),
  mutation('an end is told while the cgroup lives', PROCESSES, CGROUP_TOOLS, [
    'return this.#cgroup === null || !this.#cgroup.isPopulated();',
    'return true;',
  ]),
  mutation('TERM stops at the process group', PROCESSES, CGROUP_FACTS, [
    'for (const pid of outside) signalProcess(pid, signal);',
    '',
  ]),
  mutation('TERM twice for those of the group', PROCESSES, CGROUP_FACTS, [
    '.filter((pid) => groupOf(pid) !== this.pgid)',
    '',
  ]),
  mutation('a kernel without cgroup.kill kills nothing', CGROUP, CGROUP_FACTS, [
    "for (const pid of this.members()) signalProcess(pid, 'SIGKILL');",
    '',
  ]),
  mutation('the supervisor stays in the cgroup of its tool', TOOL_CGROUPS, CGROUP_TOOLS, [
    '      writeSync(this.#wayBack, SELF);\n      return true;',
    '      return true;',
  ]),
  mutation('a tool is born beside its cgroup', TOOL_CGROUPS, CGROUP_TOOLS, ['      enter(cgroup.path);\n', '']),
  mutation('the cgroup of a tool stays', 'src/execution/supervisor/fleet.ts', CGROUP_TOOLS, [
    'if (spawned.cgroup !== null) this.#track(spawned.cgroup.remove());',
    '',
  ]),
  mutation('a lost tool is killed without its cgroup', 'src/execution/supervisor/launches.ts', CGROUP_TOOLS, [
    'cgroups === null ? null : toolCgroup(cgroups, key)',
    'null',
  ]),
  mutation('what a dead supervisor left lives on', 'src/execution/supervisor/supervisor.client.ts', CGROUP_TOOLS, [
    'void sweep(cgroup, options);',
    '{}',
  ]),
  mutation('the cgroups of a living supervisor are taken for those of a dead one', TOOL_CGROUPS, CGROUP_TOOLS, [
    "return life.start !== start || life.state === 'Z' || life.state === 'X';",
    'return true;',
  ]),
  mutation('the cgroups of another namespace are taken for those of a dead one', TOOL_CGROUPS, CGROUP_TOOLS, [
    'namespace !== namespaceOfPids() || ',
    '',
  ]),
  mutation('a number that was given away again stands for the dead', TOOL_CGROUPS, CGROUP_TOOLS, [
    'life.start !== start || ',
    '',
  ]),
  mutation('a tool fails when it cannot be put into a cgroup', TOOL_CGROUPS, CGROUP_TOOLS, [
    '      return null;\n    }\n  }\n\n  /** False',
    '      throw error;\n    }\n  }\n\n  /** False',
  ]),
  mutation('a supervisor fails where no cgroup can be had', TOOL_CGROUPS, CGROUP_NONE, [
    'for (const path of [tried, folder]) removeNow(path);\n      return null;',
    'throw error;',
  ]),
  mutation(
    'a start waits for what a dead supervisor left',
    'src/execution/supervisor/supervisor.client.ts',
    CGROUP_TOOLS,
    ['void sweep(cgroup, options);', 'await sweep(cgroup, options);'],
  ),
  mutation('what cannot be ended is tried for ever', TOOL_CGROUPS, CGROUP_TOOLS, ['empty(SWEEP_KILLS)', 'empty()']),
  mutation('what /proc hides is taken for dead', TOOL_CGROUPS, CGROUP_TOOLS, [
    'if (life === null) return isUnknown(Number(pid));',
    'if (life === null) return true;',
  ]),
  mutation('the way back from the cgroup of a tool needs a free descriptor', TOOL_CGROUPS, CGROUP_TOOLS, [
    '      writeSync(this.#wayBack, SELF);\n      return true;',
    "      enter(join(this.folder, '..'));\n      return true;",
  ]),
  mutation('the cgroup in which the supervisor stays is taken for that of the tool', TOOL_CGROUPS, CGROUP_TOOLS, [
    'return [spawned, this.#stepBack() ? cgroup : null];',
    'return [spawned, (this.#stepBack(), cgroup)];',
  ]),
  mutation('one tool without a cgroup is all of them', TOOL_CGROUPS, CGROUP_TOOLS, [
    '      this.#isOneTold = true;',
    '      this.#isLost = this.#isOneTold = true;',
  ]),
  mutation('the end of a supervisor waits for folders', TOOL_CGROUPS, CGROUP_FACTS, [
    'void cgroup.remove();\n}',
    'await cgroup.remove();\n}',
  ]),
  mutation('a canceled run hides that its tool had to be killed', OUTCOME, CANCELS, [
    "detail: howItWasKilled(end) ?? ''",
    "detail: ''",
  ]),

  // What a balancer sees.
  mutation('one look that failed takes a replica out', 'src/replica/readiness.rules.ts', READINESS, [
    'const SEEN_IN_A_ROW = 2;',
    'const SEEN_IN_A_ROW = 1;',
  ]),
  mutation('a slow database is taken for silent', 'src/replica/readiness.rules.ts', READINESS_SEEN, [
    'const SILENT_TICKS = 9;',
    'const SILENT_TICKS = 4;',
  ]),
  mutation('a silent database is waited for', 'src/replica/readiness.rules.ts', READINESS_SEEN, [
    'const SILENT_TICKS = 9;',
    'const SILENT_TICKS = 90;',
  ]),
  mutation('answers to others are no sign of life', 'src/replica/readiness.rules.ts', READINESS, [
    'if (sign.othersAnswered) return { ...view, failures: 0, silentTicks: 0, unansweredTicks: 0 };',
    '',
  ]),
  mutation('a read-only database is ready', 'src/replica/readiness.rules.ts', READINESS, [
    'if (sign.writable) return',
    'if (true) return',
  ]),
  mutation('the port is opened to all before the start is over', 'src/platform/http/traffic.ts', READINESS_STARTS, [
    "if (this.phase !== 'starting' || ALWAYS_OPEN.has(route)) return undefined;",
    'if (this.phase) return undefined;',
  ]),
  mutation('a server gives up waiting for the lock', 'src/boot.ts', READINESS_STARTS, [
    'waitMs: Number.POSITIVE_INFINITY',
    'waitMs: 1',
  ]),
  mutation('a replica that stops is ready', 'src/platform/http/traffic.ts', READINESS_STOPS, [
    "this.phase = 'stopping';",
    '',
  ]),
  mutation('no balancer has time to notice', 'src/replica/stop.ts', READINESS_STOPS, [
    'const NOTICED_AFTER_MS = 2_000;',
    'const NOTICED_AFTER_MS = 0;',
  ]),
  mutation('what is under way has no time when the port closes', 'src/platform/http/traffic.ts', READINESS_STOPS, [
    'this.answerUntilMs = this.stoppingAtMs + answerMs;',
    '',
  ]),
  mutation('the server has no bounds of its own', DB, 'test/platform/db/sessions.process.spec.ts', [
    'idle_in_transaction_session_timeout: 3_000',
    'idle_in_transaction_session_timeout: 0',
  ]),

  // what a lost life still wanted to write is told
  mutation('an end that a lost life keeps to itself is not logged', EXECUTOR, EXECUTIONS, [
    "{ code: 'run_end_withheld', ...about() }",
    '{}',
  ]),
  mutation('a write that was refused because the run is lost is not logged', CAPTURE, EXECUTIONS, [
    "{ code: 'run_write_refused', run, fence: this.run.fence, what }",
    '{}',
  ]),
  mutation('an end that was refused is not logged', EXECUTOR, EXECUTIONS, [
    "{ code: 'run_end_refused', ...about() }",
    '{}',
  ]),
  // many replicas behind a balancer
  mutation('an answer is lost with the body that nobody read', 'src/platform/http/app.ts', HOSTILE, [
    'done(null, lingering(request, reply, payload));',
    'done();',
  ]),
  // starts, stops and waits that nobody notices
  mutation('the port is open before the start is over', 'src/boot.ts', READINESS_STARTS, [
    'const OPEN_AFTER_MS = 5_000;',
    'const OPEN_AFTER_MS = 0;',
  ]),
  mutation('a start that waits looks dead', 'src/boot.ts', READINESS_STARTS, [
    'await Promise.race([up, systemTiming.delay(OPEN_AFTER_MS)]);',
    'await up;',
  ]),
  mutation('a port that is taken is found last', 'src/boot.ts', 'test/boot.process.spec.ts', [
    '  if (hasPort) await refuseTakenPort(config);\n',
    '',
  ]),
  mutation('it is said to be ready before anybody has looked', 'src/boot.ts', 'test/replica/replicas.process.spec.ts', [
    '  await readiness.untilUsable(USABLE_WITHIN_MS);\n',
    '',
  ]),
  mutation('nobody was connected, and the end is waited for', 'src/platform/http/traffic.ts', READINESS_STOPS, [
    '      if (!isEnding) onIdleEnded();\n    };',
    '    };',
  ]),
  mutation('a server that was demoted is looked at for ever', 'src/replica/readiness-watch.ts', READINESS_SEEN, [
    '      if (!writable) pools.probe.reconnect();\n',
    '',
  ]),
  mutation('renewals stand behind a migration', MIGRATE, MIGRATES, [
    '    await ask(client, `set lock_timeout = ${TABLE_LOCK_WITHIN_MS}`);\n',
    '',
  ]),
  mutation('a table in use is refused', MIGRATE, MIGRATES, [
    "const LOCK_NOT_AVAILABLE = '55P03';",
    "const LOCK_NOT_AVAILABLE = '';",
  ]),
  mutation('a server that was demoted is listened to for ever', WAKE, WAKES, [
    "  if (server?.isReadOnly !== false) throw new Error('the server is read-only');\n",
    '',
  ]),
  mutation('sessions that do not last follow each other at full speed', WAKE, WAKES, [
    '      this.failures += 1;\n',
    '',
  ]),
  mutation('a listener that throws mutes the process', WAKE, WAKES, [
    '    } finally {\n      this.isRelaying = false;\n    }',
    '    } finally {\n    }\n    this.isRelaying = false;',
  ]),
  mutation('what rings in the last moment is dropped', WAKE, WAKES, [
    '      if (session.isOpen && this.untold.size > 0) await this.tell(session);\n',
    '',
  ]),
  // Fewer connections than a fleet would open; clients that take no answer.
  mutation('the server waits for who takes no answer', DB, 'test/chaos/database-stopped.system.spec.ts', [
    ', tcp_user_timeout: SEND_TIMEOUT_MS',
    '',
  ]),
  mutation('a pool keeps what it does not use though there is no room', DB, ROOMS, [
    '      if (this.room.isShort && this.permits.waiting === 0) this.leave(this.boundMs);\n',
    '',
  ]),
  mutation('a byte pool keeps what it does not use though there is no room', BYTE_POOL, ROOMS, [
    '      if (this.room.isShort && this.permits.waiting === 0) void this.closeIdle();\n',
    '',
  ]),
  mutation('a pool gives nothing back to who was refused', DB, ROOMS, [
    '    this.room.onShort(() => this.leave(this.boundMs));\n',
    '',
  ]),
  mutation('a byte pool gives nothing back to who was refused', BYTE_POOL, ROOMS, [
    '    this.room.onShort(() => void this.closeIdle());\n',
    '',
  ]),
  mutation('a refused try is repeated at once', DB, ROOMS, [
    'this.permits.give(restMs);',
    'this.permits.give(restMs * 0);',
  ]),
  mutation('a refused connection is a lost one', DB, ROOMS, [
    '        if (this.refused > 0) {\n          this.refused -= 1;\n          return;\n        }\n',
    '',
  ]),
  mutation('pools open connections before the lease keeper has its own', DB, ROOMS, [
    '    if (this.inFlight > this.opened) this.room.enter();\n',
    '',
  ]),
  mutation('byte pools open connections before the lease keeper has its own', BYTE_POOL, ROOMS, [
    '    this.room.enter();\n',
    '',
  ]),
  mutation('nobody hears that the lease keeper is refused', 'src/execution/keeper/outage.ts', ROOMS, [
    "    if (isNoRoom(error)) this.report({ type: 'refused' });\n",
    '',
  ]),
  mutation('a burst is for good', DB, ROOMS, ['if (this.needed < this.opened) this.leave(this.boundMs);', '']),
  mutation('a burst of bytes is for good', BYTE_POOL, ROOMS, ['    void this.closeIdle(this.spare);\n', '']),
  // Janitors after outages, and ends that are known at the last moment.
  mutation('renewals before an outage count behind it', 'src/execution/keeper/renewer.ts', KEEPER_OUTAGE, [
    'isOutage(memory.renewalSentAtMs, Number(sentAt) / 1e6, settings.renewMs)',
    'false',
  ]),
  mutation(
    'renewals from before an outage count while it lasts',
    'src/execution/keeper/keeper.client.ts',
    KEEPER_OUTAGE,
    ['isOutage(sentAtMs, nowMs(), this.renewMs) ? 0 : this.memory', 'this.memory'],
  ),
  mutation('an end is reduced because the database was away', 'src/runs/holder.service.ts', LAST_TRY, [
    '      if (isTransient(error)) return this.doubting(this.finishes.push(finish));\n',
    '',
  ]),
  mutation(
    'a life after one that a person drained takes runs',
    'src/runs/worker.sql.ts',
    'test/replica/drain.process.spec.ts',
    [`case when drained_by is null then 'live' else 'draining' end, drained_by`, `'live', null`],
  ),
  // Timestamps by an outside authority.
  mutation('a timestamp of another link is accepted', TIMESTAMP, TOKENS, [
    "  if (!isSame(imprint, digest('sha256', Buffer.from(link, 'hex')))) throw refused('the timestamp is of another link');\n",
    '',
  ]),
  mutation('a timestamp counts whatever it digests with', TIMESTAMP, TOKENS, [
    "  if (HASHES[readAlgorithm(imprint).oid] !== 'sha256') throw refused('the timestamp is not of a SHA-256 digest');\n",
    '  readAlgorithm(imprint);\n',
  ]),
  mutation('a timestamp of no day of the calendar is accepted', TIMESTAMP, TOKENS, [
    "  if (!isInCalendar) throw refused('the time in the timestamp is not in the calendar');\n",
    '',
  ]),
  mutation('any certificate dates', TIMESTAMP, TOKENS, ['named.find(isForTimestamping)', 'named[0]']),
  mutation('any certificate is the signer of a timestamp', TIMESTAMP, TOKENS, [
    'return isSame(sid.content, issuerAndSerial);',
    'return true;',
  ]),
  mutation('a signer that is named by its key is anybody', TIMESTAMP, TOKENS, [
    'identifier !== undefined && isSame(sid.content, octetsOf(identifier))',
    'identifier === undefined',
  ]),
  mutation('a timestamp need not be what was signed', TIMESTAMP, TOKENS, [
    'signed?.tag !== TAG.octets || !isSame(signed.content, digest(hash, content))',
    'signed?.tag !== TAG.octets',
  ]),
  mutation('anything that was signed is a timestamp', TIMESTAMP, TOKENS, [
    'type?.tag !== TAG.oid || oidText(type) !== TST_INFO',
    'type?.tag !== TAG.oid',
  ]),
  mutation('a certificate need not be the one that the signer named', TIMESTAMP, TOKENS, [
    "  if (!holds) throw refused('the certificate is not the one that the signer named');\n",
    '',
  ]),
  mutation('a certificate that hides in another is read', TIMESTAMP, TOKENS, [
    'if (isSame(certificate.raw, der)) return certificate;',
    'return certificate;',
  ]),
  mutation("a timestamp's signature need not hold", TIMESTAMP, TOKENS, [
    "  if (!holds) throw refused('the signature of the timestamp does not hold');\n",
    '',
  ]),
  mutation('a signature may use another digest than its signer says', TIMESTAMP, TOKENS, [
    "  if ((scheme.hash ?? hash) !== hash) throw refused('the signature uses another digest than its signer');\n",
    '',
  ]),
  mutation('an attribute of a signer counts the second time', TOKEN_PARTS, TOKENS, [
    "    if (found.has(oid)) throw refused('the signer says an attribute twice');\n",
    '',
  ]),
  mutation('an attribute of a signer has values to choose from', TOKEN_PARTS, TOKENS, ['    values.end();\n', '']),
  mutation('bytes behind a token are passed over', TOKEN_PARTS, TOKENS, [
    "'the timestamp token');\n  const contentInfo = file.open(TAG.sequence);\n  file.end();\n",
    "'the timestamp token');\n  const contentInfo = file.open(TAG.sequence);\n",
  ]),
  mutation('a length in DER may be written long', DER, DER_UNITS, [
    "    if (length < 0x80 || length < 256 ** (size - 1)) this.refuse('has a length that is not in its shortest form');\n",
    '',
  ]),
  mutation('a value in DER may go beyond the end', DER, DER_UNITS, [
    "    if (length > this.bytes.length - from) this.refuse('ends too early');\n",
    '',
  ]),
  mutation('an authority may answer another request', TSA, TSA_CLIENT, ['stamp.nonce !== nonce', 'false']),
  mutation('an authority may answer without end', TSA, TSA_CLIENT, ['size > LONGEST_ANSWER_BYTES', 'false']),
  mutation("an authority's redirect is followed", TSA, TSA_CLIENT, ["redirect: 'manual'", "redirect: 'follow'"]),
  mutation("an authority's refusal is read as an answer", TSA, TSA_CLIENT, ['!GRANTED.includes(status)', 'false']),
  mutation('several replicas have one chain dated', ANCHORS, ANCHORED, [
    '      where t.until <= db_clock()                            -- another was faster: the turn is his\n',
    '',
  ]),
  mutation('a chain is dated before its interval is over', ANCHORS, ANCHORED, [
    "        and coalesce(newest.created_at, '-infinity') <= db_clock() - ${intervalMs} * interval '1 millisecond'\n",
    '        and ${intervalMs}::float8 > 0\n',
  ]),
  mutation('a chain that did not grow is dated again', ANCHORS, ANCHORED, [
    'where h.seq > coalesce(newest.seq, 0)',
    'where true',
  ]),
  mutation('a turn to have a chain dated never ends', ANCHORS, ANCHORED, [
    "        and coalesce(t.until, '-infinity') <= db_clock()\n",
    '        and t.until is null\n',
  ]),
  mutation('an anchor is stored for an entry that changed', ANCHORS, ANCHORED, [
    "      and link = decode(${anchor.link}, 'hex')               -- what was timestamped is what stands there\n",
    '',
  ]),
  mutation('an anchor is stored though its time is before the entry', ANCHOR_LOOP, ANCHORED, [
    '    if (fault) return fault;\n',
    '',
  ]),
  mutation('an authority that is silent holds up a stop', TSA, TSA_CLIENT, [
    'AbortSignal.any([signal, outOfTime])',
    'outOfTime',
  ]),
  // No change without its entry, and who is refused.
  mutation('a revoked token acts', GUARD, REFUSED, [
    'if (identity && !identity.isRevoked) return',
    'if (identity) return',
  ]),
  mutation('a revoked token leaves no trace', GUARD, REFUSED, [
    "    if (identity) this.refusals.note(identity.caller, refusalOf('unauthorized', request));\n",
    '',
  ]),
  mutation('what is forbidden leaves no trace', GUARD, REFUSED, [
    "    if (caller) this.refusals.note(caller, refusalOf('forbidden', request));\n",
    '',
  ]),
  mutation('every fault counts as a refusal', 'src/platform/http/problem.filter.ts', REFUSED, [
    "if (found.code === 'forbidden') this.noteForbidden",
    'this.noteForbidden',
  ]),
  mutation(
    'an entry about a refusal bears what was asked for',
    GUARD,
    REFUSED,
    ["route: (routeOptions.url ?? '')", "route: `${routeOptions.url ? '' : ''}${request.url}`"],
    [
      '{ method, routeOptions }: FastifyRequest): Refusal {\n',
      'request: FastifyRequest): Refusal {\n  const { method, routeOptions } = request;\n',
    ],
  ),
  mutation('a flood of refused attempts fills the chain', REFUSALS, REFUSED, [
    'if (nowMs < minute.untilMs) {',
    'if (nowMs < 0) {',
  ]),
  mutation('refused attempts that were not written are forgotten', REFUSALS, REFUSED, [
    '      minute.untold += 1;\n',
    '',
  ]),
  mutation('refusals that could not be written are forgotten', REFUSALS, REFUSED, [
    '        minute.untold += suppressed + 1;\n',
    '',
  ]),
  mutation('every refusal that is not written is told', REFUSALS, REFUSED, [
    'if (!this.isFailing) {',
    'if (suppressed >= 0) {',
  ]),
  mutation('a revoked token costs a statement each time', SERVICE, REFUSED, [
    'this.remembered.set(memo, { identity,',
    'if (!identity.isRevoked) this.remembered.set(memo, { identity,',
  ]),
  mutation('anybody takes workers out of service', 'src/runs/workers.controller.ts', WORKERS_API, [
    "  @InstallationOnly(ADMINS)\n  @Records('worker.draining')",
    "  @Records('worker.draining')",
  ]),
  mutation('a drain said again answers the receipt of an older one', DRAIN, WORKERS_API, [
    'order by seq desc\n    limit 1',
    'order by seq\n    limit 1',
  ]),
  mutation('what put a worker where it is, is looked for in every entry', DRAIN, 'test/runs/reads.contract.spec.ts', [
    '      and run_id is null\n      and action = any',
    '      and action = any',
  ]),
  mutation('a drain said again has no receipt', WORKERS, COVERAGE_API, [
    'receipt: await findCause(this.pools.submit, to, change)',
    'receipt: null',
  ]),
  mutation('a change is answered without its receipt', 'src/runs/runs.controller.ts', COVERAGE_API, [
    '    withReceipt(reply, receipt);\n    return runDto(run);',
    '    void receipt;\n    return runDto(run);',
  ]),
  mutation('a worker joins without saying who', WORKER, COVERAGE, [
    "'principal', ${entry.object}::text, 'principalName', l.name,\n                               'kind'",
    "'kind'",
  ]),
  mutation('a requeue leaves no entry', SETTLE, COVERAGE, [
    "\n      union all\n      select run_id, chain, action, payload, 'requeued', null from requeued\n",
    '\n',
  ]),
  mutation('nobody says that a transition is audited', MACHINE, COVERAGE, [
    "'unchanged', {\n    audited: true,\n    event: 'run.cancel_requested',",
    "'unchanged', {\n    event: 'run.cancel_requested',",
  ]),
  mutation('a refused change was made all the same', SUBMIT, 'test/audit/recorded.api.spec.ts', [
    '    cross join lateral audit_append(e.chains, e.actions, e.payloads, e.run_ids) a`,',
    "    cross join lateral (select n as entry, 'c:1:x' as receipt from generate_series(1, cardinality(e.run_ids)) n) a`,",
  ]),
  mutation('anchors may be changed', 'migrations/0004_evidence.sql', 'test/runs/ended.contract.spec.ts', [
    'before update or delete or truncate on audit_anchors',
    'before delete or truncate on audit_anchors',
  ]),
  mutation('an anchor that no longer equals its entry is passed over', 'src/audit/chain.rules.ts', ATTACKED, [
    "strayAnchor === null ? undefined : { brokenAt: strayAnchor, check: 'anchor' },",
    'strayAnchor === null ? undefined : undefined,',
  ]),
  mutation('a receipt of another entry holds', 'src/audit/entries.service.ts', ATTACKED, [
    'found.link !== receipt.link',
    'found.seq !== receipt.seq',
  ]),
  mutation('verifier: a repeated member is taken', STRICT, VERIFY, [
    'if (members.has(name))',
    'if (name === undefined)',
  ]),
  mutation('verifier: bytes that are no UTF-8 are taken', STRICT, VERIFY, [
    'if (!isUtf8(bytes))',
    'if (bytes.length < 0)',
  ]),
  mutation('verifier: half a surrogate pair is taken', STRICT, VERIFY, ['pair.isWellFormed()', "pair !== ''"]),
  mutation('verifier: a number is rounded', STRICT, VERIFY, ['<= MAX_INTEGER', '<= MAX_INTEGER + 1n']),
  mutation('verifier: 2^53 is refused', STRICT, VERIFY, ['<= MAX_INTEGER', '< MAX_INTEGER']),
  mutation('verifier: something may follow the document', STRICT, VERIFY, [
    'if (this.at < this.bytes.length)',
    'if (this.at < 0)',
  ]),
  mutation('verifier: nesting is without bounds', STRICT, VERIFY, ['if (depth > MAX_DEPTH)', 'if (depth < 0)']),
  mutation('verifier: members are sorted in another way', STRICT, VERIFY, ['(a < b ? -1 : 1)', 'a.localeCompare(b)']),
  mutation('verifier: objects are open', VERIFIER('schema'), VERIFY, [
    'const reader = readers.get(name) ?? refuse(at, `"${shown(name)}" is unknown there`);',
    'const reader = readers.get(name) ?? (() => undefined);',
  ]),
  mutation('verifier: base64 is taken in any spelling', VERIFIER('schema'), VERIFY, [
    "if (bytes.toString('base64') !== read)",
    'if (read === undefined)',
  ]),
  mutation('verifier: any day is a day', VERIFIER('time'), VERIFY, ['.startsWith(second)', ".startsWith('2')"]),
  mutation('verifier: no signature is looked at', VERIFIER('signature'), VERIFY, [
    'verify(null, message, key, sig)',
    'sig.length === 64',
  ]),
  mutation('verifier: a key may have any name', VERIFIER('signature'), VERIFY, [
    'if (producer.key_id !== fingerprint)',
    "if (producer.key_id === '')",
  ]),
  mutation('verifier: a foreign algorithm is passed over', VERIFIER('signature'), VERIFY, [
    "alg !== 'ed25519'",
    "alg === ''",
  ]),
  mutation('verifier: a key without a secret is taken', VERIFIER('signature'), VERIFY, [
    'if (isWeak(producer.public_key))',
    'if (producer.public_key.length < 0)',
  ]),
  mutation('verifier: a pin is only shown', VERIFIER('signature'), VERIFY, [
    'pinned !== undefined && pinned !== fingerprint',
    "pinned === ''",
  ]),
  mutation('verifier: links are not recomputed', VERIFIER('chain'), VERIFY, [
    'if (linkOf && link !== linkOf(claim, seq, prev))',
    'if (linkOf && !linkOf(claim, seq, prev))',
  ]),
  mutation('verifier: gaps are passed over', VERIFIER('chain'), VERIFY, ['seq - last.seq !== 1', 'seq - last.seq < 1']),
  mutation('verifier: sequence numbers are added up as doubles', VERIFIER('chain'), VERIFY, [
    'seq - last.seq !== 1',
    'seq !== last.seq + 1',
  ]),
  mutation('verifier: an entry need not follow the one before', VERIFIER('chain'), VERIFY, [
    'prev !== last.link',
    "prev === 'x'",
  ]),
  mutation('verifier: the head may lie before the end', VERIFIER('chain'), VERIFY, [
    'head.seq < last.seq',
    'head.seq < 1',
  ]),
  mutation('verifier: the head may be of another branch', VERIFIER('chain'), VERIFY, [
    'head.link !== last.link',
    "head.link === ''",
  ]),
  mutation('verifier: an anchor may name anything', VERIFIER('anchors'), VERIFY, [
    'if (!isMatched && !isHeadOnly)',
    'if (isMatched && isHeadOnly)',
  ]),
  mutation('verifier: a declared head earns the anchored level', VERIFIER('anchors'), STAMPED, [
    "const binds = isMatched ? (timestamp ? 'proof' : 'reference') : 'head only';",
    "const binds = timestamp ? 'proof' : isMatched ? 'reference' : 'head only';",
  ]),
  mutation('verifier: a timestamp may be older than its entry', VERIFIER('anchors'), STAMPED, [
    'entryAt !== undefined && genTimeMs',
    "entryAt === '' && genTimeMs",
  ]),
  mutation('verifier: beats may miscount', VERIFIER('spans'), VERIFY, [
    'count !== seq - (last',
    'count < 0 + 0 * (last',
  ]),
  mutation('verifier: beats that nobody anchored count', VERIFIER('verify'), VERIFY, [
    'if (isAnchored && spans)',
    'if (spans)',
  ]),
  mutation('verifier: evidence is required of nobody', VERIFIER('evidence'), VERIFY, [
    'if (requireEvidence && absent > 0)',
    'if (requireEvidence && absent < 0)',
  ]),
  mutation('verifier: windows join across a gap', VERIFIER('join'), JOINED, [
    'if (links.length > 0 && chain.from > next)',
    'if (links.length > 0 && chain.from < 0)',
  ]),
  mutation('verifier: windows of two histories join', VERIFIER('join'), JOINED, [
    'else if (known !== link)',
    "else if (known === '')",
  ]),
  mutation('verifier: windows of two keys join', VERIFIER('join'), JOINED, [
    'if (isOtherKey) refuse(',
    "if (isOtherKey && a.file === '') refuse(",
  ]),
  mutation('verifier: windows of two subjects join', VERIFIER('join'), JOINED, [
    'a.facts.subject.id !== b.facts.subject.id',
    'a.facts.subject.id === undefined',
  ]),
  mutation('verifier: a file called like an option replaces the pinned key', VERIFIER('verifier.main'), PROGRAMS, [
    'if (values.length > 1) throw',
    'if (values.length > 9) throw',
  ]),
  mutation('verifier: JSON steers a terminal', VERIFIER('shown'), PROGRAMS, [
    'JSON.stringify(value).replace(UNSEEN, ',
    'JSON.stringify(value).replace(/^$/u, ',
  ]),
  mutation('a file called like an option replaces the pinned key', 'src/cli/commands.ts', PROGRAMS, [
    'if (before !== undefined) throw',
    'if (before === name) throw',
  ]),
  mutation('JSON of the client steers a terminal', 'src/cli/text.ts', PROGRAMS, [
    '/[\\u007f-\\u009f',
    '/[\\u007f-\\u0080',
  ]),
  mutation(
    'a report is written over its own bundle',
    'src/cli/audit-report.ts',
    'test/cli/audit-report.process.spec.ts',
    ['files.some((file) => resolve(file) === resolve(output))', 'files.some((file) => file === output)'],
  ),
  mutation('verifier: a file steers the terminal', VERIFIER('shown'), JOINED, [
    '    .replace(UNSEEN,',
    "    .replace('\\n',",
  ]),
  mutation('a second first key is recorded', KEYS, KEY_API, [
    'from (select 1 where not ${hasKeyEntry(sql, chain)}) first',
    'from (select 1) first',
  ]),
  mutation('two first keys are recorded at once', EVIDENCE, KEY_API, [
    "create unique index audit_entries_first_key on audit_entries (action) where action = 'audit.key_recorded';",
    "create index audit_entries_first_key on audit_entries (action) where action = 'audit.key_recorded';",
  ]),
  mutation('a rotation said again is recorded again', KEYS, KEY_API, [
    'where p.previous is distinct from ${fingerprint} ',
    'where true ',
  ]),
  mutation('the first key stays the current one', KEYS, KEY_API, [
    'order by ${newestFirst(sql)}\n    limit 1`,\n  );\n  return rows[0]?.fingerprint;',
    'order by seq\n    limit 1`,\n  );\n  return rows[0]?.fingerprint;',
  ]),
  mutation('a replaced key goes on signing', KEY_SERVICE, KEY_API, [
    'if (signing === own.fingerprint) return own;',
    'if (signing !== undefined) return own;',
  ]),
  mutation('a replica with any key starts', KEY_SERVICE, KEY_API, [
    '} else throw unknownKey(fingerprint, current?.fingerprint);',
    '}',
  ]),
  mutation('who lost a race for the first key does not start', KEY_SERVICE, KEY_API, [
    "if (errorCode(error) !== '23505') throw error;",
    'throw error;',
  ]),
  mutation('anybody rotates the key', 'src/audit/key.controller.ts', KEY_API, [
    "  @InstallationOnly('the signing key belongs to the installation: only its admins replace it')\n",
    '',
  ]),
  mutation('a lost key is replaced', 'src/boot.ts', 'test/audit/keys.process.spec.ts', [
    'if (seed === undefined && isBundled && !(await keys.isRecorded()))',
    'if (seed === undefined && isBundled)',
  ]),
  mutation('the file of a key is for everybody', 'src/replica/audit-key.ts', 'test/audit/keys.process.spec.ts', [
    "open(draft, 'w', 0o600)",
    "open(draft, 'w', 0o644)",
  ]),
  mutation('a broken chain is signed', BUNDLES, BUNDLE_API, [
    'if (brokenAt !== undefined && check !== undefined) throw',
    'if (brokenAt === 0 && check !== undefined) throw',
  ]),
  mutation('a break that is known is forgotten', BUNDLES, BUNDLE_API, [
    'if (isLong) this.requireNotBroken(chain);',
    '',
  ]),
  mutation('a long chain that was never held counts as held', BUNDLES, BUNDLE_API, [
    'isLong && this.audit.lastVerified(chain) !== undefined',
    'isLong',
  ]),
  mutation('a bundle that does not verify is sent', BUNDLES, BUNDLE_API, [
    'if (ok) return;',
    'if (ok || failed) return;',
  ]),
  mutation('anchors outside the window go along', BUNDLES, BUNDLE_API, [
    'listAnchors(this.pools.read, chain, range, MAX_ANCHORS)',
    'listAnchors(this.pools.read, chain, { from: 1, to: 1_000_000 }, MAX_ANCHORS)',
  ]),
  mutation('a line for bundles without an end', 'src/audit/bundle-turns.ts', BUNDLE_API, [
    'this.waiting > this.maxWaiting',
    'this.waiting < 0',
  ]),
  mutation("another organization's run shows its window", 'src/audit/bundle.sql.ts', BUNDLE_API, [
    'where e.chain_id = ${chain} and e.seq between ${from} and ${to} and ${saysRun',
    'where e.seq between ${from} and ${to} and ${saysRun',
  ]),
  mutation('a file of before is written over', 'src/cli/bundle-file.ts', 'test/cli/audit-bundle.process.spec.ts', [
    'if (found?.isFile() && !mayReplace) throw',
    'if (found?.isFile() && mayReplace === undefined) throw',
  ]),
  mutation('a bundle is kept unread', 'src/cli/audit-bundle.ts', 'test/cli/audit-bundle.process.spec.ts', [
    'if (!ok || !facts?.chain) {',
    'if (!facts?.chain) {',
  ]),

  // The report, and what was done to the schema ----------------------------------------------------------------------
  mutation('a report takes an entry for markup', 'src/cli/report/markup.ts', 'test/cli/report.unit.spec.ts', [
    'ESCAPED[char] ?? char',
    'char',
  ]),
  mutation('a report turns the direction of writing', 'src/cli/report/markup.ts', 'test/cli/report.unit.spec.ts', [
    'replace(STEERING',
    'replace(/^$/',
  ]),
  mutation('a report shows what did not verify', 'src/cli/report/page.ts', 'test/cli/report.unit.spec.ts', [
    '${isVerified ? contents(page) : null}',
    '${contents(page)}',
  ]),
  mutation('a report reads what did not verify', 'src/verifier/command.ts', 'test/cli/audit-report.process.spec.ts', [
    'if (part.verdict.ok) onBundle(bytes);',
    'onBundle(bytes); part.verdict.ok;',
  ]),
  mutation('a migration is told by each replica', 'src/audit/schema.sql.ts', 'test/audit/coverage.contract.spec.ts', [
    "where e.action = 'schema.migrated' and",
    "where e.action = 'schema.migrate' and",
  ]),
  mutation(
    'a replica that was slower in telling migrations does not start',
    'src/access/access.service.ts',
    'test/audit/coverage.contract.spec.ts',
    ["if (errorCode(error) !== '23505') throw error;", 'throw error;'],
  ),

  // What somebody with all rights writes beside the chain ------------------------------------------------------------
  mutation('another action beside an entry is not seen', COLUMNS, CHAINS, [
    `    and pg_catalog.strpos(e.claim, '"action":"' || e.action || '"') > 0\n`,
    '',
  ]),
  mutation('an action goes on into the next member', COLUMNS, CHAINS, [
    `pg_catalog.strpos(e.action, '"') = 0`,
    'e.action is not null',
  ]),
  mutation('a run beside an entry that is about none is not seen', COLUMNS, CHAINS, [
    '(e.run_id is null) =',
    '(e.run_id is null) <=',
  ]),
  mutation('a run taken from an entry is not seen', COLUMNS, CHAINS, ['(e.run_id is null) =', '(e.run_id is null) >=']),
  mutation('a time before our era is taken for one of ours', COLUMNS, CHAINS, [
    "    and e.at >= timestamptz '0001-01-01T00:00:00Z'\n",
    '',
  ]),
  mutation('another time beside an entry is not seen', COLUMNS, CHAINS, [
    `          e.at at time zone interval '0', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"')`,
    `          e.at at time zone interval '0', 'YYYY'))`,
  ]),
  mutation('times are compared in the time zone of the session', COLUMNS, CHAINS, [" at time zone interval '0'", '']),
  mutation('a column that is null holds', CHAIN_SQL, WINDOWS, [
    '(${columnsHold(sql)}) is not true',
    'not (${columnsHold(sql)})',
  ]),
  mutation('columns are never compared', CHAIN_SQL, ATTACKED, [
    "                 when (${columnsHold(sql)}) is not true then 'column'\n",
    '',
  ]),
  mutation("another's entry is shown among those of a run", ENTRIES_SQL, ENTRY_LISTS, [
    '${saysRun(sql, runId)} and ${about}',
    '${about}',
  ]),
  mutation("a run is signed with another's entry", 'src/audit/bundle.sql.ts', BUNDLE_API, [
    'and ${saysRun(sql, run)}',
    'and e.run_id = ${run}',
  ]),
  mutation('an entry is shown with the run that stands beside it', 'src/audit/entry.ts', CHAIN_RULES, [
    'run: isOfRun ? object : null',
    'run: object',
  ]),
  mutation('an export is taken for a rotation of keys', KEYS, KEY_API, [
    `\n             and strpos(claim, '"action":"' || action || '"') > 0`,
    '',
  ]),
  mutation('a token is not opened', ANCHOR_CHECK, ANCHOR_CHECKED, [
    'return readTimeStamp(token, link).genTime === at;',
    'return token.length > 0 && link.length > 0 && at.length > 0;',
  ]),
  mutation('the time beside a token is not compared', ANCHOR_CHECK, ANCHOR_CHECKED, [
    'return readTimeStamp(token, link).genTime === at;',
    'return readTimeStamp(token, link).genTime.length > 0 && at.length > 0;',
  ]),
  mutation('a verification opens no tokens', VERIFYING, BUNDLE_API, ['stand.anchors > 0 ? stand.seq : 0', '0']),
  mutation('the loop opens no tokens', RECHECK, ANCHOR_CHECKED, [
    '    await this.lookAtAnchors();\n',
    '    for (const walk of this.walks) walk.anchorsFrom = walk.stand.seq + 1;\n',
  ]),
  mutation('what was seen to hold is taken to hold for ever', ANCHORS, ANCHOR_CHECKED, [
    "encode(a.link, 'hex') || encode(sha256(a.token), 'hex') || a.at, 'UTF8'",
    "encode(a.link, 'hex') || a.at, 'UTF8'",
  ]),
  mutation('each look opens all tokens again', ANCHOR_CHECK, ANCHOR_CHECKED, ['this.remember(anchor.digest);', '']),
  mutation('digests are kept without end', ANCHOR_CHECK, ANCHOR_CHECKED, [
    'this.known.size > this.mostKnown',
    'this.known.size < 0',
  ]),
  mutation('two timestamps of an entry are passed over', ANCHOR_CHECK, ANCHOR_CHECKED, [
    '[twiceIn(page), await',
    '[await',
  ]),
  mutation('a token of any length is fetched', ANCHORS, ANCHOR_CHECKED, [
    ' and octet_length(a.token) <= ${LONGEST_TOKEN_BYTES}',
    '',
  ]),
  mutation('the oldest timestamps go along', ANCHORS, ANCHORED, [
    '      order by seq desc\n      limit ${limit}\n    ) newest',
    '      order by seq\n      limit ${limit}\n    ) newest',
  ]),
  mutation('a list begins with a number that none is read into', 'src/audit/chain.ts', ENTRY_LISTS, [
    '999_999_999_999_999',
    '9_223_372_036_854_775_807',
  ]),
  mutation('an instant is looked for behind all numbers', 'src/audit/audit.sql.ts', ENTRY_LISTS, [
    ' and seq <= ${LAST_SEQ}',
    '',
  ]),
  mutation('a search goes by numbers', ENTRIES, ENTRY_LISTS, [
    'const bottom = look ?? from;',
    'const bottom = look === undefined && isDirect(filter) ? from : Math.max(from, to - this.bounds.entries + 1);',
  ]),
  mutation('a window that takes too long is given up', WIDTHS, WINDOWS, [
    'errorCode(error) !== TOO_LONG',
    'this.width > 0',
  ]),
  mutation('an entry that takes too long is tried for ever', WIDTHS, WINDOWS, [' || widest <= 1', '']),
  mutation('whatever is in the way makes windows narrower', WIDTHS, WINDOWS, ['errorCode(error) !== TOO_LONG || ', '']),
  mutation('windows stay narrow', WIDTHS, WINDOWS, ['this.width = Math.min(this.width * 2, WINDOW_ENTRIES);', '']),
  mutation('part of a window is taken for the whole', RECHECK, RECHECKS, [
    'if (brokenAt <= until) walk.fault',
    'if (brokenAt <= walk.stand.seq) walk.fault',
  ]),
  mutation('nobody says who found a worker lost', WORKER, COVERAGE, ["'principalName', by_name, ", '']),
  mutation('a head that went back stops its chain', APPEND, CHAINS, ['if v_last.seq > v_seq then', 'if false then']),
  mutation('a time without end stops a chain', APPEND, CHAINS, [
    " and v_last.at < '9999-01-01T00:00:00Z' then",
    ' then',
  ]),
  mutation('a head behind all numbers stops its chain', APPEND, CHAINS, [
    'v_seq := case when v_head.seq <= c_last then v_head.seq else 0 end;',
    'v_seq := v_head.seq;',
  ]),
  mutation('a head that is behind all numbers never comes back', APPEND, CHAINS, [
    'new.seq <= old.seq and old.seq <= 999999999999999',
    'new.seq <= old.seq',
  ]),
  mutation('a head may be moved behind all numbers', APPEND, CHAINS, [' or new.seq > 999999999999999', '']),
  mutation('an entry behind all numbers stops its chain', APPEND, CHAINS, ['between v_seq and c_last', '>= v_seq']),
  mutation('entries are appended behind all numbers', APPEND, CHAINS, [
    '    if v_seq > c_last then',
    '    if false then',
  ]),
  mutation('a chain without numbers stops the others', APPEND, 'test/audit/recorded.api.spec.ts', [
    "no numbers left', v_chain.chain_id using errcode = 'CA001'",
    "no numbers left', v_chain.chain_id using errcode = 'system_error'",
  ]),
  mutation(
    'a chain that cannot be appended to is a fault of ours',
    'src/platform/db/db.ts',
    'test/audit/recorded.api.spec.ts',
    ["errorCode(error) === 'CA001'", "errorCode(error) === ''"],
  ),
  mutation('a first key is recorded in a chain that does not hold', KEY_SERVICE, KEY_API, [
    '    if (brokenAt !== undefined && check !== undefined) return { brokenAt, check };\n',
    '    if (brokenAt === 0 && check !== undefined) return { brokenAt, check };\n',
  ]),
  mutation('a key whose action was changed is none', KEYS, KEY_API, [
    `        where chain_id = \${chain}\n          and (position`,
    `        where chain_id = \${chain} and false\n          and (position`,
  ]),
  mutation("bundles are signed while the installation's chain is broken", KEY_SERVICE, KEY_API, [
    'this.audit.brokenAsKnown(chain) ?? ',
    '',
  ]),
  mutation('a key that came to a broken chain waits for a start', KEY_SERVICE, KEY_API, [
    '(current ? undefined : await this.recordIfFirst(chain, own))',
    'undefined',
  ]),
  mutation('a rotation that raced the first key does not count', KEYS, KEY_API, [
    "(action = 'audit.key_rotated') desc, seq desc",
    'seq desc',
  ]),
  mutation(
    'a replica does not start while the chain of keys is broken',
    KEY_SERVICE,
    'test/audit/keys.process.spec.ts',
    ['if (broken) this.noteBroken(chain, broken, own);\n    else await', 'await'],
  ),
  mutation('a recomputation keeps all who want a bundle', BUNDLES, BUNDLE_API, [
    '    await this.requireWhole(chain, head, window, signal);\n    return this.turns.take(async () => {\n',
    '    return this.turns.take(async () => {\n      await this.requireWhole(chain, head, window, signal);\n',
  ]),
  mutation('a chain is recomputed for who has gone', BUNDLES, BUNDLE_API, [', { signal });', ');']),
  mutation('a bundle is made for who has gone', BUNDLES, BUNDLE_API, ['      signal.throwIfAborted();\n', '']),
  mutation('a break found while a bundle waits is overlooked', BUNDLES, BUNDLE_API, [
    '      this.requireNotBroken(chain);\n      const key',
    '      const key',
  ]),
  mutation('HEAD exports', 'src/audit/bundle.controller.ts', BUNDLE_API, [
    "request.method === 'HEAD'",
    "request.method === ''",
  ]),
  mutation('a line for recomputations without an end', CHAIN_LINE, CHAIN_RULES, [
    'this.waiting.length >= MAX_WAITING',
    'this.waiting.length < 0',
  ]),
  mutation('who leaves the line keeps his place', CHAIN_LINE, CHAIN_RULES, [
    '    else this.waiting.splice(this.waiting.indexOf(place), 1);\n',
    '',
  ]),
  mutation('a chain that fails keeps others from being dated', ANCHORS, ANCHORED, ['t.until nulls first, ', '']),
  mutation('a token with several signers is stored', 'src/audit/anchor.rules.ts', ANCHORED, [
    'if (!hasOneSigner)',
    'if (false)',
  ]),
  mutation('a time when its certificate is not valid is stored', 'src/audit/anchor.rules.ts', ANCHORED, [
    'return isValid ?',
    'return isValid || true ?',
  ]),

  // What is gone ----------------------------------------------------------------------------------------------------
  mutation(
    'a chain that was removed is not missed',
    'src/audit/recheck.loop.ts',
    'test/audit/recheck.contract.spec.ts',
    ['for (const chain of this.unmet) this.knowledge.noteBroken(chain, GONE);', 'this.unmet.clear();'],
  ),
  mutation(
    'an organization without a chain is not seen',
    'src/audit/recheck.loop.ts',
    'test/audit/recheck.contract.spec.ts',
    [
      "for (const id of removed) this.knowledge.noteBroken(encodeId('org', id), GONE);",
      "encodeId('org', removed[0] ?? '00000000-0000-7000-8000-000000000000');",
    ],
  ),
  mutation(
    'a timestamp that was removed is not missed',
    'src/audit/chain.rules.ts',
    'test/audit/chain-rules.unit.spec.ts',
    ['seen && anchors < seen.anchors ?', 'seen && anchors < 0 ?'],
  ),
  mutation('a process forgets timestamps', 'src/audit/chain-knowledge.ts', 'test/audit/chain-rules.unit.spec.ts', [
    'anchors: Math.max(anchors, seen?.anchors ?? 0)',
    'anchors',
  ]),
  mutation('a chain that is broken is dated', 'src/audit/anchors.sql.ts', 'test/audit/anchors.contract.spec.ts', [
    '        and h.chain_id <> all (${broken as string[]}::text[])\n',
    '',
  ]),
  mutation(
    'a replica that has no key is told to make another',
    'src/audit/key.service.ts',
    'test/audit/keys.process.spec.ts',
    ['return current === undefined', 'return current !== undefined'],
  ),
  mutation('a text of any length is hashed', 'src/audit/chain.sql.ts', 'test/audit/chain.contract.spec.ts', [
    'octet_length(e.claim) > ${LONGEST_CLAIM_BYTES}',
    'octet_length(e.claim) > 9000000 + ${LONGEST_CLAIM_BYTES}',
  ]),
  mutation('a burst claims from the front', 'src/runs/claimer.ts', BACKLOG, ['isLookBack ? [] : this.marks', '[]']),
  mutation('a burst never looks back', 'src/runs/claimer.ts', BACKLOG, [
    ' || now - this.lookedBackAtMs >= LOOK_BACK_EVERY_MS',
    '',
  ]),
  mutation('a claim behind its marks calls itself idle', 'src/runs/claimer.ts', BACKLOG, [' || !isLookBack', '']),
  mutation('marks outlive their burst', 'src/runs/watermark.rules.ts', BACKLOG, [
    '  if (runs.length < limit) return [];\n',
    '',
  ]),
  mutation('a burst stays where it began', 'src/runs/watermark.rules.ts', BACKLOG, [
    'for (const { queue, priority, position } of runs)',
    'for (const { queue, priority, position } of runs.filter((run) => !byQueue.has(run.queue)))',
  ]),
  mutation('the claim walks over what lies before its mark', CLAIM, BACKLOG, [
    '          and (${claimOrder(sql)}) > (s.rank, s.position)\n',
    '',
  ]),
  mutation('a paused queue is claimed from', CLAIM, BACKLOG, ['        and ${isOpen(sql)}\n', '']),
  mutation('a paused queue is something to claim', PULSE, BACKLOG, [
    'where not exists (select from paused_queues p where p.name = s.queue)',
    'where true',
  ]),
  mutation('a pulse looks for runs while a claim is due', WORK, WORKS, [
    'holder.pulse(!this.wantsClaim)',
    'holder.pulse(true)',
  ]),
  mutation('a claim that may get more is not made again', WORK, WORKS, [
    '      if (mayBeMore) this.wantsClaim = true;\n',
    '',
  ]),
  mutation('a life that holds nothing compares all the same', WORK, WORKS, ['this.mayHold && now', 'now']),
  mutation('what only the database holds is not compared', WORK, WORKS, ['this.held > 0 || ', '']),
  mutation('a quiet pass is followed by the next as soon as a busy one', RECHECK, RECHECKS, [
    'this.hasMoved ? REST_MS : QUIET_REST_MS',
    'REST_MS',
  ]),

  // The chart and the image ------------------------------------------------------------------------------------------
  mutation('the chart: the kill grace is not waited for', HELPERS, CHARTED, [
    '.top.Values.preStopSeconds $drain $kill 10',
    '.top.Values.preStopSeconds $drain 10',
  ]),
  mutation('the chart: a duration is rounded down', HELPERS, CHARTED, ['div (add $count 999) 1000', 'div $count 1000']),
  mutation('the chart: any grace period is taken', HELPERS, CHARTED, [
    'lt ($given | int64) $needed',
    'lt ($given | int64) 0',
  ]),
  mutation('the chart: a setting comes in as an extra variable', HELPERS, CHARTED, [
    '"^(CAPSTAN_|DATABASE_(DIRECT_)?URL)"',
    '"^(DATABASE_DIRECT_URL)"',
  ]),
  mutation('the chart: a password comes in as text', HELPERS, CHARTED, ['(?i)(passw|', '(?i)(']),
  mutation('the chart: variables of services reach the pod', POD, CHARTED, [
    'enableServiceLinks: false',
    'enableServiceLinks: true',
  ]),
  mutation('the chart: a field that Kubernetes does not know', POD, CHARTED, ['imagePullPolicy:', 'imagePolicy:']),
  mutation('the chart: liveness asks for the database', POD, CHARTED, [
    'livenessProbe:\n  httpGet: {path: /healthz',
    'livenessProbe:\n  httpGet: {path: /readyz',
  ]),
  mutation('the chart: liveness is sooner than the stall limit', POD, CHARTED, ['| int64) 69) 10', '| int64) 9) 10']),
  mutation('the chart: workers get the first token', 'helm/capstan/templates/workers.yaml', CHARTED, [
    '"DATABASE_DIRECT_URL" }}',
    '"DATABASE_DIRECT_URL" "CAPSTAN_BOOTSTRAP_TOKEN" }}',
  ]),
  mutation('the chart: a secret stands in the environment', POD, CHARTED, [
    '- name: {{ $variable }}_FILE',
    '- name: {{ $variable }}',
  ]),
  mutation('the chart: workers get the slots of replicas', 'helm/capstan/templates/workers.yaml', CHARTED, [
    '(omit $.Values.settings "CAPSTAN_SLOTS")',
    '(deepCopy $.Values.settings)',
  ]),
  mutation('the chart: a release by any name', HELPERS, CHARTED, ['"^[a-z][a-z0-9-]*$"', '"."']),
  mutation('the chart: names are cut where releases still differ', HELPERS, CHARTED, [
    'printf "%s-%s" .Release.Name .Chart.Name | trunc 56',
    'printf "%s-%s" .Release.Name .Chart.Name | trunc 50',
  ]),
  mutation('the chart: names are longer than Kubernetes takes', HELPERS, CHARTED, [
    'printf "%s-%s" .Release.Name .Chart.Name | trunc 56',
    'printf "%s-%s" .Release.Name .Chart.Name | trunc 63',
  ]),
  mutation(
    'the chart: the budget of workers counts replicas',
    'helm/capstan/templates/poddisruptionbudget.yaml',
    CHARTED,
    ['"component" "worker"', '"component" "replica"'],
  ),
  mutation(
    'the chart: any number of workers is evicted at once',
    'helm/capstan/templates/poddisruptionbudget.yaml',
    CHARTED,
    ['.Values.workers.replicas | int64) 1', '.Values.workers.replicas | int64) 999'],
  ),
  mutation('the chart: a monitor looks for a port that no pod has', 'helm/capstan/templates/podmonitor.yaml', CHARTED, [
    '- port: metrics',
    '- port: metric',
  ]),
  mutation('the chart: the name of a Secret is a number', POD, CHARTED, [
    '$secret.existingSecret | quote',
    '$secret.existingSecret',
  ]),
  mutation('the chart: random text', 'helm/capstan/templates/NOTES.txt', CHARTED, [
    'Capstan {{',
    '{{ randAlphaNum 8 }} {{',
  ]),
  mutation('the chart: files of secrets where nobody looks for them', POD, 'test/helm/pod.system.spec.ts', [
    '                  path: {{ $variable }}',
    '                  path: {{ $variable | lower }}',
  ]),
  mutation('the image: nobody collects what tools leave behind', 'Dockerfile', 'test/helm/image.system.spec.ts', [
    '["tini", "--", "node"',
    '["node"',
  ]),
  mutation('idle loops ask as often as they may', 'src/replica/loop-runner.ts', 'test/replica/idle.contract.spec.ts', [
    'const JITTER = 0.3;',
    'const JITTER = 0.05;',
  ]),

  // Queues: a pause is a person's word, and each change of it is one.
  mutation('a late pause undoes a resume', QUEUE_SQL, 'test/runs/queues.contract.spec.ts', [
    '      where ${isUnchanged(sql, change)}\n',
    '',
  ]),
  mutation('a late resume undoes a pause', QUEUE_SQL, 'test/runs/queues.contract.spec.ts', [
    '        and ${etag(sql)} = ${change.seen.etag}\n',
    '',
  ]),
  mutation('of two reasons for a pause one is lost', QUEUE_SQL, 'test/runs/queues.contract.spec.ts', [
    '        and ${etag(sql)} = ${seen.etag}\n',
    '',
  ]),
  mutation('a pause does not take another reason', 'src/runs/queues.service.ts', 'test/runs/queues.api.spec.ts', [
    'if (standing.reason === (paused ? reason : null)) {',
    'if ((standing.reason !== null) === paused) {',
  ]),
  mutation('a queue is changed whatever If-Match says', 'src/runs/queues.service.ts', 'test/runs/queues.api.spec.ts', [
    '!isExpected(standing.etag)',
    '!isExpected(standing.etag) && reason === undefined',
  ]),
  mutation('nonsense in If-Match is no condition', 'src/platform/http/if-match.ts', 'test/runs/queues.api.spec.ts', [
    "if (!LIST.test(given)) throw new Problem('malformed_request', 'If-Match must be *, or ETags in double quotes');",
    'if (!LIST.test(given)) return () => true;',
  ]),
  mutation('a weak tag counts as a strong one', 'src/platform/http/if-match.ts', 'test/runs/queues.api.spec.ts', [
    'tags.includes(etag)',
    "tags.some((tag) => tag.replace('W/', '') === etag)",
  ]),
  mutation('who paused, when and why does not make an ETag', QUEUE_SQL, 'test/runs/queues.api.spec.ts', [
    "extract(epoch from at) || ' ' || by || ' ' || reason",
    "'x' || by",
  ]),
  mutation('a resume lets all queues go on', QUEUE_SQL, 'test/runs/queues.contract.spec.ts', [
    'where name = ${change.name}\n        and',
    'where',
  ]),
  mutation('anybody pauses a queue', 'src/runs/queues.controller.ts', 'test/runs/queues.api.spec.ts', [
    "  @InstallationOnly('queues serve the whole installation: only its admins pause and resume them')\n",
    '',
  ]),
  mutation('an organization learns the numbers of all', 'src/runs/queues.service.ts', 'test/runs/queues.api.spec.ts', [
    'this.look(names.slice(0, limit), isInstallationAdmin)',
    'this.look(names.slice(0, limit), true)',
  ]),
  mutation('an organization learns the queues of all', 'src/runs/queues.service.ts', 'test/runs/queues.api.spec.ts', [
    'all: isInstallationAdmin',
    'all: true',
  ]),
  mutation('a resume wakes nobody', 'src/runs/queues.service.ts', 'test/runs/queues.process.spec.ts', [
    'if (!paused) this.platform.bells.claimable.ring();',
    '',
  ]),
  mutation('a pause needs no reason', 'src/runs/queue.dto.ts', 'test/runs/queues.api.spec.ts', [
    'owner.paused === true',
    'owner.paused === undefined',
  ]),
  mutation('a pause is not recorded', QUEUE_SQL, 'test/runs/queues.api.spec.ts', [
    "-- paused already\n      returning name\n    )\n    ${recorded(sql, 'queue.paused', change)}",
    "-- paused already\n      returning name\n    )\n    ${recorded(sql, 'queue.resumed', change)}",
  ]),
  mutation('another reason for a pause is not recorded', QUEUE_SQL, 'test/runs/queues.api.spec.ts', [
    "= ${seen.etag}\n      returning name\n    )\n    ${recorded(sql, 'queue.paused', change)}",
    "= ${seen.etag}\n      returning name\n    )\n    ${recorded(sql, 'queue.resumed', change)}",
  ]),

  // What is told of a process -----------------------------------------------------------------------------------------
  mutation(
    'each name that a caller chose has a label',
    'src/platform/metrics.ts',
    'test/platform/metrics.unit.spec.ts',
    ['    if (this.met.size >= this.limit) return OTHER;\n', ''],
  ),
  mutation('a queue that is served is crowded out of the labels', RUN_METRICS, RUNS_COUNTED, [
    "['default', ...served.filter((name) => name !== '*')]",
    "['default']",
  ]),
  mutation('a kind of another version is a label', RUN_METRICS, RUNS_COUNTED, [
    'this.submitted.inc({ kind: labelOf(KINDS, run.kind),',
    'this.submitted.inc({ kind: run.kind,',
  ]),
  mutation('an end whose answer was lost is not counted', 'src/runs/holder.service.ts', RUNS_COUNTED, [
    'of [...now, ...before]) this.metrics',
    'of now) this.metrics',
  ]),
  mutation('a start is counted from the submit of a run that was to begin later', CLAIM, RUNS_COUNTED, [
    'greatest(r.created_at, r.not_before)',
    'r.created_at',
  ]),
  mutation('a race that was lost shows nowhere', 'src/execution/starting.ts', RUNS_COUNTED, [
    '  if (released.length === 0) metrics.work.countLostRace(wanted);\n',
    '',
  ]),
  mutation('a path is a label', HTTP_METRICS, HTTP_COUNTED, ['?? NO_ROUTE', '?? request.url']),
  mutation('any method is a label', HTTP_METRICS, HTTP_COUNTED, ['labelOf(METHODS, request.method)', 'request.method']),
  mutation('a stream is a slow answer', HTTP_METRICS, HTTP_COUNTED, ['      if (isHeld(reply)) return;\n', '']),
  mutation('an answer that nobody awaited counts as given', HTTP_METRICS, HTTP_COUNTED, [
    'raw.headersSent ? raw.statusCode : GONE',
    'raw.statusCode',
  ]),
  mutation(
    'a text of an error is a label',
    'src/platform/db/db.metrics.ts',
    'test/platform/db/metrics.contract.spec.ts',
    ['kind: kindOf(error) }', 'kind: String(error) + kindOf(error) }'],
  ),
  mutation('a long queue is counted to its end', DEPTH, DEPTHS, ['          limit (select each from bound)\n', '']),
  mutation('of very many queues all are counted', DEPTH, DEPTHS, ['order by n limit ${TOLD_AT_MOST}', 'order by n']),
  mutation('an estimate is told as less than was counted', DEPTH, DEPTHS, [
    'else greatest(c.n, round(',
    'else (round(',
  ]),
  mutation('a run that is not due yet counts as late', DEPTH, DEPTHS, [
    'min(greatest(r.created_at, r.not_before))',
    'min(r.created_at)',
  ]),
  mutation('runs that starve show nowhere', DEPTH, DEPTHS, ['select min(greatest(', 'select max(greatest(']),
  mutation('a scrape waits for the database', QUEUE_METRICS, QUEUES_ASKED, [
    'await Promise.race([this.fresh(), late])',
    'await (this.fresh() ?? late)',
  ]),
  mutation('each scrape asks the database', QUEUE_METRICS, QUEUES_ASKED, [
    'askedAtMs < this.shared.untilMs',
    'askedAtMs < 0',
  ]),
  mutation('a database that is slow is asked as often as any', QUEUE_METRICS, QUEUES_ASKED, ['* IDLE_SHARE', '* 0']),
  mutation('a loop that only fails looks well', 'src/replica/loop.metrics.ts', LOOPS_COUNTED, [
    "if (result !== 'failed') this",
    'this',
  ]),
  mutation('a loop that is begun again looks well', 'src/replica/loop.metrics.ts', LOOPS_COUNTED, [
    '    if (this.begun.has(loop)) return;\n',
    '',
  ]),
  mutation(
    'a renewal that failed is not counted',
    'src/execution/keeper/renewer.ts',
    'test/replica/metrics.process.spec.ts',
    ['      memory.noteFailure();\n', ''],
  ),
  mutation('what is no trace is handed to a tool', PLAN, TRACES, [
    'traceparentOf(traceparent ?? undefined)',
    'traceparent',
  ]),
  mutation('a run can not be in a trace of its own', PLAN, TRACES, [
    "        ...traceOf(run, 'TRACEPARENT'),\n        ...textMap(spec.env),\n",
    "        ...textMap(spec.env),\n        ...traceOf(run, 'TRACEPARENT'),\n",
  ]),
  mutation('a request has two traces', PLAN, TRACES, ['hasTrace ? {} :', 'false && hasTrace ? {} :']),
  // the laws
  ...[
    ['one_standing', 'f.is_ended <> f.is_live'],
    ['live_copies', 'and f.l_priority = f.priority'],
    ['live_holder', 'then f.is_holder_known'],
    ['listed', 'not f.is_ended or f.is_listed'],
    ['event_numbers', 'and f.e_last = f.e_count'],
    ['event_ends', 'and f.e_end_seq = f.e_last'],
    ['end_event', 'f.e_true_ends = f.e_ends'],
    ['audit_submit', 'and f.a_true_submits = 1'],
    ['audit_end', 'and f.a_true_ends = f.a_ends'],
    ['audit_changes', 'f.a_requeues = f.e_requeues'],
    ['audit_chain', 'f.a_first_chain = f.chain_id and f.a_last_chain = f.chain_id'],
    ['starts_once', 'not f.has_stray_output'],
    ['family', 'then f.root_id = f.id'],
  ].map(([law, predicate]) =>
    mutation(`laws: ${law} is not judged`, RUN_LAWS, LAWS_BROKEN, [
      predicate,
      predicate.startsWith('and ') ? '' : predicate.startsWith('then ') ? 'then true' : 'true',
    ]),
  ),
  mutation('laws: what is null holds', RUNS_LOOK, LAWS_BROKEN, ['where holds is not true', 'where not holds']),
  mutation('laws: an interrupted run need not have started', RUN_LAWS, LAWS_BROKEN, [
    "'effects_unknown', 'recovery_limit')\n                                    and f.started_at is not null",
    "'effects_unknown', 'recovery_limit')",
  ]),
  mutation('laws: an exit code needs no tool', RUN_LAWS, LAWS_BROKEN, [
    "           or f.started_at is not null\n              and f.end_code in ('ok'",
    "           or true or f.end_code in ('ok'",
  ]),
  mutation('laws: output of an earlier start is not seen', RUN_LAWS, LAWS_BROKEN, [
    'and t.fence < case',
    'and t.fence < 0 * case',
  ]),
  mutation('laws: output of a later start is not seen', RUN_LAWS, LAWS_BROKEN, [
    '2147483646 end)`',
    '2147483646 end and false)`',
  ]),
  mutation('laws: runs that were removed are not missed', RUNS_LOOK, LAWS_BROKEN, [
    "where ${isAmong(sql, 'a.run_id', window)}",
    "where ${isAmong(sql, 'a.run_id', window)} and false",
  ]),
  mutation('laws: a window is looked at for ever', RUNS_LOOK, LAWS_BROKEN, [
    'isFull && row.last !== null ? row.last',
    'isFull && false ? row.last',
  ]),
  mutation('laws: a key may name a run of anybody', 'src/doctor/keys.sql.ts', LAWS_BROKEN, [
    'r.organization_id <> k.organization_id as',
    'r.organization_id <> r.organization_id as',
  ]),
  mutation('laws: lateness is judged though nobody could act', STANDING, LAWS_STANDING, [
    'db_clock() - (clock_timestamp() - max(s.state_change)) as until',
    'coalesce(db_clock() - (clock_timestamp() - max(s.state_change)), db_clock()) as until',
  ]),
  mutation('laws: lateness is judged by now, though nobody has been there since', STANDING, LAWS_STANDING, [
    'db_clock() - (clock_timestamp() - max(s.state_change)) as until',
    'case when max(s.state_change) is not null then db_clock() end as until',
  ]),
  mutation('laws: a keeper that has just come could have acted', STANDING, LAWS_STANDING, [
    'and s.backend_start < s.state_change - ${late}::interval',
    '',
  ]),
  mutation('laws: a lease is late before a janitor has rested', STANDING, LAWS_STANDING, [' - rest.after_a_jump', '']),
  mutation('laws: a holder that is away heeds no cancel', STANDING, LAWS_STANDING, [
    'h.is_connected and h.cancel_requested_at',
    'h.cancel_requested_at',
  ]),
  mutation('laws: an ended life may hold runs', STANDING, LAWS_STANDING, [
    'h.ended_at < able.until - ${late}::interval',
    'h.ended_at < able.until - 100000 * ${late}::interval',
  ]),
  mutation('laws: a life that has just ended may hold nothing', STANDING, LAWS_STANDING, [
    'h.ended_at < able.until - ${late}::interval',
    'h.ended_at < able.until',
  ]),
  mutation('laws: the loop believes one look', LAWS_LOOP, LAWS_LOOPED, [
    '      isConfirmed: false,',
    '      isConfirmed: true,',
  ]),
  mutation('laws: the loop looks again at once', LAWS_LOOP, LAWS_LOOPED, [
    '- lookedAtMs >= CONFIRM_AFTER_MS',
    '- lookedAtMs >= 0',
  ]),
  mutation('laws: the loop never forgets', LAWS_LOOP, LAWS_LOOPED, ['.filter(([name]) => there.has(name))', '']),
  mutation('laws: the loop stays with the newest runs', LAWS_LOOP, LAWS_LOOPED, ['        this.before = next;\n', '']),
  mutation('laws: the loop stays with the first keys', LAWS_LOOP, LAWS_LOOPED, ['        this.afterKey = next;\n', '']),
  mutation('laws: a law that holds has no line', 'src/doctor/invariants.metrics.ts', LAWS_LOOPED, [
    'counts.get(law) ?? 0)',
    'counts.get(law) ?? Number.NaN)',
  ]),
  mutation('laws: a run that takes too long stops the loop', LAWS_LOOP, LAWS_LOOPED, [
    'this.before = await nextRun(this.pool, this.before);',
    'await nextRun(this.pool, this.before);',
  ]),
  mutation('laws: a key that takes too long stops the loop', LAWS_LOOP, LAWS_LOOPED, [
    'this.afterKey = await nextKey(this.pool, this.afterKey);',
    'await nextKey(this.pool, this.afterKey);',
  ]),
  mutation('laws: a window that takes too long is left out', LAWS_LOOP, LAWS_LOOPED, [
    'else if (this.width === 1) await',
    'else if (this.width >= 1) await',
  ]),
  mutation('laws: what takes too long is told in each round', LAWS_LOOP, LAWS_LOOPED, ['this.untold.has(name) ||', '']),
  mutation('laws: what can not be looked at again keeps the turn', LAWS_LOOP, LAWS_LOOPED, [
    'if (isTimeout(error) || !isTransient(error)) this.giveWay(watched);',
    '',
  ]),
  mutation('laws: of several runs that take too long again one hides the others', LAWS_LOOP, LAWS_LOOPED, [
    'if (runs.length > 1) {',
    'if (runs.length > 100_000) {',
  ]),
  mutation('laws: a look that fails keeps the turn', LAWS_LOOP, LAWS_LOOPED, [
    'if (!isTimeout(error)) throw error;',
    'if (!isTimeout(error)) { this.turn -= 1; throw error; }',
  ]),
  ...[
    ['an exit code is compared by how it begins', "sql`r.exit_code || ','`", 'sql`r.exit_code::text`'],
    [
      'the worker of an end is not compared',
      'sql`to_json(worker.object)::text`',
      'sql`to_json(substring(a.claim from \'"worker":"([^"]*)\'))::text`',
    ],
    ['the name of a run is not compared', "    and ${saysMember(sql, 'name', sql`to_json(r.name)::text`)}\n", ''],
    [
      'the detail of an end is not compared',
      "                   and e.data ->> 'detail' is not distinct from r.end_detail\n",
      '',
    ],
  ].map(([name, ...edit]) => mutation(`laws: ${name}`, RUN_LAWS, LAWS_BROKEN, edit)),
  mutation('laws: who submitted is not compared', RUN_LAWS, LAWS_BROKEN, [
    "    and ${saysMember(sql, 'principal', sql`to_json(r.principal ->> 'id')::text`)}\n",
    '',
  ]),
  mutation('laws: holders with long leases are away', 'src/doctor/connected.sql.ts', LAWS_STANDING, [
    'greatest(${CONNECTED_MS}::integer, w.ttl_ms / 2)',
    '${CONNECTED_MS}::integer',
  ]),
  mutation('laws: the doctor stops at a run that takes too long', 'src/doctor/laws-check.ts', DOCTOR_BUDGET, [
    '      place = behind;\n',
    '      break;\n',
  ]),
  mutation('laws: the doctor does not say what it left behind', 'src/doctor/laws-check.ts', DOCTOR_BUDGET, [
    '      result.tooLong.push(nameOf(behind));\n',
    '',
  ]),
  mutation('laws: the doctor does not say that nobody was able', 'src/doctor/laws-check.ts', DOCTOR_BUDGET, [
    "standing.isAnybodyAble ? 'judged' : 'nobody'",
    "standing.isAnybodyAble ? 'judged' : 'judged'",
  ]),
  // the doctor
  mutation('doctor: may write', 'src/doctor/diagnose.ts', DOCTOR, ['    isReadOnly,\n', '']),
  mutation('doctor: makes an installation where there is none', 'src/doctor/diagnose.ts', DOCTOR, [
    "if (beside.state === 'none')",
    "if (beside.state === ('never' as string))",
  ]),
  mutation('doctor: looks beside no replica', 'src/doctor/diagnose.ts', DOCTOR, [
    "if (beside.state === 'running') return",
    "if (beside.state === 'running' && dataDir === '') return",
  ]),
  mutation('doctor: holds laws against another schema', 'src/doctor/doctor.service.ts', DOCTOR, [
    'schema.faults.length === 0',
    'schema.faults.length <= 1',
  ]),
  mutation('doctor: a life does not say what it signs with', 'src/boot.ts', DOCTOR, [
    'signs: app.get(KeyService).ownFingerprint',
    'signs: null',
  ]),
  mutation('doctor: verifies the newest window of a chain alone', 'src/doctor/chains.ts', DOCTOR_BUDGET, [
    '  walk.from = first;',
    '  walk.from = 1;',
  ]),
  mutation('doctor: takes no look at heads', 'src/doctor/chains.ts', DOCTOR_BUDGET, [
    'fault: breakOf(stand, undefined)',
    'fault: undefined',
  ]),
  mutation('doctor: the chain of the installation is not missed', 'src/doctor/chains.ts', DOCTOR_BUDGET, [
    'missing === undefined ? []',
    'missing !== null ? []',
  ]),
  mutation('doctor: leaves out timestamps in silence', 'src/doctor/chains.ts', DOCTOR_BUDGET, [
    'opened < timestamps &&',
    'opened < 0 &&',
  ]),
  mutation('doctor: a process that was killed lives beside the next', 'src/doctor/replicas.rules.ts', DOCTOR_RULES, [
    '!isReplaced(life, connected)',
    'life === life',
  ]),
  mutation(
    'doctor: a process that was killed lives beside the next, in reality',
    'src/doctor/replicas.rules.ts',
    'test/doctor/replicas-busy.process.spec.ts',
    ['!isReplaced(life, connected)', 'life === life'],
  ),
  mutation(
    'doctor: what lives beside another of its name is taken for dead',
    'src/doctor/replicas.rules.ts',
    DOCTOR_RULES,
    [' && life.seenAtMs <= startedAtMs + life.ttlMs / 3', ''],
  ),
  mutation(
    'doctor: dead rows between two rounds of autovacuum are a fault',
    'src/doctor/server.rules.ts',
    DOCTOR_RULES,
    [' && (isHeldBack || isLeftAlone || isMissed(each))', ''],
  ),
  mutation('doctor: dead rows that are being removed are a fault', 'src/doctor/server.rules.ts', DOCTOR_RULES, [
    '!isBeingVacuumed && ',
    '',
  ]),
  mutation('doctor: a long vacuum holds vacuum back', 'src/doctor/server.sql.ts', DOCTOR_SERVER, [
    '        and not exists (select from pg_stat_progress_vacuum v where v.pid = coalesce(s.leader_pid, s.pid))\n',
    '',
  ]),
  mutation('doctor: an upgrade is a fault', 'src/doctor/replicas.rules.ts', DOCTOR_RULES, [
    ' || minutes <= UPGRADE_MINUTES',
    '',
  ]),
  mutation('doctor: workers need a key', 'src/doctor/replicas.rules.ts', DOCTOR_RULES, [
    "kind === 'replica' && clockAheadMs",
    'clockAheadMs',
  ]),
  mutation('doctor: an old snapshot is not seen', 'src/doctor/server.sql.ts', DOCTOR_SERVER, [
    'backend_xmin is not null or backend_xid is not null)\n        and not exists',
    'backend_xid is not null)\n        and not exists',
  ]),
  mutation('doctor: a session that holds nothing is a fault', 'src/doctor/server.sql.ts', DOCTOR_SERVER, [
    '        and (backend_xmin is not null or backend_xid is not null)\n        and not exists',
    '        and not exists',
  ]),
  mutation("a renewal does not note the machine's clock", RENEW, 'test/execution/keeper/renew.contract.spec.ts', [
    'clock_ahead_ms = round($3::float8 - extract(epoch from db_clock()) * 1000)::bigint',
    'clock_ahead_ms = 0 * $3::float8',
  ]),
  mutation(
    'a run that was not due can not be flagged behind its claim',
    CANCEL,
    'test/runs/cancel-races.contract.spec.ts',
    ['state = k.live_state, not_before = k.not_before,', 'state = k.live_state,'],
  ),

  // The simulated cluster ---------------------------------------------------------------------------------------------
  ...[
    [
      'simulated: a claim looks at no lease',
      CLAIM,
      [
        '-- not draining, not reaped\n        and ${holdsLease(sql)}                               -- at this very moment\n',
        '\n',
      ],
      [
        '      where ${holdsLease(sql)}                               -- read again, after the row was waited for\n        and',
        '      where',
      ],
    ],
    ['simulated: a worker that drains starts', CLAIM, ["\n                   and me.state = 'live'))", '))']],
    [
      'simulated: a start looks at no lease',
      CLAIM,
      [
        "        and state in ('live', 'draining')                    -- neither stopped nor reaped\n" +
          '        and lease_until > db_clock()\n',
        "        and state in ('live', 'draining')\n",
      ],
      [
        '      where me.lease_until > db_clock()                      -- read again, after the row was waited for\n',
        '',
      ],
    ],
    [
      'simulated: what is to be canceled is started',
      CLAIM,
      ["(l.state = 'claimed' and l.cancel_requested_at is null\n", "(l.state = 'claimed'\n"],
    ],
    [
      'simulated: a run is canceled that nobody canceled',
      FINISH,
      ["        and (i.state <> 'canceled' or l.cancel_requested_at is not null)\n", ''],
    ],
    ['simulated: what runs is put back', SETTLE, ["        and k.live_state = 'claimed' ", '        and true ']],
    [
      'simulated: runs of the living are settled',
      SETTLE,
      ["        and w.state in ('lost', 'stopped')                   -- and that life is over\n", ''],
      ["      and w.state in ('lost', 'stopped')\n    order", '    order'],
    ],
    [
      'simulated: each request to cancel is written',
      CANCEL,
      ['        and k.cancel_requested_at is null                    -- the first request only\n', ''],
    ],
    [
      'simulated: a cancel ends what runs',
      CANCEL,
      ["      where k.live_state in ('held', 'pending', 'parked')\n", "      where k.live_state <> 'claimed'\n"],
      [
        "and k.live_state in ('claimed', 'running')\n        and k.cancel",
        "and k.live_state in ('claimed')\n        and k.cancel",
      ],
    ],
    [
      'simulated: a key makes two runs',
      SUBMIT,
      ['      where u.key is null or u.id in (select run_id from keyed)          -- the key is new\n', ''],
    ],
    [
      'simulated: runs that were lost sight of are left alone',
      EXECUTOR,
      ['this.disown(holding);\n    }', 'void holding;\n    }'],
    ],
    [
      'simulated: a tool starts although the start was refused',
      'src/execution/starting.ts',
      ['if (await holder.start(run)) {', 'if ((await holder.start(run)) || true) {'],
    ],
    [
      "simulated: a look of the keeper's at the clock goes unnoticed",
      'src/replica/janitor.loop.ts',
      ['  noteClock(clock: ClockSample): void {\n    this.isSteady(clock);', '  noteClock(_: ClockSample): void {'],
    ],
  ].map(([name, file, ...edits]) => mutation(name, file, SIMULATED, ...edits)),
  mutation('one batch of what is due a pulse', WORK, WORKS, [
    '      this.wantsPulse = true; // It was a batch: more may be due.\n',
    '',
  ]),
  mutation(
    'a disabled trigger passes for one that fires',
    'src/doctor/catalog.sql.ts',
    'test/doctor/catalog.contract.spec.ts',
    ["null, t.tgenabled in ('O', 'A')", 'null, true'],
  ),
  mutation(
    'a function with another text passes',
    'src/doctor/catalog.rules.ts',
    'test/doctor/catalog.contract.spec.ts',
    ['if (body !== undefined && body !== there.body)', 'if (false)'],
  ),
  mutation('the doctor claims what it may not look into', 'src/doctor/server.rules.ts', DOCTOR_RULES, [
    'if (hidden.sessions === 0) return',
    'if (hidden.sessions >= 0) return',
  ]),
  mutation('a folder that may not be read passes for an empty one', 'src/platform/postgres/beside.ts', DOCTOR, [
    'return statSync(path, { throwIfNoEntry: false }) !== undefined;',
    'try { statSync(path); return true; } catch { return false; }',
  ]),
  // lists
  ...[
    [
      'a list by state reads all runs',
      ['cross join lateral (select * from runs where id = w.id offset 0) r', 'join runs r on r.id = w.id'],
    ],
    ['a list ends where its walk did', [': seen.find(({ isEnd }) => isEnd)', ': undefined']],
    [
      'a list by state takes all states together',
      ['       order by created_at desc, run_id desc limit ${length})', ')'],
    ],
    ['what many have in common is counted', ['> PERHAPS_FEW) return false;', '> 1e9) return false;']],
    [
      'few of any state are listed',
      ['${within(sql, search, sql`id`)} and ${ofState}', '${within(sql, search, sql`id`)}'],
    ],
    [
      'few of any organization are listed',
      ['${[organizationId, ...facets]}', '${facets}'],
      ['where ${within(sql, search, sql`id`)} and', 'where'],
    ],
    ['a part of a word is a word', ["name_words(r.name) @@ plainto_tsquery('simple', ${words})", 'true']],
  ].map(([name, ...edits]) => mutation(name, 'src/runs/list.sql.ts', 'test/runs/lists.contract.spec.ts', ...edits)),
  // why: one side of a predicate that a claim and the answer share
  ...[
    ['is pending', 'coalesce(${isPending(sql)}, false) as is_pending', 'r.state is null as is_pending'],
    ['is due', '${isDue(sql)} as is_due', 'true as is_due'],
    ['has a queue that is open', '${isOpen(sql)} as is_open', 'true as is_open'],
    ['has a worker that is live', '${isLive(sql)} as is_live', 'true as is_live'],
    ['has a worker that serves its queue', '${serves(sql)} as serves', 'true as serves'],
    ['has a worker with a lease', '        and ${holdsLease(sql)}\n    ),\n    claimer', '    ),\n    claimer'],
    ['has a worker with a free slot', 'slots - held as free', 'slots as free'],
    ['stands behind others', 'standing.ahead < c.free', 'standing.ahead <= c.free'],
    [
      'stands behind what is pending',
      'where ${isClaimable(sql)}\n',
      'where l.holder is null and l.not_before is null\n',
    ],
    ['stands behind what is due', 'where ${isClaimable(sql)}\n', "where l.state = 'pending'\n"],
    ['stands behind its own queue', '              and ${isInQueue(sql)}\n', ''],
    [
      'stands behind a higher priority',
      '(${claimOrder(sql)}) < (-run.priority, run.position)',
      'l.position < run.position',
    ],
    ['stands behind open queues alone', '             or ${isOpen(sql)}\n', '             or true\n'],
    [
      'stands behind all queues of who serves all',
      "where '*' = any (o.queues) and n.queue",
      'where n.queue = run.queue and n.queue',
    ],
  ].map(([name, find, replace]) =>
    mutation(`why: a run is claimable whether or not it ${name}`, WHY, 'test/runs/why.contract.spec.ts', [
      find,
      replace,
    ]),
  ),
  ...[
    ['pending', 'where ${isClaimable(sql)} ', 'where l.holder is null and l.not_before is null '],
    ['due', 'where ${isClaimable(sql)} ', "where l.state = 'pending' "],
    ['in a served queue', '          and ${isInQueue(sql)}\n', ''],
    ['in an open queue', '        and ${isOpen(sql)}\n', ''],
    ['before others', 'order by next.priority desc, next.position\n', 'order by next.position\n'],
  ].map(([name, find, replace]) =>
    mutation(`why: the claim alone takes what is not ${name}`, CLAIM, 'test/runs/why.contract.spec.ts', [
      find,
      replace,
    ]),
  ),
  mutation('why is told of a run of another organization', WHY, 'test/runs/why.api.spec.ts', [
    '        and r.organization_id = ${organizationId}\n',
    '',
  ]),
  mutation('why names runs of another organization', WHY, 'test/runs/why.api.spec.ts', [
    'where l.holder = c.id and l.organization_id = ${organizationId}\n',
    'where l.holder = c.id\n',
  ]),
  ...[
    ['workers', '             order by c.name, c.id limit ${TOLD_WORKERS}\n', '             order by c.name, c.id\n'],
    ['draining workers', '             order by name, id limit ${TOLD_WORKERS}\n', '             order by name, id\n'],
    ['runs', 'order by l.claimed_at, l.run_id limit ${TOLD_RUNS})', 'order by l.claimed_at, l.run_id)'],
    ['queues', 'order by 1 limit ${TOLD_QUEUES})', 'order by 1)'],
  ].map(([name, find, replace]) =>
    mutation(`why names all ${name}, however many`, WHY, 'test/runs/why.contract.spec.ts', [find, replace]),
  ),
  mutation('why believes in the lease of a life that is over', WHY, 'test/runs/why.api.spec.ts', [
    'w.ended_at is null and ${holdsLease(sql)}',
    '${holdsLease(sql)}',
  ]),
  mutation('why: a remedy is told as a request', 'src/cli/why.ts', 'test/cli/why.process.spec.ts', [
    'inCommands(remedy, program)}',
    'remedy}',
  ]),
  mutation('why: what others wrote steers a terminal', 'src/cli/why.ts', 'test/cli/why.process.spec.ts', [
    'printer.line(printable(line))',
    'printer.line(line)',
  ]),
  mutation('why counts so many in each queue', WHY, 'test/runs/why-cost.contract.spec.ts', [
    '          limit (select n from bound)\n        ) entry',
    '        ) entry',
  ]),
  mutation(
    'why counts all that goes first',
    WHY,
    'test/runs/why-cost.contract.spec.ts',
    ['            limit (select n from bound)\n          ) first', '          ) first'],
    ['          limit (select n from bound)\n        ) entry', '        ) entry'],
  ),

  // Batches, and cancels and reruns by filter ------------------------------------------------------------------------
  mutation('a batch is made though its key is known', SUBMIT, BATCH_KEYS, [
    '      where (select count(*) from whole) = ${wholes.length}              -- known before anything else is locked\n',
    '',
  ]),
  mutation('a batch does not wait for the same one in flight', SUBMIT, BATCH_KEYS, [
    '      on conflict do nothing                                             -- waits for the same request in flight\n',
    '',
  ]),
  mutation('the key of a batch is forgotten while some of it lives', SUBMIT, BATCH_KEYS, [
    'r.id = any (coalesce(k.run_ids, array[k.run_id]))',
    'r.id = k.run_id',
  ]),
  mutation('anybody frees the key of a batch', SUBMIT, BATCH_KEYS, [
    ' and key = ${key} and digest = ${digest}',
    ' and key = ${key}',
  ]),
  mutation('a key that names a refused id breaks a law', 'src/doctor/keys.sql.ts', BATCH_KEYS, [
    'case when run_ids is null then run_id end as run_id',
    'run_id',
  ]),
  mutation('a batch of which nothing came keeps its key', BATCHES, BATCH_API, [
    'if (whole && fates.length > 0 &&',
    'if (false && whole && fates.length > 0 &&',
  ]),
  mutation('a batch that came before is made again', BATCHES, BATCH_API, [
    'if (!holding.runIds?.some((id) => chosenHere.has(id))) return { earlier: holding };',
    '',
  ]),
  mutation('the key of a batch comes with any other', BATCHES, BATCH_API, [
    'if (holding.digest !== whole?.digest) throw keyReused();',
    '',
  ]),
  mutation('who was folded behind one that was refused is never tried', BATCHES, BATCH_API, [
    "if ('again' in fate) return;",
    '',
  ]),
  mutation('a lost answer makes a replay of a batch', BATCHES, KEY_FAULTS, [
    'if (!holding.runIds?.some((id) => chosenHere.has(id))) return { earlier: holding };',
    'return { earlier: holding };',
  ]),
  mutation('what went wrong for a moment is not tried again', 'src/runs/turns.ts', KEY_FAULTS, [
    'if (!isTransient(error) ||',
    'if (isTransient(error) ||',
  ]),
  mutation('a batch has the common limit of bodies', 'src/platform/http/larger-body.ts', BATCH_API, [
    '    route.bodyLimit = bodyLimit;\n',
    '',
  ]),
  mutation('large statements go side by side', 'src/runs/turns.ts', 'test/runs/turns.unit.spec.ts', [
    'size: 1,',
    'size: 2,',
  ]),
  mutation('large requests wait whatever they weigh', 'src/runs/turns.ts', 'test/runs/turns.unit.spec.ts', [
    'if (this.waitingBytes + bytes > MAX_WAITING_BYTES) {',
    'if (false) {',
  ]),
  mutation('a cancel by states takes what has left them', CANCEL, 'test/runs/bulk.contract.spec.ts', [
    '      where i.states is null or l.state = any (i.states)     -- looked at again once it is locked\n',
    '',
  ]),
  mutation('cancels go on for nobody', BULK, 'test/runs/bulk.contract.spec.ts', [' && !gone.aborted);', ');']),
  mutation('cancels go on for ever', BULK, 'test/runs/bulk.contract.spec.ts', [' && timing.monotonicMs() < until', '']),
  mutation(
    'a rerun by filter reads more than one statement takes',
    'src/runs/bulk.sql.ts',
    'test/runs/bulk.contract.spec.ts',
    ['where place = 1 or bytes <= ${maxBytes}', 'where place >= 1 or bytes <= ${maxBytes}'],
  ),
  mutation('a cancel by filter is not told to the holders', BULK, 'test/runs/bulk.contract.spec.ts', [
    "if (rows.some(({ result }) => result === 'requested')) bells.canceled.ring();",
    '',
  ]),
  mutation('an empty filter means all', BULK_DTO, BULK_API, ['if (Object.keys(value).length === 0) {', 'if (false) {']),
  mutation('a filter of null means all', BULK_DTO, BULK_API, [
    "if (texts.every((text) => typeof text === 'string')) return [];",
    'if (texts.length > 0) return [];',
  ]),
  mutation('states that are not meant are ignored', BULK_DTO, BULK_API, ['if (beside.length > 0) {', 'if (false) {']),

  // Found by the fuzz suite.
  mutation(
    'a queue that is called what a run is breaks the chain',
    'src/audit/columns.sql.ts',
    'test/audit/odd-input.api.spec.ts',
    [" or pg_catalog.starts_with(e.action, 'queue.')", ''],
  ),
  mutation(
    'a queue that is called what a run is is told as one',
    'src/audit/entry.ts',
    'test/audit/odd-input.api.spec.ts',
    [" && !action?.startsWith('queue.')", ''],
  ),
  mutation(
    'entries after the last instant are an error',
    'src/audit/entries.service.ts',
    'test/audit/odd-input.api.spec.ts',
    ['seqAt(this.pool, chain, after, 1)', 'seqAt(this.pool, chain, new Date(after.getTime() + 1))'],
  ),
  mutation(
    'a request without a host is let in',
    'src/platform/http/app.ts',
    'test/platform/http/odd-requests.api.spec.ts',
    ["raw.httpVersion === '1.1'", 'false'],
  ),
  mutation(
    'a request without a host is refused by Node',
    'src/platform/http/app.ts',
    'test/platform/http/odd-requests.api.spec.ts',
    [', requireHostHeader: false', ''],
  ),
  mutation(
    'expectations are refused by Node',
    'src/platform/http/app.ts',
    'test/platform/http/odd-requests.api.spec.ts',
    ["server.on('checkExpectation'", "server.on('never'"],
  ),
  mutation('a star gets past the hooks', 'src/platform/http/app.ts', 'test/platform/http/odd-requests.api.spec.ts', [
    "path.startsWith('/') ? path",
    'path !== undefined ? path',
  ]),
  mutation(
    'an answer of bytes is broken off',
    'src/platform/http/linger.ts',
    'test/platform/http/odd-requests.api.spec.ts',
    [' || Buffer.isBuffer(payload)', ''],
  ),

  // The TypeScript client.
  mutation('each try has a key of its own', TRANSPORT, CLIENT_REQUESTS, [
    'headerText(idempotencyKey ?? ownKey)',
    'headerText(idempotencyKey ?? crypto.randomUUID())',
  ]),
  mutation('a POST without a key of its caller has none', TRANSPORT, CLIENT_REQUESTS, [
    "method === 'POST' ?",
    "method === 'POST' && idempotencyKey !== undefined ?",
  ]),
  mutation('a redirect is followed', TRANSPORT, CLIENT_REQUESTS, ["redirect: 'manual'", "redirect: 'follow'"]),
  mutation('a pause goes on when nobody wants the answer', TRANSPORT, CLIENT_REQUESTS, [
    'delay(pauseMs, signal);',
    'delay(pauseMs);',
  ]),
  mutation('a client shows its token', TRANSPORT, CLIENT_REQUESTS, [
    'this.#options = options;',
    'this.#options = options;\n    Object.assign(this, { options });',
  ]),
  mutation('a token may be anything', 'src/client/client.ts', CLIENT_REQUESTS, [
    '!/^[\\x21-\\x7e]{1,255}$/',
    '!/^[^]/',
  ]),
  mutation('a list ends at an empty page', 'src/client/items.ts', CLIENT_REQUESTS, [
    'cursor = next ?? undefined;',
    'cursor = items.length === 0 ? undefined : (next ?? undefined);',
  ]),
  mutation('a stream begins anew after a break', CLIENT_EVENTS, CLIENT_STREAM, ['lastId = event.id;', '']),
  mutation('a silent stream goes on when nobody wants it', CLIENT_EVENTS, CLIENT_STREAM, [
    "signal?.addEventListener('abort', stop, { once: true });",
    '',
  ]),
  mutation('a stream that nobody reads stays open', CLIENT_EVENTS, CLIENT_STREAM, [
    'void reader.cancel().catch(() => undefined);',
    '',
  ]),
  mutation('routes of the installation are for everybody', GUARD, EXAMPLES, [
    "permitted?.permission === 'installation' &&",
    "permitted?.why === 'nobody' &&",
  ]),
  mutation('who the guard forbids is not remembered', GUARD, REFUSED, [
    "      this.refusals.note(caller, refusalOf('forbidden', request));\n      throw",
    '      throw',
  ]),
  mutation('a route does not say what it records', 'src/runs/queues.controller.ts', OPENAPI, [
    "  @Records('queue.paused', 'queue.resumed')\n",
    '',
  ]),
  mutation('a parameter stands undescribed', 'src/platform/http/page.ts', OPENAPI, [
    "  description: 'How many there are on a page at most.',\n",
    '',
  ]),
  mutation('an example is untrue to its schema', 'src/runs/examples.ts', OPENAPI, ["argv: ['uptime']", 'argv: []']),
  mutation('a shape has no example', 'src/runs/bulk.dto.ts', OPENAPI, [
    "example: 'run_01hx2ew2hde8g8njcz5w3mrv6k', ",
    '',
  ]),
  mutation(
    'a problem that will not go away says when to try again',
    'src/platform/http/problem.filter.ts',
    CONVENTIONS,
    ['if (problem.retryAfterSeconds !== undefined) void', 'void'],
  ),
  mutation('HEAD makes an entry', 'src/audit/bundle.controller.ts', CONVENTIONS, [
    "if (request.method === 'HEAD') {",
    "if (request.method === 'TRACE') {",
  ]),
  mutation('a priority of any size is taken', 'src/runs/submit.dto.ts', WRONG_INPUT, ['  @Max(100)\n', '']),
  mutation('a page of workers of one instant ends the list', 'src/runs/worker.sql.ts', PAGING, [
    '(w.started_at, w.id) < (${after.at}, ${after.id})',
    'w.started_at < ${after.at}',
  ]),
  mutation('workers start between two instants that a cursor tells', 'migrations/0001_ground.sql', PAGING, [
    "  started_at timestamptz not null default date_trunc('milliseconds', db_now()),",
    '  started_at timestamptz not null default db_now(),',
  ]),
  mutation('/docs runs scripts from anywhere', DOCS, DOCS_API, ["script-src 'self'", 'script-src *']),
  mutation('/docs is kept for ever under a name that does not change', 'src/platform/http/docs.ts', DOCS_API, [
    'docs.js?v=${DOCS_VERSION}',
    'docs.js',
  ]),
  mutation('/docs breaks its own policy', DOCS, 'test/platform/http/docs.system.spec.ts', [
    "img-src 'self' data:;",
    "img-src 'self';",
  ]),
  // the command line over the whole surface
  ...[
    [
      'a token of the environment goes to the host of a profile',
      'credentials.ts',
      'profiles.process',
      ['if (isTold || settings.namesServer) return undefined;', 'if (isTold) return undefined;'],
    ],
    [
      'a token of a profile goes to any host',
      'credentials.ts',
      'profiles.process',
      [
        'if (token === null || serverUrl(own, `profile ${name}`).origin !== url.origin) return undefined;',
        'if (token === null) return undefined;',
      ],
    ],
    [
      'a profile keeps its token when it names another host',
      'config.ts',
      'profiles.process',
      [
        'serverUrl(before.url, name).origin === origin ? before.token : null',
        'serverUrl(before.url, name).origin !== null ? before.token : null',
      ],
    ],
    [
      'profiles that others may read are read',
      'profiles.ts',
      'profiles.process',
      ['if ((mode & OTHERS) !== 0) {', 'if (mode < 0) {'],
    ],
    [
      'many are canceled though nobody said yes',
      'bulk.ts',
      'bulk.process',
      ['if (!dryRun && !shell.isInteractive) {', 'if (!dryRun && shell.timing === undefined) {'],
      ['if (/^y(es)?$/i.test(answer)) return true;', 'if (answer !== undefined) return true;'],
    ],
    [
      'a part that came past nothing ends a cancel of many',
      'bulk.ts',
      'bulk.process',
      ['    cursor = answer.next;', "    cursor = 'matched' in answer && answer.matched === 0 ? null : answer.next;"],
    ],
    [
      '--dry-run beside --yes cancels',
      'bulk.ts',
      'bulk.process',
      ['if (yes && !dryRun) return true;', 'if (yes) return true;'],
    ],
    [
      'each try of a part of a batch makes runs',
      'batch.ts',
      'bulk.process',
      ['index === 0 ? key : `${key}/${index + 1}`', 'crypto.randomUUID()'],
    ],
    [
      'a file with a broken line is sent in part',
      'batch-file.rules.ts',
      'bulk.process',
      ['throw wrongUsage(`${source}, ${place}: expected a JSON object, such as {"kind": "noop"}`);', 'return [];'],
    ],
    [
      'the status of a wait takes an open line along',
      'shell.ts',
      'wait.process',
      ['if (!stream.isTTY || screen.isOpen) return;', 'if (!stream.isTTY) return;'],
    ],
    ['top leaves its screen behind', 'full-screen.ts', 'top.process', ["process.on('exit', this.leave);", '']],
    [
      'a look of top that fails ends it',
      'top.ts',
      'top.process',
      ['if (!(error instanceof Failure)) throw error;\n        trouble', 'if (error) throw error;\n        trouble'],
    ],
    [
      'bash takes the value of an option for a command',
      'completion-bash.ts',
      'completion.process',
      ["    if [[ -n $want ]]; then want=''; continue; fi", "    want=''"],
    ],
    [
      'top hears no key while it looks',
      'top.ts',
      'top.process',
      ['delay(intervalMs).then(() => look(session))', 'delay(intervalMs)'],
      ['standing = standingOf(await next);', 'standing = standingOf(await look(session));'],
    ],
    [
      'top lets a retry write across its screen',
      'session.ts',
      'top.process',
      ['(failure) => this.tellRetry(failure)', '({ message }) => this.note(`${message}; trying again`)'],
    ],
    ['SIGQUIT leaves the screen as it is', 'full-screen.ts', 'top.process', [", 'SIGQUIT'", '']],
    [
      'a screen is not given back without the mode of its terminal',
      'full-screen.ts',
      'full-screen.unit',
      ['    this.output.write(LEAVE);', '    this.input.setRawMode(false);\n    this.output.write(LEAVE);'],
    ],
    [
      'a key leaves its listener behind',
      'full-screen.ts',
      'full-screen.unit',
      ["signal.removeEventListener('abort', wake);", ''],
    ],
    [
      'a profile is changed as it was before the token was read',
      'config.ts',
      'profiles.process',
      [
        'const given = await tokenIn(',
        'const { current, named } = readProfiles(folder);\n  const given = await tokenIn(',
      ],
      ['({ current, named }) => {\n    const profile', '() => {\n    const profile'],
    ],
    [
      'profiles are changed in spite of a lock',
      'profiles.ts',
      'profiles.process',
      ["await open(lock, 'wx', 0o600)", "await open(lock, 'w', 0o600)"],
    ],
    [
      'bash takes the name of a file for a pattern',
      'completion-bash.ts',
      'completion.process',
      ['_capstan_reply < <(compgen $flag -- "$cur")', 'COMPREPLY=($(compgen $flag -- "$cur"))'],
    ],
  ].map(([name, file, spec, ...edits]) =>
    mutation(`client: ${name}`, `src/cli/${file}`, `test/cli/${spec}.spec.ts`, ...edits),
  ),

  // Parts of what is changed by filter, and requests that are sent again ---------------------------------------------
  mutation('of one that is come past twice two reruns are made', BULK, 'test/runs/bulk.contract.spec.ts', [
    'const ids = [...found];',
    'const ids = [...found, ...[...found].slice(1)];',
  ]),
  mutation('a rerun goes on where its search ended', BULK, 'test/runs/bulk.contract.spec.ts', [
    'next: next && placeBehind(inputs),',
    'next,',
  ]),
  mutation('a cancel that fails on its way forgets what it did', BULK, 'test/runs/bulk.contract.spec.ts', [
    'place === after || !mayPass(error)) throw error;',
    'place === after || error) throw error;',
  ]),
  mutation('an equal request loses the key of what it made', SUBMIT, BATCH_KEYS, [
    '      and run_ids = ${runIds as string[]}::uuid[]                        -- an equal one may have made runs meanwhile',
    '',
  ]),
  mutation('an item that was refused is one that was removed', BATCHES, KEY_FAULTS, [
    'const isRefused = !made.has(run.id) &&',
    'const isRefused = false && !made.has(run.id) &&',
  ]),
  mutation('who had the id before is the item that was refused', SUBMIT, KEY_FAULTS, [
    `\n      and e.claim::jsonb #>> '{payload,specDigest}' = i."specDigest"     -- not of whoever had the id before`,
    '',
  ]),
  mutation('a first cancel that is sent again means what is newer', 'src/client/client.ts', CLIENT_REQUESTS, [
    'return { ...filter, createdBefore: new Date(Date.parse(createdAt) + 1).toISOString() };',
    'return filter;',
  ]),
  mutation('a filter that names nothing means all that is there', 'src/client/client.ts', CLIENT_REQUESTS, [
    'if (Object.values(filter).every((member) => member === undefined)) return filter;',
    '',
  ]),
  mutation('a key leaves no room for its parts', 'src/client/client.ts', CLIENT_REQUESTS, [
    'if (headerText(idempotencyKey).length > MAX_KEY_BYTES_OF_PARTS) {',
    'if (idempotencyKey.length > MAX_KEY_BYTES_OF_PARTS) {',
  ]),
  mutation('a signal lets go of a body', TRANSPORT, CLIENT_REQUESTS, [
    'const ends = signal === undefined ? clock.signal : AbortSignal.any([signal, clock.signal]);',
    'const ends = clock.signal;',
  ]),
  mutation('a request is collected while its body is read', 'src/client/raw.ts', CLIENT_REQUESTS, [
    '      if (response.body !== null) REQUESTS.set(response.body, request);\n',
    '',
  ]),
  mutation('long work that breaks off is given up', TRANSPORT, CLIENT_REQUESTS, [
    'if (tries === 1 && tryMs > TRY_MS && nowMs - begunMs < tryMs) begunMs = nowMs;',
    '',
  ]),
  mutation(
    'a large body is collected of anybody',
    'src/platform/http/larger-body.ts',
    'test/platform/http/unknown-callers.process.spec.ts',
    ['    await doorkeeper.admit(request, reply);\n', ''],
  ),
  mutation(
    'a query that is no text is taken',
    'src/platform/http/app.ts',
    'test/platform/http/odd-requests.api.spec.ts',
    ['    decodeURIComponent(url.slice(query + 1));\n', ''],
  ),
  mutation('of a whole URL all counts', 'src/platform/http/app.ts', 'test/platform/http/odd-requests.api.spec.ts', [
    "target.replace(ORIGIN, '')",
    'target',
  ]),
  // Spawn: folders that are used again, pipes in memory.
  mutation('a folder that its tool changed is another tool’s next', PRIVATE_FOLDERS, SPAWN_FOLDERS, [
    'return now.ctimeNs === made.ctimeNs && now.mtimeNs === made.mtimeNs && now.ino === made.ino;',
    'return now.ino === made.ino;',
  ]),
  mutation('a folder that somebody may have open is another tool’s next', PRIVATE_FOLDERS, SPAWN_FOLDERS, [
    'if (isSurelyLeft && this',
    'if (this',
  ]),
  mutation('a folder is called untouched before a change could show', PRIVATE_FOLDERS, SPAWN_FOLDERS, [
    'this.#isTold = performance.now() - this.#madeMs > TICK_MS;',
    'this.#isTold = true;',
  ]),
  mutation('a folder that was tidied away is a tool’s', PRIVATE_FOLDERS, SPAWN_FOLDERS, [
    'if (spare?.begin()) return spare;',
    'spare?.begin();\n    if (spare) return spare;',
  ]),
  mutation('a folder with files of a plan is used for another', PRIVATE_FOLDERS, SPAWN_FOLDERS, [
    'const spare = files.length === 0 ? this.#spare.pop() : undefined;',
    'const spare = this.#spare.pop();',
  ]),
  mutation('reports are not looked for in a folder that is used again', PRIVATE_FOLDERS, SPAWN_FOLDERS, [
    'if (this.#isTold) this.#isUntouched = this.#isAsMade(await this.#look());',
    'this.#isUntouched = this.#isTold;',
  ]),
  mutation('names of pipes in memory are not held', 'src/execution/supervisor/supervisor.main.ts', SPAWN_FOLDERS, [
    'if (hello.pipes !== hello.root)',
    'if (hello.pipes === hello.root)',
  ]),
  mutation('pipes in memory that a dead supervisor left stay', PLACES, SPAWN_FOLDERS, [
    'isMemory ? [tempDir, memoryDir] : [tempDir]',
    '[tempDir]',
  ]),
  mutation('pipes in memory stay after the end', PLACES, SPAWN_START, [
    'if (pipes !== root) await removeTree(pipes);',
    '',
  ]),

  // What an idle replica costs, and what it still finds out.
  mutation('an idle life looks as often as one that works', WORK, IDLES, [
    'const IDLE_FACTOR = 1.7;',
    'const IDLE_FACTOR = 1;',
  ]),
  mutation('nobody knows when the next run becomes due', WORK, WORKS, [
    'timing.monotonicMs() + pulse.dueInMs',
    'Number.POSITIVE_INFINITY',
  ]),
  mutation('runs that become due one after another make a storm of pulses', WORK, WORKS, [
    'Math.max(this.dueAtMs, this.pulsedAtMs + DUE_APART_MS)',
    'this.dueAtMs',
  ]),
  mutation('a pulse spares no look', READINESS_RULES, READINESS, [
    'isSpared ? SPARED_LOOK_TICKS : LOOK_TICKS',
    'LOOK_TICKS',
  ]),
  mutation('a pulse tells nobody that the database takes writes', 'src/replica/life.ts', READINESS_SEEN, [
    '        parts.noteWritable(pulse.writable);\n',
    '',
  ]),
  mutation('whom nobody asked is taken for silent', READINESS_RULES, READINESS, [
    ' && unansweredTicks >= UNANSWERED_TICKS',
    '',
  ]),
  mutation('a slow database is left to its pulses', READINESS_RULES, READINESS, [
    'view.easyTicks >= EASY_TICKS && ',
    '',
  ]),
  mutation('a lost connection is no reason to look', READINESS_RULES, READINESS, [' || sign.wasCut', '']),
  mutation('a pulse that met a read-only server is no reason to look', READINESS_RULES, READINESS, [
    ': { ...view, isDoubted: true };',
    ': view;',
  ]),

  // Flat as the history grows, and under an old snapshot.
  mutation('claims have no index of their own', SPEED, HISTORY, [
    'create index live_runs_order on live_runs (queue, (-priority), position) where claimable;',
    '',
  ]),
  mutation('a claim in a burst walks over all before it', CLAIM, SNAPSHOT, [
    '          and (${claimOrder(sql)}) > (s.rank, s.position)\n',
    '',
  ]),
  mutation('renewals write into an index', SPEED, SNAPSHOT, [
    'alter table live_runs add column kind text;',
    'alter table live_runs add column kind text;\ncreate index workers_lease on workers (lease_until);',
  ]),
  mutation('a place in a queue has 32 bits', CLAIM, LONG_LIVED, ['position bigint)', 'position integer)']),
  mutation('the server lets a list wait for a table for ever', DB, ABANDONED, [
    'statement_timeout: statementTimeoutMs, lock_timeout: 2_000,',
    'statement_timeout: 0, lock_timeout: 0,',
  ]),
];
