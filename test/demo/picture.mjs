/** The three replicas and the runs by state, as a picture for a terminal and as one line for a pipe. */
import { SLOTS } from './fleet.mjs';
import { padded } from './screen.mjs';

/** The newest life under each name: a process that lost its lease lives on under another id. */
export function livesOf({ workers }) {
  const lives = new Map();
  for (const worker of workers) if (!lives.has(worker.name)) lives.set(worker.name, worker);
  return lives;
}

/** `done` says what was done to a replica, by its name. */
export function draw({ screen, fleet, done }, look) {
  const { paint } = screen;
  const lives = livesOf(look);
  const titles = ['replica', 'pid', 'what we did to it', 'state', 'lease renewed', 'runs'];
  const widths = [8, 8, 18, 7, 14, 8];
  const row = (cells) => `   ${cells.map((cell, i) => padded(cell, widths[i])).join(' ')}`;
  const picture = [paint.dim(row(titles))];
  const words = [];
  for (const { name, pid } of fleet.replicas.values()) {
    const { state, seenAt, running } = lives.get(name);
    const age = `${Math.max(0, (Date.now() - Date.parse(seenAt)) / 1000).toFixed(1)} s ago`;
    const shown = state === 'live' ? paint.green(state) : paint.red(state);
    const bar = paint.cyan('■'.repeat(running)) + paint.dim('·'.repeat(Math.max(0, SLOTS - running)));
    picture.push(row([name, String(pid), paint.yellow(done.get(name) ?? ''), shown, age, bar]));
    words.push(`${name} ${state}, renewed ${age}, runs ${running}`);
  }
  const counts = countsOf(look);
  screen.draw([...picture, '', `   ${counts}`], `   | ${words.join(' | ')} | ${counts}`);
}

function countsOf({ runs }) {
  const n = (...states) => runs.filter(({ state }) => states.includes(state)).length;
  const parts = [`${runs.length} runs`, `${n('pending')} waiting`, `${n('claimed', 'running')} running`];
  return [...parts, `${n('succeeded')} succeeded`, `${n('interrupted')} interrupted`].join(' · ');
}
