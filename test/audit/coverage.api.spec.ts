/**
 * Nothing changes without its entry: every route that the OpenAPI document says changes something, and every transition
 * of a run that the table marks as audited, makes exactly the entries it must, and a receipt that holds.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installationChain } from '../../src/audit/audit.sql.js';
import { encodeId } from '../../src/kernel/ids.js';
import { OPENAPI_FILE } from '../../src/platform/http/product.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { CALLS, mutatingOperations } from './coverage.fixture.js';

const OPERATIONS = mutatingOperations(JSON.parse(await readFile(OPENAPI_FILE, 'utf8')));

let surface: LocalSurface;
let chains: Readonly<Record<'organization' | 'installation', string>>;
beforeAll(async () => {
  surface = await openLocalSurface();
  const installation = (await installationChain(surface.pool)) ?? '';
  chains = { organization: encodeId('org', surface.organizationId), installation };
});
afterAll(() => surface.close());

interface Written {
  readonly receipt: string;
  readonly chain: string;
  readonly action: string;
  readonly payload: Record<string, unknown>;
}

/** All entries of all chains. */
function entries(): Promise<Written[]> {
  return surface.pool.run<Written[]>(
    (sql) => sql`
    select chain_id || ':' || seq || ':' || encode(link, 'hex') as receipt, chain_id as chain, action,
           claim::jsonb -> 'payload' as payload
    from audit_entries order by chain_id, seq`,
  );
}

/** What was written meanwhile. */
async function writtenBy<T>(act: () => Promise<T>): Promise<{ answer: T; written: Written[] }> {
  const before = new Set((await entries()).map(({ receipt }) => receipt));
  const answer = await act();
  return { answer, written: (await entries()).filter(({ receipt }) => !before.has(receipt)) };
}

describe('F139 every route that changes something', () => {
  it('has a call in this test, and every call a route', () => {
    expect(OPERATIONS.length).toBeGreaterThan(4);
    const called = [...new Set(CALLS.map(({ operationId }) => operationId))];
    expect([...OPERATIONS].sort()).toEqual(called.sort());
  });

  it.each(CALLS.map((call) => [call.operationId, call.what, call] as const))(
    '%s of %s makes exactly its entries, and answers a receipt that holds',
    async (_, __, call) => {
      const { request, repeats } = await call.prepare(surface);
      const { answer, written } = await writtenBy(() => surface.send(request));
      expect(answer.status, answer.text).toBe(call.status);
      const expected = call.entry === null ? [] : [{ chain: chains[call.entry[0]], action: call.entry[1] }];
      expect(written.map(({ chain, action }) => ({ chain, action }))).toEqual(expected);
      for (const { payload } of written) {
        expect(payload).toMatchObject({ principal: expect.stringMatching(/^tok_/), object: expect.any(String) });
      }
      const receipt = answer.headers['audit-receipt'];
      expect(receipt, 'every change is answered with a receipt').toBe(repeats ?? written[0]?.receipt);
      const { status, json } = await surface.send({ path: `/v1/audit/receipts/${receipt}` });
      expect({ status, receipt: json.receipt, holds: json.holds }).toEqual({ status: 200, receipt, holds: true });
    },
  );

  it('writes what the chains verify with, the columns beside it included', async () => {
    for (const query of ['', '?chain=installation']) {
      const { json } = await surface.send({ path: `/v1/audit/verify${query}` });
      expect(json).toMatchObject({ ok: true, entries: json.head.seq });
    }
  });
});
