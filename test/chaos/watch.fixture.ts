/**
 * Looks at the replicas of a stage all the time, as a balancer and an orchestrator do, and remembers each change of what
 * `/healthz` and `/readyz` said, and whether a process ended.
 */
import type { Member } from './stage.fixture.js';

type Probe = 'healthz' | 'readyz';

/** From `atMs` of this machine's clock on the probe was answered so; 0 for no answer in time. */
export interface Change {
  readonly member: string;
  readonly probe: Probe;
  readonly status: number;
  readonly atMs: number;
}

/** How one replica's readiness went through a fault, in ms: after the fault began, after it was over. */
export interface ReadinessTimes {
  readonly member: string;
  /** `undefined`: it never said that it isn't ready. */
  readonly notReadyAfterMs: number | undefined;
  /** `undefined`: it isn't ready yet, or always was. */
  readonly readyAfterMs: number | undefined;
}

export class Watch {
  readonly changes: Change[] = [];
  private isOver = false;
  private readonly probing: Promise<unknown>;

  private constructor(
    private readonly members: readonly Member[],
    private readonly everyMs: number,
    private readonly answerWithinMs: number,
  ) {
    const probes = members.flatMap((member) => [this.probe(member, 'healthz'), this.probe(member, 'readyz')]);
    this.probing = Promise.all(probes);
  }

  static over(members: readonly Member[], { everyMs = 100, answerWithinMs = 2_500 } = {}): Watch {
    return new Watch(members, everyMs, answerWithinMs);
  }

  /** What an orchestrator would have restarted, or found restarted. Empty when all is well. */
  faults(): string[] {
    const ended = this.members.filter(({ server: { child } }) => child.exitCode !== null || child.signalCode !== null);
    const sick = this.changes.filter(({ probe, status }) => probe === 'healthz' && status !== 200);
    return [
      ...ended.map(({ name }) => `${name} ended`),
      ...sick.map(({ member, status }) => `${member} answered /healthz with ${status}`),
    ];
  }

  isReady(name: string): boolean {
    return this.statusAt(name, Date.now()) === 200;
  }

  allReady(): boolean {
    return this.members.every(({ name }) => this.isReady(name));
  }

  /** How readiness went through a fault that lasted from `beganAtMs` to `overAtMs`. */
  timesOf(beganAtMs: number, overAtMs: number): ReadinessTimes[] {
    return this.members.map(({ name }) => {
      const since = this.changes.filter(
        ({ member, probe, atMs }) => member === name && probe === 'readyz' && atMs >= beganAtMs,
      );
      const down = since.find(({ status }) => status !== 200);
      const last = since.at(-1);
      return {
        member: name,
        notReadyAfterMs: down && down.atMs - beganAtMs,
        readyAfterMs: down && last?.status === 200 ? Math.max(0, last.atMs - overAtMs) : undefined,
      };
    });
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.probing;
  }

  private statusAt(name: string, atMs: number): number | undefined {
    return this.changes.filter((each) => each.member === name && each.probe === 'readyz' && each.atMs <= atMs).at(-1)
      ?.status;
  }

  private async probe(member: Member, probe: Probe): Promise<void> {
    let last: number | undefined;
    while (!this.isOver) {
      const status = await fetch(`${member.url}/${probe}`, { signal: AbortSignal.timeout(this.answerWithinMs) }).then(
        async (answer) => {
          await answer.arrayBuffer();
          return answer.status;
        },
        () => 0,
      );
      if (this.isOver) return;
      if (status !== last) this.changes.push({ member: member.name, probe, status, atMs: Date.now() });
      last = status;
      await new Promise((resolve) => setTimeout(resolve, this.everyMs));
    }
  }
}
