/** What a balancer is told by a real process. */
import { expect } from 'vitest';
import { until } from '../server.js';

export interface Said {
  readonly status: number;
  readonly checks: Readonly<Record<string, string>>;
}

export async function readiness({ url }: { readonly url: string }): Promise<Said> {
  const answer = await fetch(`${url}/readyz`);
  const { checks } = (await answer.json()) as Said;
  return { status: answer.status, checks };
}

/** How long it takes until `/readyz` says so. */
export async function tookUntil(server: { readonly url: string }, status: number, withinMs: number): Promise<Said> {
  const begunAt = performance.now();
  const said = await until(`/readyz is ${status}`, async () => {
    const now = await readiness(server);
    return now.status === status ? now : undefined;
  });
  expect(performance.now() - begunAt).toBeLessThan(withinMs);
  return said;
}
