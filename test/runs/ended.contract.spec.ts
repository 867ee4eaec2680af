/** What the database itself refuses, whoever asks: changes of what is over, and rows that can't be true. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { END_STATES } from '../../src/kernel/run-words.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

const refused = (text: string, values: unknown[] = []) =>
  ground.sql.query(text, values).then(
    () => 'taken',
    (error: { code?: string; message: string }) => `${error.code} ${error.message}`,
  );

describe('what is over never changes', () => {
  it.each(END_STATES)('S4-16 a run that ended %s refuses every update', async (state) => {
    const id = await ground.runIn(state, { holder: await ground.worker() });
    for (const change of [`state = 'failed'`, `end_detail = 'x'`, `labels = '{"a":"b"}'`, `ended_at = now()`]) {
      expect(await refused(`update runs set ${change} where id = $1`, [id])).toContain('an ended run never changes');
    }
  });

  it.each(['lost', 'stopped'] as const)('a life that is %s refuses every update', async (state) => {
    const id = await ground.worker({ state });
    for (const change of [`state = 'live', ended_at = null`, `lease_until = now() + interval '1 hour'`, `slots = 9`]) {
      expect(await refused(`update workers set ${change} where id = $1`, [id])).toContain(
        'a life that is over never changes',
      );
    }
  });

  it.each([
    ['update audit_entries set claim = claim', 'only ever appended'],
    ['delete from audit_entries', 'only ever appended'],
    ['truncate audit_entries', 'only ever appended'],
    ['update audit_anchors set token = token', 'anchors are only ever appended'],
    ['delete from audit_anchors', 'anchors are only ever appended'],
    ['truncate audit_anchors', 'anchors are only ever appended'],
    ['delete from audit_heads', 'never removed'],
    ['truncate audit_heads cascade', 'is refused'],
    [`update audit_heads set seq = seq - 1 where seq > 1`, 'only moves forward'],
    [`update audit_heads set seq = 0, link = '' where seq > 0`, 'only moves forward'],
    [`update audit_heads set chain_id = chain_id || 'x', seq = seq + 1`, 'only moves forward'],
  ])('S4-102 the audit tables refuse `%s`', async (text, why) => {
    await ground.submit({}, {});
    expect(await refused(text)).toContain(why);
  });
});

describe('rows that can not be true are refused', () => {
  it.each([
    ['running without a holder', `update live_runs set holder = null where run_id = $1`, 'running'],
    ['running without having started', `update live_runs set started_at = null where run_id = $1`, 'running'],
    [
      'pending with a holder',
      `update live_runs set state = 'pending', claimed_at = null, started_at = null where run_id = $1`,
      'running',
    ],
    [
      'pending with a cancel request',
      `update live_runs set cancel_requested_at = now(), cancel_kind = 'requested' where run_id = $1`,
      'pending',
    ],
    [
      'a cancel request without its kind',
      `update live_runs set cancel_requested_at = now() where run_id = $1`,
      'running',
    ],
    ['claimed and not due', `update live_runs set not_before = now() where run_id = $1`, 'claimed'],
    ['a state that there is not', `update live_runs set state = 'paused' where run_id = $1`, 'pending'],
    [
      'ended without a code',
      `update runs set state = 'failed', ended_at = now(), end_by = 'x', fence = 1 where id = $1`,
      'pending',
    ],
    [
      'an exit code and a signal',
      `update runs set state = 'failed', ended_at = now(), end_by = 'x', end_code = 'ok', fence = 1, exit_code = 1, signal = 'SIGKILL' where id = $1`,
      'pending',
    ],
    ['an outcome before the end', `update runs set exit_code = 1 where id = $1`, 'pending'],
  ] as const)('%s', async (_, text, standing) => {
    const id = await ground.runIn(standing, { holder: await ground.worker() });
    expect(await refused(text, [id])).toMatch(/^23(514|503) /);
  });
});
