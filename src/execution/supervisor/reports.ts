/**
 * What a tool reports in files: events, read as the file grows (source 3), and its output, read when the group is empty
 * (source 4). Only a regular file is ever read, through no link, and no more of it than its bound.
 * Invariant: whatever stands in the place of a file, a look is short and an end of reading comes; what could not be read
 * is told, once for each file.
 */
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { Growth } from './growth.rules.js';
import { READ_BYTES } from './output.js';
import { MAX_EVENTS_FILE_BYTES, MAX_OUTPUT_FILE_BYTES, type ReportSource, type UnreadReason } from './protocol.js';

const LOOK_EVERY_MS = 250;
/** A file system that does not answer for so long is not waited for. */
const SILENT_MS = 5_000;
const NEWLINE = 0x0a;

export interface ReportPaths {
  readonly events: string;
  readonly output: string;
}

export interface ReportPorts {
  /** The bytes are valid during the call only. */
  onBytes(source: ReportSource, bytes: Buffer): void;
  /** Not read, or not on from here. At most once for each file: what stands in its place may be there for long. */
  onUnread(source: ReportSource, reason: UnreadReason): void;
  /** Whether the tool has credit and the replica takes output; `resume` follows. */
  canRead(): boolean;
  /** Whether nothing was ever made in the folder of the files. */
  isFolderUntouched(): Promise<boolean>;
}

/** All that are looked at, by one timer. */
const watched = new Set<ReportFiles>();
let timer: NodeJS.Timeout | undefined;

function watch(files: ReportFiles): void {
  watched.add(files);
  timer ??= setInterval(() => {
    for (const each of watched) each.look();
  }, LOOK_EVERY_MS);
}

function unwatch(files: ReportFiles): void {
  watched.delete(files);
  if (watched.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

export class ReportFiles {
  readonly #paths: ReportPaths;
  readonly #ports: ReportPorts;
  /** Kept open, so that a file that was renamed is read to its end and its number is not another's meanwhile. */
  #events: FileHandle | null = null;
  readonly #growth = new Growth();
  #eventsBytes = 0;
  #isMidLine = false;
  readonly #told = new Set<ReportSource>();
  /** Those of which the end was not read yet. */
  readonly #unread = new Set<ReportSource>([3, 4]);
  #looking: Promise<void> | null = null;
  #isOver = false;
  #mayWait = true;
  #onRoom: (() => void) | null = null;
  #onOver: (() => void) | null = null;

  /** Looks until `readRest` or `giveUp`. */
  constructor(paths: ReportPaths, ports: ReportPorts) {
    this.#paths = paths;
    this.#ports = ports;
    watch(this);
  }

  /** Begins to read what came since the last look, unless that is under way. */
  look(): void {
    if (this.#looking !== null || this.#isOver) return;
    this.#looking = this.#readEvents(false)
      // What could not be read now may be read later; the last look tells.
      .catch(() => undefined)
      .finally(() => {
        this.#looking = null;
      });
  }

  /** Goes on after `canRead` was false. */
  resume(): void {
    const onRoom = this.#onRoom;
    this.#onRoom = null;
    onRoom?.();
  }

  /** The group is empty: resolves when what is left of both files was handed over, or was given up. Never rejects. */
  async readRest(): Promise<void> {
    unwatch(this);
    if (this.#isOver) return;
    const over = new Promise<void>((resolve) => {
      this.#onOver = resolve;
    });
    await Promise.race([this.#readAll(), over]);
    this.#end();
  }

  /** From now on nothing waits for credit: what cannot be read at once is cut. */
  hurry(): void {
    this.#mayWait = false;
    this.resume();
  }

  /** Nobody wants it any more: nothing is read from now on. */
  giveUp(): void {
    this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    unwatch(this);
    void this.#events?.close().catch(() => undefined);
    this.#events = null;
    this.resume();
    this.#onOver?.();
  }

  #fallSilent(): void {
    for (const source of this.#unread) this.#tell(source, 'cut');
    this.#end();
  }

  async #readAll(): Promise<void> {
    await this.#looking;
    if (this.#events === null && (await this.#answer(this.#ports.isFolderUntouched()))) return;
    await this.#readEvents(true).catch(() => this.#tell(3, 'unreadable'));
    this.#unread.delete(3);
    if (!this.#isOver) await this.#readOutput().catch(() => this.#tell(4, 'unreadable'));
  }

  /** What the file holds now, and the whole of one that took its place. */
  async #readEvents(isLast: boolean): Promise<void> {
    const found = await this.#find(this.#paths.events, 3);
    const before = this.#events;
    if (before !== null) {
      const held = await this.#answer(before.stat({ bigint: true }));
      const isInPlace = found !== null && isSame(found, held);
      if (this.#growth.isAnew(held, isLast || !isInPlace)) this.#beginAnew();
      await this.#readTo(before, held);
      if (isInPlace) return;
      void this.#events?.close().catch(() => undefined);
      this.#events = null;
      this.#beginAnew();
    }
    if (found === null || this.#isOver) return;
    const file = await this.#open(this.#paths.events, 3);
    if (file === null) return;
    this.#events = file;
    await this.#readTo(file, await this.#answer(file.stat({ bigint: true })));
  }

  #beginAnew(): void {
    this.#growth.beginAnew();
    // What comes now must not be taken for the rest of a line that was not finished.
    if (this.#isMidLine) this.#emit(3, Buffer.from([NEWLINE]));
  }

  async #readTo(file: FileHandle, state: BigIntStats): Promise<void> {
    const size = Number(state.size);
    while (this.#growth.offset < size && this.#eventsBytes <= MAX_EVENTS_FILE_BYTES) {
      const left = Math.min(size - this.#growth.offset, MAX_EVENTS_FILE_BYTES + 1 - this.#eventsBytes);
      const bytes = await this.#read(3, file, this.#growth.offset, left);
      if (bytes === null) return;
      this.#growth.advance(bytes.length, state);
      this.#eventsBytes += bytes.length;
      this.#emit(3, bytes);
    }
  }

  async #readOutput(): Promise<void> {
    if ((await this.#find(this.#paths.output, 4)) === null || this.#isOver) return;
    const file = await this.#open(this.#paths.output, 4);
    if (file === null) return;
    try {
      for (let offset = 0; offset <= MAX_OUTPUT_FILE_BYTES; ) {
        const bytes = await this.#read(4, file, offset, MAX_OUTPUT_FILE_BYTES + 1 - offset);
        if (bytes === null) return;
        offset += bytes.length;
        this.#emit(4, bytes);
      }
    } finally {
      void file.close().catch(() => undefined);
    }
  }

  /** The file at `path`; null when nothing is there, or nothing that may be read. A device is not even opened. */
  async #find(path: string, source: ReportSource): Promise<BigIntStats | null> {
    const info = await this.#answer(lstat(path, { bigint: true }).catch(absent));
    if (info === null || info.isFile()) return info;
    this.#tell(source, 'not_a_file');
    return null;
  }

  async #open(path: string, source: ReportSource): Promise<FileHandle | null> {
    // Between the look and this moment another thing may have taken its place: a pipe would block, a link lead anywhere.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
    const file = await this.#answer(open(path, flags).catch(absent));
    if (file === null) return null;
    const info = await this.#answer(file.stat().catch(() => null));
    if (info?.isFile() && !this.#isOver) return file;
    void file.close().catch(() => undefined);
    this.#tell(source, info === null ? 'unreadable' : 'not_a_file');
    return null;
  }

  /** Up to one read's worth, once there is room for it; null at the end of the file, when it is cut and when all is over. */
  async #read(source: ReportSource, file: FileHandle, offset: number, limit: number): Promise<Buffer | null> {
    while (!this.#isOver && !this.#ports.canRead()) {
      if (!this.#mayWait) {
        this.#tell(source, 'cut');
        return null;
      }
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve;
      });
    }
    if (this.#isOver) return null;
    const space = Buffer.allocUnsafe(Math.min(READ_BYTES, limit));
    const { bytesRead } = await this.#answer(file.read(space, 0, space.length, offset));
    return bytesRead === 0 || this.#isOver ? null : space.subarray(0, bytesRead);
  }

  /** What the file system says, unless it says nothing for too long: then it is all over. */
  async #answer<T>(asked: Promise<T>): Promise<T> {
    let isAnswered = false;
    // After a stall timers come before answers: one that is there gets its turn of the loop first.
    const silence = setTimeout(() => setImmediate(() => (isAnswered ? undefined : this.#fallSilent())), SILENT_MS);
    try {
      return await asked;
    } finally {
      isAnswered = true;
      clearTimeout(silence);
    }
  }

  #emit(source: ReportSource, bytes: Buffer): void {
    if (this.#isOver) return;
    if (source === 3) this.#isMidLine = bytes[bytes.length - 1] !== NEWLINE;
    this.#ports.onBytes(source, bytes);
  }

  #tell(source: ReportSource, reason: UnreadReason): void {
    if (this.#isOver || this.#told.has(source)) return;
    this.#told.add(source);
    this.#ports.onUnread(source, reason);
  }
}

function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.ino === b.ino && a.dev === b.dev;
}

/** Nothing there is no error, nor is a link, of which the next look tells. */
function absent(error: unknown): null {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return null;
  throw error;
}
