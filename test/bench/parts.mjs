/**
 * What is measured, one function a part, each on a database of its own with replicas of its own, which are stopped after
 * it. A part gives figures; `msPerItem` is what one item takes, so that it can be told in commits of the same PostgreSQL.
 */
import { lists } from './lists.mjs';
import { audit } from './parts/audit.mjs';
import { backlog } from './parts/backlog.mjs';
import { command } from './parts/command.mjs';
import { drain } from './parts/drain.mjs';
import { growth, snapshot } from './parts/growth.mjs';
import { idle } from './parts/idle.mjs';
import { latency } from './parts/latency.mjs';
import { output, viewer, viewers } from './parts/output.mjs';
import { recovery } from './parts/recovery.mjs';
import { http, wait } from './parts/requests.mjs';
import { retention } from './parts/retention.mjs';
import { submit } from './parts/submit.mjs';
import { limits } from './parts/yardsticks.mjs';

/** Beside the peers, where they are asked for; `--quick` measures nothing else. */
const SIDE_BY_SIDE = { latency, drain, submit };

const ALONE = {
  limits,
  idle,
  wait,
  http,
  command,
  output,
  viewer,
  viewers,
  audit,
  backlog,
  growth,
  snapshot,
  recovery,
};

/** Minutes to prepare or to wait for: with `--full`, or by their names. */
const LONG = { retention, lists };

/** In the order of measuring. */
export const PARTS = Object.freeze({ ...SIDE_BY_SIDE, ...ALONE, ...LONG });

/** The parts of a run in which none is named. */
export function partsOf(mode) {
  if (mode === 'quick' || mode === 'tiny') return Object.keys(SIDE_BY_SIDE);
  return Object.keys(mode === 'full' ? PARTS : { ...SIDE_BY_SIDE, ...ALONE });
}
