/** Who calls: what they asked for, through which replica, and what they were answered, which has to hold for ever. */
import { encodeId, newId } from '../../src/kernel/ids.js';
import { digestOf } from '../../src/kernel/json.js';
import { Problem } from '../../src/kernel/problems.js';
import { isTransient } from '../../src/platform/db/db.js';
import type { RequestCaller } from '../../src/platform/http/caller.js';
import type { SubmitRequest } from '../../src/runs/submits.js';
import { LAWS } from './laws.js';
import type { RunLook } from './look.js';
import type { SimulatedProcess } from './process.js';
import type { World } from './world.js';

export interface Asked {
  readonly caller: RequestCaller;
  readonly request: SubmitRequest;
  /** The ended run that is to be done again. */
  readonly rerunOf: string | null;
  /** Ids that the answers named. */
  readonly answers: Set<string>;
}

/** What a request can be told in any order of events. */
const EXPECTED: readonly string[] = [
  'run_ended',
  'run_not_ended',
  'idempotency_key_reused',
  'id_conflict',
  'not_found',
  'unavailable',
  'overloaded',
  'worker_ended',
  'worker_stopping',
];

export class Callers {
  readonly asked: Asked[] = [];
  readonly receipts = new Set<string>();
  private readonly canceled = new Set<string>();
  /** Whom somebody waits for. */
  private readonly waitsFor: SimulatedProcess[] = [];

  constructor(
    private readonly world: World,
    readonly organizations: readonly string[],
  ) {}

  callerOf(organization: number): RequestCaller {
    const organizationId = this.organizations[organization % this.organizations.length] ?? '';
    const principal = { type: 'token', id: encodeId('tok', organizationId), name: `caller ${organization}` } as const;
    return { organizationId, chain: encodeId('org', organizationId), principal, isInstallationAdmin: true };
  }

  submit(via: SimulatedProcess, caller: RequestCaller, request: SubmitRequest): void {
    this.send(via, { caller, request, rerunOf: null, answers: new Set() });
  }

  rerun(via: SimulatedProcess, run: RunLook, key: string | null): void {
    const caller = this.callerOf(this.organizations.indexOf(run.organization));
    const request = requestOf({ key, requestDigest: digestOf({ rerun: run.id }) });
    this.send(via, { caller, request, rerunOf: run.id, answers: new Set() });
  }

  /** The same request once more: a caller who got no answer, or who wants to be sure. */
  resend(via: SimulatedProcess, asked: Asked): void {
    const { caller, request, rerunOf, answers } = asked;
    const answer = rerunOf === null ? via.runs.submit(caller, request) : via.runs.rerun(caller, rerunOf, request);
    const name = rerunOf === null ? 'submit' : 'rerun';
    this.listen(via, name, answer, ({ run, receipt }) => {
      answers.add(run.id);
      if (receipt) this.receipts.add(receipt);
      if (answers.size > 1 && (request.key !== null || request.id !== undefined)) {
        this.world.break(LAWS.kept, `one request was answered with the runs ${[...answers].join(' and ')}`);
      }
    });
  }

  cancel(via: SimulatedProcess, run: RunLook): void {
    const caller = this.callerOf(this.organizations.indexOf(run.organization));
    this.listen(via, 'cancel', via.runs.cancel(caller, run.id), ({ stopping, receipt }) => {
      if (!stopping) this.canceled.add(run.id);
      if (receipt) this.receipts.add(receipt);
    });
  }

  service(via: SimulatedProcess, worker: string, to: 'drain' | 'undrain'): void {
    this.listen(via, to, via.workers[to](this.callerOf(0), worker), ({ receipt }) => {
      if (receipt) this.receipts.add(receipt);
    });
  }

  /** Whether somebody will be answered yet: who asked a process that is dead won't. */
  get isWaiting(): boolean {
    return this.waitsFor.some(({ isUp }) => isUp);
  }

  /** The first answer that doesn't hold. */
  unkept(runs: readonly RunLook[]): string | undefined {
    const byId = new Map(runs.map((run) => [run.id, run]));
    const keys = new Map<string, string>();
    for (const { caller, request, answers } of this.asked) {
      for (const id of answers) {
        if (byId.get(id)?.organization !== caller.organizationId) return `run ${id} was answered, and is not there`;
        const key = request.key === null ? undefined : `${caller.organizationId} ${request.key}`;
        if (key !== undefined && (keys.get(key) ?? id) !== id) return `the key ${key} made two runs`;
        if (key !== undefined) keys.set(key, id);
      }
    }
    for (const id of this.canceled) {
      if (byId.get(id)?.ended !== 'canceled') return `run ${id} was said to be canceled`;
    }
    return undefined;
  }

  private send(via: SimulatedProcess, asked: Asked): void {
    this.asked.push(asked);
    this.resend(via, asked);
  }

  private listen<T>(via: SimulatedProcess, name: string, answer: Promise<T>, take: (answer: T) => void): void {
    this.waitsFor.push(via);
    answer
      .finally(() => this.waitsFor.splice(this.waitsFor.indexOf(via), 1))
      .then(
        (value) => {
          this.world.tell(() => `    ${name} is answered`);
          take(value);
        },
        (error: unknown) => {
          this.world.tell(() => `    ${name} is refused: ${String(error)}`);
          const isExpected = error instanceof Problem ? EXPECTED.includes(error.code) : isTransient(error);
          if (!isExpected)
            this.world.break('every refusal is one that callers are told of', `${name}: ${String(error)}`);
        },
      );
  }
}

/** A submit with everything that isn't told. Without an id or a key of the caller's, a retry makes another run. */
export function requestOf(over: Partial<SubmitRequest>): SubmitRequest {
  return {
    id: undefined,
    kind: 'command',
    name: null,
    queue: 'default',
    priority: 0,
    labels: {},
    spec: { argv: ['tool'] },
    timeoutMs: null,
    notBefore: null,
    traceparent: null,
    key: null,
    requestDigest: digestOf({ request: newId() }),
    ...over,
  };
}
