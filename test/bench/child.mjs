/** A process of the bench's own that does what it is asked over Node's channel: a load generator, or a peer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const READY_WITHIN_MS = 60_000;
const STOPS_WITHIN_MS = 3_000;

export class Child {
  #process;
  #calls = new Map();
  #last = 0;
  #errors = '';
  #handled = 0;

  /** Resolves when it is ready. Addresses with passwords go by `env`, never by arguments. */
  static async start(node, file, env, register) {
    const { PATH = '', LANG = 'C.UTF-8' } = process.env;
    const child = new Child(
      spawn(node, [file], {
        env: { PATH, LANG, NODE_ENV: 'production', ...env },
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        // A Ctrl-C at the terminal is ours alone.
        detached: true,
      }),
    );
    register(child);
    await child.#ready;
    return child;
  }

  #ready;

  constructor(process) {
    this.#process = process;
    process.stderr.on('data', (data) => {
      this.#errors = (this.#errors + data).slice(-4_000);
    });
    this.#ready = new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`a process of the bench is too slow ${this.#errors}`)),
        READY_WITHIN_MS,
      );
      process.once('exit', () => clearTimeout(timer));
      process.on('message', (message) => {
        clearTimeout(timer);
        this.#take(message, resolve);
      });
      process.once('error', reject);
      process.once('exit', (code, signal) => {
        const error = new Error(`a process of the bench ended (${code ?? signal}) ${this.#errors}`);
        reject(error);
        for (const call of this.#calls.values()) call.reject(error);
        this.#calls.clear();
      });
    });
  }

  #take({ id, ready, handled, result, error }, isReady) {
    if (ready) return isReady();
    if (handled !== undefined) {
      this.#handled = handled;
      return;
    }
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error === undefined) call?.resolve(result);
    else call?.reject(new Error(`${error} ${this.#errors}`));
  }

  call(name, args = {}) {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      if (!this.#process.connected) return reject(new Error(`a process of the bench is gone ${this.#errors}`));
      this.#calls.set(id, { resolve, reject });
      this.#process.send({ id, name, args });
    });
  }

  /** How many jobs it said that it has handled since it began to work; throws when it is gone. */
  get handled() {
    if (!this.#process.connected) throw new Error(`a process of the bench is gone ${this.#errors}`);
    return this.#handled;
  }

  forgetHandled() {
    this.#handled = 0;
  }

  end() {
    return endProcess(this.#process);
  }
}

/** Asks, asks again (which stops at once), and kills. */
export async function endProcess(child) {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = once(child, 'exit');
  for (const signal of ['SIGTERM', 'SIGTERM', 'SIGKILL']) {
    child.kill(signal);
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, STOPS_WITHIN_MS);
    });
    await Promise.race([gone, late]);
    clearTimeout(timer);
    if (child.exitCode !== null || child.signalCode !== null) return;
  }
}
