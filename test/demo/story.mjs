/** What happens, act by act. r1 is left alone all the time, so that somebody can be asked. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from './client.mjs';
import { DEADLINE_S, LEASE_S, SLOTS } from './fleet.mjs';
import { draw, livesOf } from './picture.mjs';
import { until } from './until.mjs';

const TOOL = join(import.meta.dirname, 'tool.mjs');
const REPORT = Object.freeze({ steps: 8, everyMs: 400 });
const BACKUP = Object.freeze({ steps: 60, everyMs: 500 });
const SUBMIT_EVERY_MS = 450;
const MOST_RUNS = 80;
/** What a replica logs of a write that its lost life still wanted to make. */
const LATE_WRITES = ['run_end_refused', 'run_end_withheld', 'run_write_refused', 'run_start_refused'];

export class Story {
  /** What was submitted, by its key. */
  plans = new Map();
  /** What was done to a replica, by its name. */
  done = new Map();
  /** When that was, in milliseconds of the epoch. */
  faults = {};
  lateWrites = [];
  #sent = [];

  constructor(fleet, screen, signal) {
    this.fleet = fleet;
    this.screen = screen;
    this.signal = signal;
    this.client = new Client(fleet, signal);
    this.effectsFile = '';
  }

  async start() {
    const { fleet, screen } = this;
    screen.title('1. Three replicas start');
    await fleet.open();
    this.effectsFile = join(fleet.folder, 'effects');
    screen.say('   PostgreSQL is up: the only thing that the replicas share.');
    // One queue is served by r3 alone, so that something long is surely running there.
    const queues = { r3: 'default,backups' };
    await Promise.all(
      ['r1', 'r2', 'r3'].map((name) => fleet.start(name, { CAPSTAN_QUEUES: queues[name] ?? 'default' })),
    );
    for (const { name, pid, url } of fleet.replicas.values()) {
      screen.say(`   replica ${name}   pid ${pid}   ${url}`);
    }
    screen.tell(
      `They are equals: each serves the whole API and executes runs, ${SLOTS} at a time here. There is no leader.`,
    );
  }

  async work() {
    const { screen } = this;
    screen.title('2. Work comes in');
    screen.tell(
      'Runs are submitted to the replicas in turn, each with an Idempotency-Key, faster than they can be executed. ' +
        'At each step a run appends a line to a file, past all replicas: that will tell what really happened, and how often.',
    );
    this.#submit('r3', 'backup', { ...BACKUP, queue: 'backups' });
    const stream = this.#stream();
    await this.#watch('work on all replicas, and a backlog', ({ runs }) => {
      const waiting = runs.filter(({ state }) => state === 'pending').map(({ id }) => id);
      const takenBy2 = this.#submitted().filter(({ at }) => at === 'r2');
      return (
        hasFreshRun(runs, 'r2') &&
        runs.some(({ queue, state }) => queue === 'backups' && state === 'running') &&
        waiting.length >= 4 &&
        takenBy2.filter(({ id }) => waiting.includes(id)).length >= 2
      );
    });
    return stream;
  }

  /** `stream` goes on submitting meanwhile. */
  async strike(stream) {
    const { fleet, screen, client } = this;
    screen.title('3. Two accidents');
    const { pid } = fleet.replicas.get('r2');
    screen.command(`kill -9 ${pid}`, 'replica r2 dies in the middle of its runs');
    this.#do('r2', 'SIGKILL', 'killed');
    await this.#watch('r3 in the middle of a report', ({ runs }) => hasFreshRun(runs, 'r3'));
    const third = fleet.replicas.get('r3').pid;
    screen.command(`kill -STOP ${third}`, 'replica r3 stands still in the middle of its runs, and knows nothing of it');
    this.#do('r3', 'SIGSTOP', 'stopped');
    screen.tell(
      'Clients notice nothing: whoever gets no answer sends the same request, with the same key, to the next replica. ' +
        'Runs that only waited are anybody’s: r1 goes on with them at once.',
    );
    screen.tell(
      'Runs that had started are never started again. The tools of r2 are stopped already: its supervisor saw it die. ' +
        `Those of r3 are stopped ${DEADLINE_S} s after its last renewal; ${LEASE_S} s after it the lease is over, and ` +
        'only then may others speak for r3. That takes a moment.',
    );
    await this.#watch('some more submits', () => Date.now() - this.faults.r3 > 4_000);
    await stream.stop();
    const told = new Set();
    await this.#watch('both are lost, and their runs settled', (look) => {
      const lives = livesOf(look);
      for (const name of ['r2', 'r3']) {
        const { state, id, endedAt, seenAt } = lives.get(name);
        if (state !== 'lost' || told.has(name) || look.runs.some((run) => run.worker?.id === id && !run.endedAt))
          continue;
        told.add(name);
        const s = ((Date.parse(endedAt) - Date.parse(seenAt)) / 1000).toFixed(1);
        const n = look.runs.filter(({ worker, state }) => worker?.id === id && state === 'interrupted').length;
        screen.tell(
          `r1 finds ${name} lost, ${s} s after its last renewal. What had started there reads interrupted: ${n} runs.`,
        );
      }
      return told.size === 2;
    });
    this.before = await client.look();
  }

  async wake() {
    const { fleet, screen } = this;
    const { pid, log } = fleet.replicas.get('r3');
    const old = livesOf(this.before).get('r3').id;
    screen.title('4. r3 wakes up, and still believes that it holds its runs');
    screen.command(`kill -CONT ${pid}`, 'replica r3 goes on where it stood');
    this.#do('r3', 'SIGCONT', 'stopped, woken');
    const life = await this.#watch('r3 begins a new life', (look) => {
      const now = livesOf(look).get('r3');
      return now.id !== old && now.state === 'live' && now;
    });
    this.lateWrites = await until(
      'what r3 still wanted to write',
      () => {
        const late = log().filter(({ code }) => LATE_WRITES.includes(code));
        return late.length > 0 && late;
      },
      { signal: this.signal },
    );
    for (const { code, run, msg } of this.lateWrites) screen.tell(`r3 logs ${code}  ${this.nameOf(run)}: ${msg}`);
    screen.tell(`Nothing of its old life got in. It begins a new one, under a new id (${life.id}), and takes runs.`);
    this.newLife = life.id;
  }

  /** All that is left is executed, some of it by r3’s new life. Returns the last look. */
  async finish() {
    for (let more = 0; more < 3; more += 1) this.#submit('r3');
    const last = await this.#watch('every run has ended', (look) => {
      const isIdle = look.runs.every(({ endedAt }) => endedAt !== null) && look.runs.length === this.plans.size;
      if (!isIdle) return false;
      if (look.runs.some(({ worker }) => worker?.id === this.newLife)) return look;
      this.#submit('r3');
      return false;
    });
    await Promise.all(this.#sent);
    return last;
  }

  nameOf(id) {
    for (const [key, sent] of this.client.submitted) if (sent.id === id) return this.plans.get(key).name;
    return id;
  }

  #submitted() {
    return [...this.client.submitted.values()];
  }

  #do(name, signal, words) {
    this.faults[name] ??= Date.now();
    this.fleet.signal(name, signal);
    this.done.set(name, words);
  }

  #submit(at, what = 'report', { steps, everyMs, queue = 'default' } = REPORT) {
    const n = this.plans.size;
    const name = `${what} ${n}`;
    const key = `demo-${n}`;
    this.plans.set(key, { name, steps });
    const argv = [process.execPath, TOOL, this.effectsFile, String(steps), String(everyMs)];
    const sent = this.client.submit(at, key, { kind: 'command', name, queue, spec: { argv } });
    sent.catch(() => undefined);
    this.#sent.push(sent);
  }

  /** Submits to the replicas in turn, until it is told to stop. */
  #stream() {
    let isOn = true;
    const flow = async () => {
      for (let i = 0; isOn && i < MOST_RUNS; i += 1) {
        this.#submit(['r1', 'r2', 'r3'][i % 3]);
        await pause(SUBMIT_EVERY_MS, undefined, { signal: this.signal });
      }
    };
    const flowing = flow();
    flowing.catch(() => undefined);
    return {
      stop: () => {
        isOn = false;
        return flowing;
      },
    };
  }

  /** Shows how things stand until `isSo`; answers with what that found. */
  #watch(what, isSo) {
    return until(
      what,
      async () => {
        const look = await this.client.look();
        draw(this, look);
        return isSo(look);
      },
      { signal: this.signal },
    );
  }
}

/** A report that began there a moment ago, so that what is done now meets it in the middle. */
function hasFreshRun(runs, name) {
  const isFresh = ({ startedAt }) => Date.now() - Date.parse(startedAt) < 1_200;
  return runs.some(
    (run) => run.state === 'running' && run.worker.name === name && run.queue === 'default' && isFresh(run),
  );
}
