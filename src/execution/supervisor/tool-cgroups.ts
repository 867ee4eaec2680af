/**
 * The cgroups of one supervisor's tools: one for each, in a folder that names the supervisor.
 *
 * A process is born where its parent is. So the supervisor steps into the tool's cgroup, spawns, and steps back, all in
 * one turn: no instruction of the tool runs outside, and no program stands between that would change its environment.
 * Invariants: the supervisor never stays in a tool's cgroup, or the tool's end would be its own; whatever fails here
 * costs a tool its cgroup, never its start; a folder is removed, with all that lives in it, only when the process that
 * it names is surely dead.
 */
import { mkdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from 'node:fs';
import { readdir, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Cgroup } from './cgroup.js';

/** The cgroup of a tool, as its supervisor and its replica both name it. */
export function toolCgroup(folder: string, key: number): Cgroup {
  return new Cgroup(join(folder, `t${key}`));
}

export class ToolCgroups {
  readonly folder: string;
  readonly #onLost: (why: string) => void;
  #isLost = false;

  private constructor(folder: string, onLost: (why: string) => void) {
    this.folder = folder;
    this.#onLost = onLost;
  }

  /** Those below `base`, the cgroup of this process; null when it can have none. `onLost` is called at most once. */
  static open(base: string, onLost: (why: string) => void): ToolCgroups | null {
    const own = new ToolCgroups(join(base, ownName()), onLost);
    try {
      mkdirSync(own.folder);
    } catch (error) {
      own.#lose(`none can be made below ${base}`, error);
      return null;
    }
    // Who may make one may still not be allowed to enter it.
    const [, tried] = own.spawnIn(0, () => undefined);
    if (tried !== null) removeNow(tried.path);
    else own.close();
    return tried === null ? null : own;
  }

  /** Calls `spawn`, which is done when it returns; answers with the cgroup in which that was, null when in none. */
  spawnIn<T>(key: number, spawn: () => T): readonly [T, Cgroup | null] {
    const cgroup = this.#isLost ? null : this.#stepInto(toolCgroup(this.folder, key));
    if (cgroup === null) return [spawn(), null];
    try {
      const spawned = spawn();
      return [spawned, this.#stepBack() ? cgroup : null];
    } catch (error) {
      if (this.#stepBack()) void cgroup.remove();
      throw error;
    }
  }

  /** Nothing is started afterwards. */
  close(): void {
    removeNow(this.folder);
  }

  #stepInto(cgroup: Cgroup): Cgroup | null {
    try {
      mkdirSync(cgroup.path);
      enter(cgroup.path);
      return cgroup;
    } catch (error) {
      removeNow(cgroup.path);
      this.#lose('a tool cannot be put into one', error);
      return null;
    }
  }

  /** False: we are still in the tool's, which must then never be killed, and no further one is entered. */
  #stepBack(): boolean {
    try {
      enter(dirname(this.folder));
      return true;
    } catch (error) {
      this.#lose('that of a tool cannot be left', error);
      return false;
    }
  }

  #lose(what: string, error: unknown): void {
    if (!this.#isLost) this.#onLost(`${what}: ${error instanceof Error ? error.message : String(error)}`);
    this.#isLost = true;
  }
}

/** Kills and removes what dead supervisors left below `base`; resolves also when something could not be. */
export async function removeCgroupsOfDead(base: string): Promise<void> {
  const names = await readdir(base).catch(() => []);
  await Promise.all(names.filter(isOfDead).map((name) => removeCgroupFolder(join(base, name))));
}

/** The same for one whose supervisor is known to be dead. */
export async function removeCgroupFolder(folder: string): Promise<void> {
  const tools = await new Cgroup(folder).children();
  await Promise.all(tools.map((name) => new Cgroup(join(folder, name)).destroy()));
  await rmdir(folder).catch(() => undefined);
}

/** Namespace, number and start of a process: no other has ever had all three since the machine was started. */
const NAME = /^capstan-(\d+)-(\d+)-(\d+)$/;

function ownName(): string {
  // Not process.pid: what counts is the number by which /proc knows this process.
  const pid = readlinkSync('/proc/self');
  return `capstan-${namespaceOfPids()}-${pid}-${lifeOf(pid)?.start}`;
}

/** One of another namespace can't be seen from here, so it is never said to be dead. */
function isOfDead(name: string): boolean {
  const [, namespace, pid = '', start] = NAME.exec(name) ?? [];
  if (start === undefined || namespace !== namespaceOfPids() || lifeOf('self') === null) return false;
  const life = lifeOf(pid);
  return life === null || life.start !== start || life.state === 'Z' || life.state === 'X';
}

function namespaceOfPids(): string {
  return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '');
}

/** State and start (in ticks since the machine was started), null when there is no such process. */
function lifeOf(pid: string): { readonly state: string | undefined; readonly start: string | undefined } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0], start: fields[19] };
  } catch {
    return null;
  }
}

/** Moves this process, with all its threads. */
function enter(cgroup: string): void {
  writeFileSync(join(cgroup, 'cgroup.procs'), '0', { flag: 'r+' });
}

function removeNow(cgroup: string): void {
  try {
    rmdirSync(cgroup);
  } catch {
    // Not there, or not empty: it is removed when this process is dead.
  }
}
