/**
 * What this process has learned of the room for connections on its server; all its pools share one. Once a connection
 * was refused for want of room, no pool keeps one that it isn't using, so that a fleet which is larger than its server
 * takes turns. The lease comes first: while its keeper is refused, no pool opens a connection at all.
 */

/** For so long after a refusal nothing is kept idle. */
const SHORT_FOR_MS = 30_000;
/** The keeper tries again within a second. */
const KEEPER_FIRST_MS = 1_500;
/** Between a refusal and the next try in its place: while it is turned away, each takes a connection from others. */
const REST_MS = 1_000;

/** Not even tried: the connection that may be free is the lease keeper's. */
class NoRoom extends Error {
  override readonly name = 'NoRoom';
  readonly code = '53300';
}

export class Room {
  private shortUntilMs = Number.NEGATIVE_INFINITY;
  private keepersUntilMs = Number.NEGATIVE_INFINITY;
  private readonly holders: (() => void)[] = [];

  /** No connection should be kept that isn't used. */
  get isShort(): boolean {
    return performance.now() < this.shortUntilMs;
  }

  /** Throws while a connection that becomes free is for the lease keeper. */
  enter(): void {
    if (performance.now() < this.keepersUntilMs) throw new NoRoom('the next free connection is for the lease');
  }

  /** `giveBack` closes the connections that aren't used, or will when they no longer are. */
  onShort(giveBack: () => void): void {
    this.holders.push(giveBack);
  }

  /** A pool was refused a connection. Returns how long whoever tried rests. */
  noteRefused(): number {
    const isNews = !this.isShort;
    this.shortUntilMs = performance.now() + SHORT_FOR_MS;
    if (isNews) this.giveBack();
    return REST_MS * (0.5 + Math.random());
  }

  /** The lease keeper was refused one. */
  noteKeeperRefused(): void {
    this.keepersUntilMs = performance.now() + KEEPER_FIRST_MS;
    this.shortUntilMs = performance.now() + SHORT_FOR_MS;
    this.giveBack();
  }

  private giveBack(): void {
    for (const giveBack of this.holders) giveBack();
  }
}
