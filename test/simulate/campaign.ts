/** Many histories on a few databases side by side; the first that breaks a law is shrunk and told. */
import fc from 'fast-check';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import { prepare } from './ground.js';
import { History, type HistoryEnd } from './history.js';
import { Lane } from './lane.js';
import { anyHistory, taken } from './patterns.js';
import type { Step } from './steps.js';
import type { Broken } from './world.js';

/** A database grows; then it is made anew. */
const HISTORIES_PER_DATABASE = 40;

export interface Server {
  /** As its superuser. */
  readonly adminUrl: string;
  /** A migrated database that may be cloned. */
  readonly template: string;
}

/** A history that breaks a law, as it is kept in a file. */
export interface Kept {
  readonly seed: number;
  /** Where fast-check's shrinking went. */
  readonly path: string;
  readonly replicas: number;
  readonly law: string;
  readonly steps: readonly Step[];
}

export interface Failure extends Kept {
  readonly fact: string;
  readonly trace: readonly string[];
}

export interface Tally {
  histories: number;
  steps: number;
}

export interface CampaignOptions {
  readonly seed: number;
  readonly replicas: number;
  /** Databases side by side. */
  readonly lanes: number;
  /** Asked before each history. */
  readonly isEnough: (tally: Tally) => boolean;
  readonly shrinkForMs: number;
}

/** Runs the histories of one seed after another, until it is enough or a law breaks. */
export async function campaign(
  server: Server,
  options: CampaignOptions,
): Promise<Tally & { readonly failure: Failure | undefined }> {
  const tally: Tally = { histories: 0, steps: 0 };
  let { seed } = options;
  let failure: Failure | undefined;
  const work = async () => {
    const arena = new Arena(server, options.replicas);
    try {
      while (failure === undefined && !options.isEnough(tally)) {
        const mine = seed;
        seed += 1;
        const found = await runSeed(arena, mine, options, (steps) => {
          tally.histories += 1;
          tally.steps += steps;
        });
        failure ??= found;
      }
    } finally {
      await arena.close();
    }
  };
  await Promise.all(Array.from({ length: options.lanes }, work));
  return { ...tally, failure };
}

/** A failure as a person reads it. */
export function report(failure: Failure): string {
  const { trace, fact, ...kept } = failure;
  return [
    `${kept.law}: ${fact}`,
    `seed ${kept.seed}, path ${kept.path}, ${kept.steps.length} steps:`,
    ...trace,
    'to keep it, put this into a file in test/simulate/seeds, with a date and a comment:',
    JSON.stringify(kept),
  ].join('\n');
}

const log = pino({ level: 'silent' });
/** Nobody reads them; made once, for each process would register its own. */
const metrics = new RunMetrics(new Registry());

/** One database after another, with one history at a time. */
export class Arena {
  private lane: Lane | undefined;
  private chain = '';
  private histories = 0;

  constructor(
    private readonly server: Server,
    private readonly replicas: number,
  ) {}

  async run(steps: readonly Step[], isTracing = false): Promise<HistoryEnd> {
    if (this.histories >= HISTORIES_PER_DATABASE) await this.close();
    const lane = this.lane ?? (await this.open());
    this.histories += 1;
    const parts = { lane, installationChain: this.chain, replicas: this.replicas, log, metrics, isTracing };
    const end = await History.run(parts, steps);
    // What a history leaves behind that was broken off would be the next one's.
    if (end.broken) await this.close();
    return end;
  }

  async close(): Promise<void> {
    const { lane } = this;
    this.lane = undefined;
    this.histories = 0;
    await lane?.close();
  }

  private async open(): Promise<Lane> {
    this.lane = await Lane.open(this.server.adminUrl, this.server.template);
    this.chain = await prepare(this.lane);
    return this.lane;
  }
}

/** Runs the history of a seed, and shrinks it when it breaks a law. `onSteps`: how many were taken. */
async function runSeed(
  arena: Arena,
  seed: number,
  { replicas, shrinkForMs }: Pick<CampaignOptions, 'replicas' | 'shrinkForMs'>,
  onSteps: (steps: number) => void,
): Promise<Failure | undefined> {
  let first: Broken | undefined;
  let untilMs = Number.POSITIVE_INFINITY;
  const property = fc.asyncProperty(anyHistory, async (history) => {
    // Too late: what is left is taken for sound, and shrinking ends.
    if (performance.now() > untilMs) return;
    const { broken, steps } = await arena.run(taken(history, replicas));
    if (first === undefined) onSteps(steps);
    if (!broken || (first && first.law !== broken.law)) return;
    if (first === undefined) untilMs = performance.now() + shrinkForMs / 2;
    first ??= broken;
    throw broken;
  });
  const found = await fc.check(property, { seed, numRuns: 1, unbiased: true });
  const history = found.counterexample?.[0];
  if (history === undefined || first === undefined) return undefined;
  const fewer = await withoutNeedless(arena, taken(history, replicas), first.law, performance.now() + shrinkForMs / 2);
  const { broken, trace } = await arena.run(fewer, true);
  const { law, fact } = broken ?? {
    law: first.law,
    fact: 'it did not break again: something here is not decided by the seed',
  };
  return { seed, path: found.counterexamplePath ?? '', replicas, law, fact, steps: fewer, trace };
}

/** What fast-check leaves, without the steps that the same law breaks without: many at a time, then one by one. */
async function withoutNeedless(
  arena: Arena,
  steps: readonly Step[],
  law: string,
  untilMs: number,
): Promise<readonly Step[]> {
  let left = steps;
  for (let size = Math.ceil(left.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = left.length - size; at > -size && performance.now() < untilMs; at -= size) {
      const from = Math.max(0, at);
      const fewer = [...left.slice(0, from), ...left.slice(at + size)];
      const { broken } = await arena.run(fewer);
      if (broken?.law === law) left = fewer;
    }
  }
  return left;
}
