/**
 * Well- and ill-formed requests at every route that a server's own document names, many at once. A server and a database
 * of its own: what is asked may pause queues, drain workers, cancel and rerun everything, and replace the signing key.
 * `CAPSTAN_FUZZ_RUNS` asks for more of them, `CAPSTAN_FUZZ_SEED` for the same again.
 */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { expectLaws } from '../doctor/laws.fixture.js';
import { type ServerProcess, startServer, until } from '../server.js';
import { makeThings, type OpenApi, type Operation, operationsOf, requestOf, SERVED, type Things } from './document.js';
import { rawBytes } from './raw.js';
import { type Attempt, attemptsAt } from './requests.js';
import { Verdict } from './verdict.js';
import { answersIn, curlOf, exchange, send, type WireRequest } from './wire.js';

const RUNS = Number(process.env.CAPSTAN_FUZZ_RUNS ?? 120);
const GIVEN_SEED = process.env.CAPSTAN_FUZZ_SEED;
const FIXED_SEED = 20_261_201;
const MINUTES = 60_000;
/** For how long a request that was answered wrongly is made smaller. */
const SHRINK_MS = 5_000;
/** For each route, with time for a machine that has other things to do. */
const LIMIT_MS = 2 * MINUTES + RUNS * 1_000;
/** Levels of what somebody has to look at: there is to be none of it. */
const SERIOUS = ['error', 'fatal'];

const token = `cap_${newId()}`;
let db: TestDatabase;
let server: ServerProcess;
let port: number;
let document: OpenApi;
let operations: Operation[];
let things: Things;
let verdict: Verdict;
const seen = new Map<string, Set<number>>();

beforeAll(async () => {
  db = await createDatabase();
  server = await startServer({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: token,
    CAPSTAN_AUDIT_KEY: randomBytes(32).toString('base64'),
    CAPSTAN_QUEUES: SERVED,
  });
  port = Number(new URL(server.url).port);
  document = JSON.parse(String((await send(port, requestOf(token, 'GET', '/openapi.json'))).body)) as OpenApi;
  operations = operationsOf(document);
  things = await makeThings(port, token, operations);
  verdict = new Verdict(document, token);
}, MINUTES);

afterAll(async () => {
  server?.child.kill('SIGKILL');
  await server?.finished;
  await db?.drop();
});

/** Whether a request is for the operation as it stands, however its target is written. */
function isFor({ method, template }: Operation, { method: asked, target }: WireRequest): boolean {
  const pattern = new RegExp(`^${template.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`);
  const path = target.replace(/^https?:\/\/[^/]*/, '').replace(/[?#][\s\S]*$/, '');
  return method === asked && pattern.test(path.replaceAll('%72', 'r'));
}

async function judge(operation: Operation, { request }: Attempt): Promise<void> {
  const answer = await send(port, request);
  const named = operations.filter((one) => isFor(one, request));
  const own = named.find(({ template }) => !template.includes('{')) ?? named[0];
  if (own === operation) seen.set(operation.id, (seen.get(operation.id) ?? new Set()).add(answer.status));
  const faults = verdict.faultsOf(own, request, answer);
  if (faults.length > 0) throw new Error(`${answer.status}: ${faults.join('\n')}`);
}

interface Storm {
  readonly seed: number;
  readonly runs: number;
}

/** What went wrong at one operation, with the smallest request that does it; undefined when nothing did. */
async function attack(operation: Operation, { seed, runs }: Storm): Promise<string | undefined> {
  let shrinkUntil = Number.POSITIVE_INFINITY;
  const property = fc.asyncProperty(attemptsAt(operation, { document, things, token }), async (attempt) => {
    if (Date.now() > shrinkUntil) return;
    await judge(operation, attempt).catch((error: unknown) => {
      shrinkUntil = Math.min(shrinkUntil, Date.now() + SHRINK_MS);
      throw error;
    });
  });
  const { counterexample, errorInstance } = await fc.check(property, { seed, numRuns: runs });
  const [smallest] = counterexample ?? [];
  if (!smallest) return undefined;
  return `${operation.method} ${operation.template}: ${errorInstance}\n  ${curlOf(server.url, smallest.request)}`;
}

/** Last: once the key was replaced no bundle is signed by this server. */
const isLast = ({ method, template }: Operation) => method === 'POST' && template === '/v1/audit/key';

async function storm(how: Storm): Promise<void> {
  const together = operations.filter((operation) => !isLast(operation));
  const found = await Promise.all(together.map((operation) => attack(operation, how)));
  for (const operation of operations.filter(isLast)) found.push(await attack(operation, how));
  const told = found.filter((one) => one !== undefined);
  const again = `CAPSTAN_FUZZ_SEED=${how.seed} CAPSTAN_FUZZ_RUNS=${how.runs} npx vitest run test/fuzz`;
  if (told.length > 0) throw new Error([`${told.length} routes; again: ${again}`, ...told].join('\n\n'));
}

it(
  'whatever is sent to a route, the answer is as documented: the same requests each time',
  () => storm({ seed: FIXED_SEED, runs: 40 }),
  LIMIT_MS,
);

it(
  'whatever is sent to a route, the answer is as documented: other requests each time',
  async () => {
    const seed = GIVEN_SEED === undefined ? Date.now() % 2 ** 31 : Number(GIVEN_SEED);
    console.info(`fuzz: seed ${seed}, ${RUNS} requests for each of ${operations.length} routes`);
    await storm({ seed, runs: RUNS });
  },
  LIMIT_MS,
);

it('every route was carried out, and refused something', () => {
  const rarely = operations.filter(({ id }) => {
    const statuses = [...(seen.get(id) ?? [])];
    return !statuses.some((status) => status < 300) || !statuses.some((status) => status >= 400);
  });
  expect(rarely.map(({ id }) => `${id}: ${[...(seen.get(id) ?? [])]}`)).toEqual([]);
});

it(
  'bytes that are hardly HTTP are answered with problems, or the connection is closed',
  async () => {
    const property = fc.asyncProperty(rawBytes(token), async (bytes) => {
      for (const answer of answersIn(await exchange(port, bytes, true))) {
        const faults = answer.status < 400 ? [] : verdict.problemFaults(answer);
        if (answer.status >= 500) faults.push(`${answer.status}`);
        if (faults.length > 0) throw new Error(faults.join('\n'));
      }
    });
    await fc.assert(property, {
      seed: GIVEN_SEED === undefined ? Date.now() % 2 ** 31 : Number(GIVEN_SEED),
      numRuns: RUNS * 3,
    });
  },
  LIMIT_MS,
);

it(
  'after all that the server is ready, has nothing to tell that is serious, and left a database that obeys the laws',
  async () => {
    await until('the server is ready', async () => (await fetch(`${server.url}/readyz`)).ok);
    server.child.kill('SIGTERM');
    expect(await server.finished).toMatchObject({ code: 0 });
    const lines = server
      .log()
      .split('\n')
      .filter((line) => line.startsWith('{'));
    expect(lines.filter((line) => SERIOUS.includes((JSON.parse(line) as { level: string }).level))).toEqual([]);
    await expectLaws(db.url);
  },
  MINUTES,
);
