/** What became of each run, and whether all that the demo claims held. Pure: it judges what others have seen. */

/**
 * @typedef {object} Fate
 * @property {string} id
 * @property {string} name
 * @property {string} key
 * @property {string} takenBy   the replica that took the submit in
 * @property {string[]} unanswered   replicas that were asked before it, in vain
 * @property {string} ranOn   the replica that executed it
 * @property {string} state
 * @property {number} did   steps that its effects show
 * @property {number} of   steps that it would do
 * @property {number} processes   how many tools left effects of it
 * @property {number | null} stoppedBeforeEndMs   from its last effect to its end
 * @property {string} why   in plain words
 */

/** Lines of the effects file by run. */
export function effectsOf(text) {
  const effects = new Map();
  for (const line of text.split('\n').filter(Boolean)) {
    const [run, pid, at] = line.split(' ');
    const mine = effects.get(run) ?? { pids: new Set(), count: 0, lastAtMs: 0 };
    mine.pids.add(pid);
    mine.count += 1;
    mine.lastAtMs = Math.max(mine.lastAtMs, Number(at));
    effects.set(run, mine);
  }
  return effects;
}

/** @returns {Fate[]} in order of submit */
export function fatesOf({ plans, submitted, runs, effects, faults }) {
  return [...plans].map(([key, { name, steps }]) => {
    const { id, at, silent } = submitted.get(key);
    const run = runs.find((one) => one.id === id);
    const { pids, count, lastAtMs } = effects.get(id) ?? { pids: new Set(), count: 0, lastAtMs: 0 };
    const fate = {
      id,
      name,
      key,
      takenBy: at,
      unanswered: silent,
      ranOn: run.worker?.name ?? '',
      state: run.state,
      code: run.end?.code ?? '',
      fence: run.fence,
      createdAt: run.createdAt,
      startedAt: run.startedAt,
      endedAt: run.endedAt,
      did: count,
      of: steps,
      processes: pids.size,
      stoppedBeforeEndMs: lastAtMs === 0 ? null : Date.parse(run.endedAt) - lastAtMs,
    };
    return { ...fate, why: whyOf(fate, faults) };
  });
}

/** `faults` says when a replica was killed or stopped, by its name. */
function whyOf({ state, ranOn, takenBy, unanswered, did, of, fence, createdAt, startedAt }, faults) {
  if (state === 'interrupted') {
    const what = ranOn === 'r2' ? 'r2 was killed' : 'r3 stood still';
    return did === of
      ? `${what}: it was done, but nobody could record that; not run again`
      : `${what}: stopped at step ${did}, not run again`;
  }
  const fault = faults[takenBy];
  const wasWaiting = Date.parse(createdAt) < fault && Date.parse(startedAt) > fault && takenBy !== ranOn;
  const reasons = [];
  const gone = [...new Set(unanswered)];
  if (gone.length > 0) reasons.push(`${gone.join(' and ')} silent: sent again, same key, to ${takenBy}`);
  if (fence > 1) reasons.push('claimed there and not started: went back to its queue');
  if (wasWaiting) reasons.push(`waited when ${takenBy} ${takenBy === 'r2' ? 'died' : 'stopped'}: ${ranOn} ran it`);
  return reasons.join('; ');
}

/** @returns {{ claim: string, holds: boolean, found: string }[]} */
export function claimsOf({ fates, runs, before, lateWrites, newLife, effects }) {
  const count = (holds) => fates.filter(holds).length;
  const interrupted = fates.filter(({ state }) => state === 'interrupted');
  const met = (name) => interrupted.filter(({ ranOn }) => ranOn === name).length;
  const moved = fates.filter(({ why }) => /waited when|not started/.test(why));
  const resent = fates.filter(({ unanswered }) => unanswered.length > 0);
  const endsBefore = new Map(before.runs.map((run) => [run.id, JSON.stringify(run.end)]));
  const late = [...new Set(lateWrites.map(({ run }) => run))];
  const changed = late.filter((id) => endsBefore.get(id) !== JSON.stringify(runs.find((run) => run.id === id)?.end));
  const latest = Math.max(...interrupted.map(({ stoppedBeforeEndMs }) => -(stoppedBeforeEndMs ?? 0)));
  return [
    claim('each submit is one run, however often it was sent', runs.length === fates.length && resent.length > 0, [
      `${fates.length} submits, ${resent.length} of them sent again to another replica, ${runs.length} runs`,
    ]),
    claim('every run has ended', count(({ endedAt }) => endedAt === null) === 0, [`${fates.length} ended`]),
    claim('nothing ran twice', count(({ processes }) => processes > 1) === 0 && effects.size <= fates.length, [
      `${effects.size} runs left effects, each of one process`,
    ]),
    claim('nothing happened after a run read ended', count((fate) => (fate.stoppedBeforeEndMs ?? 0) < 0) === 0, [
      `the last effect of an interrupted run came ${(-latest / 1000).toFixed(1)} s before its end, or earlier`,
    ]),
    claim('what reads succeeded did all its steps', count((f) => f.state === 'succeeded' && f.did !== f.of) === 0, [
      `${count(({ state }) => state === 'succeeded')} succeeded`,
    ]),
    claim(
      'what was running where the accidents were reads interrupted, and nothing else does',
      met('r2') > 0 && met('r3') > 0 && met('r1') === 0 && count(isOtherEnd) === 0,
      [`${met('r2')} on r2, ${met('r3')} on r3`],
    ),
    claim(
      'what waited with the dead ran elsewhere',
      moved.length > 0 && moved.every(({ state }) => state === 'succeeded'),
      [`${moved.length} runs that r2 or r3 had taken in`],
    ),
    claim('late writes of r3’s old life were refused', late.length > 0 && changed.length === 0, [
      `${lateWrites.length} refusals in its log about ${late.length} runs, whose ends stand as they stood`,
    ]),
    claim(
      'r3 works again, as a new life',
      runs.some(({ worker }) => worker?.id === newLife),
      [`${runs.filter(({ worker }) => worker?.id === newLife).length} runs since`],
    ),
  ];
}

const isOtherEnd = ({ state }) => state !== 'succeeded' && state !== 'interrupted';

function claim(text, holds, [found]) {
  return { claim: text, holds, found };
}
