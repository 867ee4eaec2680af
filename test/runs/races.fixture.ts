/** Two statements for each of many runs, let go at one moment; and the law that holds after any race. */
import { expect } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { isEnded, type RunStanding } from '../../src/runs/run.machine.js';
import type { Ground } from './ground.fixture.js';

/** So many runs are raced at a time; each pair takes two sessions that wait for one lock. */
export const PAIRS = 24;

const LOCK = 'select 1 from live_runs where run_id = any ($1::uuid[]) order by run_id for update';

/**
 * Locks the live rows of PAIRS runs, sends both statements for each, lets them go at one moment, and goes on with the
 * next; the answers are in the order of `ids`.
 */
export async function race<A, B>(
  ground: Ground,
  ids: readonly string[],
  a: (id: string) => Promise<A>,
  b: (id: string) => Promise<B>,
): Promise<(readonly [A, B])[]> {
  const answers: (readonly [A, B])[] = [];
  const session = await ground.db.session();
  for (let from = 0; from < ids.length; from += PAIRS) {
    const some = ids.slice(from, from + PAIRS);
    await session.query('begin');
    await session.query(LOCK, [some]);
    const racing = Promise.all(
      some.map((id, i) =>
        both(
          () => a(id),
          () => b(id),
          i % 2 === 0,
        ),
      ),
    );
    racing.catch(() => undefined);
    await ground.waiting(2 * some.length);
    await session.query('commit');
    answers.push(...(await racing));
  }
  return answers;
}

/** Locks are granted in the order in which they were asked for. */
async function both<A, B>(a: () => Promise<A>, b: () => Promise<B>, isBFirst: boolean): Promise<readonly [A, B]> {
  if (!isBFirst) return Promise.all([a(), b()]);
  const second = b();
  return Promise.all([a(), second]);
}

interface Fate {
  readonly standing: RunStanding;
  readonly isLive: boolean;
  readonly isFlagged: boolean;
  readonly endState: string | null;
  readonly seqs: readonly number[];
  readonly events: readonly string[];
  readonly entries: readonly string[];
}

/** What became of each run, in the order of `ids`. */
export async function fatesOf(ground: Ground, ids: readonly string[]): Promise<Fate[]> {
  const { rows } = await ground.sql.query<Fate>(
    `select coalesce(l.state, r.state, 'absent') as standing, l.run_id is not null as "isLive",
            l.cancel_requested_at is not null as "isFlagged", r.state as "endState",
            array(select seq from run_events e where e.run_id = i.id order by seq) as seqs,
            array(select type from run_events e where e.run_id = i.id order by seq) as events,
            coalesce(a.actions, '{}') as entries
     from unnest($1::uuid[]) with ordinality i (id, place)
     left join runs r on r.id = i.id
     left join live_runs l on l.run_id = i.id
     left join (select run_id, array_agg(action) as actions from audit_entries where run_id = any ($1::uuid[]) group by 1) a
       on a.run_id = i.id
     order by i.place`,
    [ids],
  );
  return rows;
}

/**
 * The law after any race: an ended run has one end and one entry of it, a live one none, and a cancel request exactly
 * one entry; and the chain verifies. Answers with how many runs stand where.
 */
export async function expectOneTruth(ground: Ground, ids: readonly string[]): Promise<Map<string, number>> {
  const standings = new Map<string, number>();
  for (const { standing, isLive, endState, seqs, events, entries } of await fatesOf(ground, ids)) {
    const count = (list: readonly string[], what: string) => list.filter((one) => one === what).length;
    for (const list of [events, entries]) {
      expect(count(list, 'run.ended'), `ends of a run that is ${standing}`).toBe(isEnded(standing) ? 1 : 0);
      expect(count(list, 'run.cancel_requested')).toBeLessThanOrEqual(1);
    }
    expect(isLive).toBe(!isEnded(standing));
    expect(endState).toBe(isEnded(standing) ? standing : null);
    expect(seqs.map(Number)).toEqual(seqs.map((_, i) => i + Number(seqs[0] ?? 0)));
    standings.set(standing, (standings.get(standing) ?? 0) + 1);
  }
  expect(await new AuditService(ground.pool).verify(ground.chain)).toMatchObject({ ok: true });
  return standings;
}
