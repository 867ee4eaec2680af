/**
 * The cgroups of one supervisor's tools: one for each, in a folder that names the supervisor.
 *
 * A process is born where its parent is. So the supervisor steps into the tool's cgroup, spawns, and steps back, all in
 * one turn: no instruction of the tool runs outside, and no program stands between that would change its environment.
 * Invariants: the supervisor never stays in a tool's cgroup, or the tool's end would be its own; whatever fails here
 * costs a tool its cgroup, never its start; a folder is removed, with all that lives in it, only when the process that
 * it names is surely dead.
 */
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Cgroup } from './cgroup.js';
import type { GroupsOnly } from './protocol.js';

/** Two seconds in all, for what dead supervisors left. */
const SWEEP_KILLS = 100;
const PROCESSES = 'cgroup.procs';
/** Written to PROCESSES of a cgroup, it moves this process there with all its threads. */
const SELF = '0';

/** The cgroup of a tool, as its supervisor and its replica both name it. */
export function toolCgroup(folder: string, key: number): Cgroup {
  return new Cgroup(join(folder, `t${key}`));
}

/** Which tools have no cgroup, and why. */
export type OnGroupsOnly = (tools: GroupsOnly, why: string) => void;

export class ToolCgroups {
  readonly folder: string;
  /** Open from the start, because there may be no free descriptor when we have to step back. */
  readonly #wayBack: number;
  readonly #onGroupsOnly: OnGroupsOnly;
  #isLost = false;
  /** Told once for all in a row: what keeps one out is likely to keep out the next. */
  #isOneTold = false;

  private constructor(folder: string, wayBack: number, onGroupsOnly: OnGroupsOnly) {
    this.folder = folder;
    this.#wayBack = wayBack;
    this.#onGroupsOnly = onGroupsOnly;
  }

  /** Those below `base`, the cgroup of this process; null, and told, when it can have none. */
  static open(base: string, onGroupsOnly: OnGroupsOnly): ToolCgroups | null {
    const folder = join(base, ownName());
    const tried = join(folder, 't0');
    let wayBack: number | null = null;
    try {
      mkdirSync(folder);
      wayBack = openSync(join(base, PROCESSES), constants.O_WRONLY);
      // Who may make one may still not be allowed to enter it, or to come back.
      mkdirSync(tried);
      enter(tried);
      writeSync(wayBack, SELF);
      rmdirSync(tried);
      return new ToolCgroups(folder, wayBack, onGroupsOnly);
    } catch (error) {
      onGroupsOnly('all', `none can be had below ${base}: ${messageOf(error)}`);
      if (wayBack !== null) closeSync(wayBack);
      for (const path of [tried, folder]) removeNow(path);
      return null;
    }
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
    closeSync(this.#wayBack);
    removeNow(this.folder);
  }

  /** Null: this tool has none; the next one may. */
  #stepInto(cgroup: Cgroup): Cgroup | null {
    try {
      mkdirSync(cgroup.path);
      enter(cgroup.path);
      this.#isOneTold = false;
      return cgroup;
    } catch (error) {
      removeNow(cgroup.path);
      if (!this.#isOneTold) this.#onGroupsOnly('one', `it cannot be put into one: ${messageOf(error)}`);
      this.#isOneTold = true;
      return null;
    }
  }

  /** False: we are still in the tool's, which must then never be killed, and no further one is entered. */
  #stepBack(): boolean {
    try {
      writeSync(this.#wayBack, SELF);
      return true;
    } catch (error) {
      this.#isLost = true;
      this.#onGroupsOnly('later', `that of a tool cannot be left: ${messageOf(error)}`);
      return false;
    }
  }
}

/** Kills and removes what dead supervisors left below `base`; answers with the folders in which something lives on. */
export async function removeCgroupsOfDead(base: string): Promise<string[]> {
  const names = await readdir(base).catch(() => []);
  const dead = names.filter(isOfDead).map((name) => new Cgroup(join(base, name)));
  const stubborn = await Promise.all(
    dead.map(async (cgroup) => {
      if (!(await cgroup.empty(SWEEP_KILLS))) return [cgroup.path];
      await cgroup.remove();
      return [];
    }),
  );
  return stubborn.flat();
}

/** Kills all in one whose supervisor is known to be dead, until nothing is left; the folders go later. */
export async function emptyCgroupFolder(folder: string): Promise<void> {
  const cgroup = new Cgroup(folder);
  await cgroup.empty();
  void cgroup.remove();
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
  // Under hidepid /proc shows nothing of other users' processes.
  if (life === null) return isUnknown(Number(pid));
  return life.start !== start || life.state === 'Z' || life.state === 'X';
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

function isUnknown(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}

function enter(cgroup: string): void {
  writeFileSync(join(cgroup, PROCESSES), SELF, { flag: 'r+' });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function removeNow(cgroup: string): void {
  try {
    rmdirSync(cgroup);
  } catch {
    // Not there, or not empty: it is removed when this process is dead.
  }
}
