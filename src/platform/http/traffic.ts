/**
 * Whether requests are let in, and who is still to be answered: the edge over the life of a process. While it starts
 * and stops, `/healthz` and `/readyz` answer all the same, since they are how a balancer learns of it.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Problem } from '../../kernel/problems.js';

/** They need no database, and must never wait for one. */
const ALWAYS_OPEN: ReadonlySet<string | undefined> = new Set(['/healthz', '/readyz']);
const RETRY_AFTER_SECONDS = 1;
/** Whoever only reads slowly may go on for this long when the application closes; he would for ever. */
const LAST_ANSWERS_MS = 1_500;
const LOOK_EVERY_MS = 50;
/** For the next request on a connection that is kept. */
const ON_ITS_WAY_MS = 250;

export class Traffic {
  phase: 'starting' | 'serving' | 'stopping' = 'serving';
  private readonly answers = new Set<ServerResponse>();
  /** Connections without a request so far. */
  private readonly fresh = new Set<Socket>();
  private stoppingAtMs: number | undefined;
  private answerUntilMs = Number.NEGATIVE_INFINITY;

  /** When stopping began, on `performance.now()`. */
  get stoppingSinceMs(): number | undefined {
    return this.stoppingAtMs;
  }

  /** From now on a balancer is to send nothing more. What comes and what is being worked on has `answerMs`. */
  noteStopping(answerMs: number, force: AbortSignal): void {
    if (this.phase === 'starting') return;
    this.phase = 'stopping';
    this.stoppingAtMs = performance.now();
    this.answerUntilMs = this.stoppingAtMs + answerMs;
    force.addEventListener('abort', () => {
      this.answerUntilMs = Number.NEGATIVE_INFINITY;
    });
  }

  /** Counts a request in until its answer is out. The reason why it is not let in, if there is one. */
  enter(route: string | undefined, answer: ServerResponse): Problem | undefined {
    this.answers.add(answer);
    if (answer.socket) this.fresh.delete(answer.socket);
    answer.once('close', () => this.answers.delete(answer));
    if (this.phase !== 'starting' || ALWAYS_OPEN.has(route)) return undefined;
    const detail = 'this replica is starting: send the request again, or to another';
    return new Problem('unavailable', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  }

  /** A connection was accepted: its first request is on its way. */
  expect(connection: Socket): void {
    this.fresh.add(connection);
    connection.once('close', () => this.fresh.delete(connection));
  }

  /**
   * Once nobody listens any more: ends connections that nobody waits for, until the returned function is called.
   * `onIdleEnded` is called when those without a request were.
   */
  wane(connections: Connections, onIdleEnded: () => void): () => void {
    const closedAtMs = performance.now();
    let isEnding = false;
    const timer = setInterval(() => {
      const now = performance.now();
      const isLate = now >= closedAtMs + LAST_ANSWERS_MS;
      const isTime = isLate || (this.fresh.size === 0 && now >= closedAtMs + ON_ITS_WAY_MS);
      if (!isEnding && !isTime) return;
      connections.closeIdleConnections();
      if (!isEnding) onIdleEnded();
      isEnding = true;
      if (!isLate) return;
      if (now >= this.answerUntilMs) connections.closeAllConnections();
      for (const answer of this.answers) if (answer.headersSent) answer.destroy();
    }, LOOK_EVERY_MS);
    return () => {
      clearInterval(timer);
      // Nobody was connected.
      if (!isEnding) onIdleEnded();
    };
  }
}

interface Connections {
  closeIdleConnections(): void;
  closeAllConnections(): void;
}
