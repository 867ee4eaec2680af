/**
 * Private folders, each made for one tool. One that its tool left untouched is another's next: making a folder and taking
 * it away, and looking for reports that nobody wrote, is what a short tool would cost most.
 * Invariants: a tool finds its folder as if it had just been made; one is used again only when nobody is left who could
 * have it open (its tool had a cgroup, and that is empty), nothing is in it, and nothing of it was ever changed, by the
 * times that the file system keeps of that. A folder is called untouched only when that is certain.
 */
import { type BigIntStats, lstatSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createFolder, removeTree } from './folder.js';
import type { PlanFile } from './plan.js';

/** After a burst no more than these stay. */
const KEPT = 64;
/**
 * A change shows in the times of a folder only in a later tick of the file system's clock than that of its making: 4 to
 * 10 ms with Linux's own, up to 2 s elsewhere.
 */
const TICK_MS = 2_500;

export class PrivateFolder {
  readonly path: string;
  readonly #made: BigIntStats | null;
  readonly #madeMs = performance.now();
  /** Before the use that is under way nothing had changed, and whatever changes now will show. */
  #isTold = false;
  #isUntouched = false;

  /** `made`: as it was made, with nothing in it; null for one that was made with files. */
  constructor(path: string, made: BigIntStats | null) {
    this.path = path;
    this.#made = made;
  }

  /** Call it before each use: whether it is still there as it was made. Nobody is at it, so that this is quick. */
  begin(): boolean {
    this.#isTold = performance.now() - this.#madeMs > TICK_MS;
    this.#isUntouched = false;
    return this.#isAsMade(lstatSync(this.path, { bigint: true, throwIfNoEntry: false }));
  }

  /** Whether the tool did certainly nothing to it or in it. False also when that can't be told. */
  async isUntouched(): Promise<boolean> {
    if (this.#isTold) this.#isUntouched = this.#isAsMade(await this.#look());
    return this.#isUntouched;
  }

  /** Whether it is as it was made, as far as can be told; once no process of the tool is left. */
  async isAsNew(): Promise<boolean> {
    if (this.#isUntouched) return true;
    if (!this.#isAsMade(await this.#look())) return false;
    return this.#isTold || (await readdir(this.path).catch(() => ['?'])).length === 0;
  }

  #look(): Promise<BigIntStats | undefined> {
    return this.#made === null ? Promise.resolve(undefined) : lstat(this.path, { bigint: true }).catch(() => undefined);
  }

  #isAsMade(now: BigIntStats | undefined): boolean {
    const made = this.#made;
    if (made === null || now === undefined) return false;
    return now.ctimeNs === made.ctimeNs && now.mtimeNs === made.mtimeNs && now.ino === made.ino;
  }
}

export class PrivateFolders {
  readonly #root: string;
  readonly #spare: PrivateFolder[] = [];
  #made = 0;

  constructor(root: string) {
    this.#root = root;
  }

  /** A folder (0700) with these files and nothing else. Rejects with what the file system says. */
  async take(files: readonly PlanFile[]): Promise<PrivateFolder> {
    const spare = files.length === 0 ? this.#spare.pop() : undefined;
    // Whoever tidies up the folder for temporary files may have taken it.
    if (spare?.begin()) return spare;
    this.#made += 1;
    const path = join(this.#root, `t${this.#made}`);
    try {
      await createFolder(path, files);
      return new PrivateFolder(path, files.length === 0 ? await lstat(path, { bigint: true }) : null);
    } catch (error) {
      await removeTree(path);
      throw error;
    }
  }

  /** Call it when no process of the tool is left. `isSurelyLeft`: nobody can have it open. */
  async giveBack(folder: PrivateFolder, isSurelyLeft: boolean): Promise<void> {
    if (isSurelyLeft && this.#spare.length < KEPT && (await folder.isAsNew())) this.#spare.push(folder);
    else await removeTree(folder.path);
  }
}
