/** Every route of the API, from the OpenAPI document that the surface itself hands out, and what holds for a problem. */
import { expect } from 'vitest';
import { PROBLEMS } from '../../../src/kernel/problems.js';
import { type Document, examplesOf, routesOf, type Schema } from '../../openapi-operations.js';
import { type Answer, type Surface, wasRefusedOnTheWay } from '../../send.js';

/** A UUID that nothing has. */
const NOBODY = '01890000-0000-7000-8000-000000000000';

export interface Route {
  readonly method: string;
  readonly template: string;
  /** With every parameter filled in by what nothing is named. */
  readonly path: string;
  readonly isOpen: boolean;
  /** Whether it takes one, and must. */
  readonly body: 'required' | 'none';
  readonly bodySchema: Schema;
  /** Bodies as they are documented. */
  readonly examples: readonly unknown[];
  readonly query: readonly { readonly name: string; readonly schema: Schema }[];
  readonly hasParameters: boolean;
  readonly entries: readonly string[];
}

export async function documentOf(surface: Surface): Promise<Document> {
  return (await surface.send({ path: '/openapi.json', token: null })).json;
}

export async function routesIn(surface: Surface): Promise<Route[]> {
  return routesOf(await documentOf(surface)).map(({ method, template, operation }) => {
    const media = operation.requestBody?.content['application/json'];
    return {
      method,
      template,
      path: template.replace('{name}', 'NOBODY').replace(/\{\w+\}/, NOBODY),
      isOpen: operation['x-permission'] === 'none',
      body: media ? 'required' : 'none',
      bodySchema: media?.schema ?? {},
      examples: media ? examplesOf(media).map(([, value]) => value) : [],
      query: operation.parameters.flatMap((parameter) => {
        const { name, schema = {} } = parameter as { name: string; schema?: Schema };
        return parameter.in === 'query' ? [{ name, schema }] : [];
      }),
      hasParameters: template.includes('{'),
      entries: operation['x-entry'] ?? [],
    };
  });
}

export type ForEachRoute = (
  choose: (route: Route) => boolean,
  send: (route: Route) => Promise<Answer>,
  check: (answer: Answer, name: string, route: Route) => void,
) => Promise<void>;

/** One request for each route that `choose` lets through, and what it was answered. */
export function eachOf(routes: readonly Route[]): ForEachRoute {
  return async (choose, send, check) => {
    const chosen = routes.filter(choose);
    expect(chosen.length).toBeGreaterThan(0);
    for (const route of chosen) check(await send(route), `${route.method} ${route.template}`, route);
  };
}

export function expectProblem(answer: Answer, name: string, status: number): void {
  // A balancer has no words of ours for a path that it takes for broken.
  if (wasRefusedOnTheWay(answer)) return;
  expect(answer.status, `${name}: ${answer.text.slice(0, 300)}`).toBe(status);
  expect(answer.headers['content-type'], name).toBe('application/problem+json; charset=utf-8');
  const problem = answer.json;
  const { title } = PROBLEMS[problem.code as keyof typeof PROBLEMS];
  expect(problem, name).toMatchObject({ status, title, type: `urn:capstan:problem:${problem.code}` });
  expect(problem.detail.length, name).toBeGreaterThan(0);
  expect(problem.requestId, name).toBe(answer.headers['x-request-id']);
  // Only where the same request may go better later.
  expect(answer.headers['retry-after'] !== undefined, `${name}: Retry-After`).toBe([429, 503].includes(status));
}
