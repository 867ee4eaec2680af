/** The first organization and token are made once, however many replicas start at once; a token is kept as its hash. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccessService, generateToken } from '../../src/access/access.service.js';
import { AuditService } from '../../src/audit/audit.service.js';
import { installationChain } from '../../src/audit/audit.sql.js';
import { knownMigrations } from '../../src/platform/db/migrate.js';
import type { Timing } from '../../src/platform/time.js';
import { createDatabase, type TestDatabase } from '../database.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createDatabase();
});
afterAll(() => db.drop());

class SteppedTiming implements Timing {
  nowMs = 0;
  monotonicMs = () => this.nowMs;
  delay = () => Promise.resolve(undefined);
  random = () => 0.5;
}
const timing = new SteppedTiming();

/** Who may act with this token. */
async function callerOf(service: AccessService, token: string) {
  const identity = await service.identify(token);
  return identity?.isRevoked ? undefined : identity?.caller;
}

async function rows(text: string, values: unknown[] = []) {
  const session = await db.session();
  const answer = await session.query(text, values);
  await session.end();
  return answer.rows;
}

describe('several replicas that start at once on an empty database', () => {
  it('F126 make one installation, one organization and its two chains, with each thing told once', async () => {
    const services = Array.from({ length: 8 }, () => new AccessService(db.pool(1), timing));
    await Promise.all(services.map((service) => service.prepare()));
    await Promise.all(services.map((service) => service.prepare()));
    expect(await rows('select name from organizations')).toEqual([{ name: 'default' }]);
    expect(await rows('select count(*)::integer as n from installation')).toEqual([{ n: 1 }]);
    const told = await rows('select action, count(*)::integer as n from audit_entries group by 1 order by 1');
    const migrations = (await knownMigrations()).length;
    expect(told).toEqual([
      { action: 'organization.created', n: 2 },
      { action: 'schema.migrated', n: migrations },
    ]);
    const pool = db.pool(1);
    const chain = (await installationChain(pool)) ?? '';
    expect(chain).toMatch(/^ins_/);
    expect(await new AuditService(pool).verify(chain)).toMatchObject({ ok: true, entries: 1 + migrations });
  });

  it('F126 take one bootstrap token, though each was handed one of its own', async () => {
    const tokens = Array.from({ length: 8 }, () => generateToken());
    const services = tokens.map(() => new AccessService(db.pool(1), timing));
    const taken = await Promise.all(services.map((service, i) => service.bootstrap(tokens[i] ?? '')));
    expect(taken.filter(Boolean)).toHaveLength(1);
    const known = await Promise.all(tokens.map((token) => callerOf(new AccessService(db.pool(1), timing), token)));
    expect(known.map((caller) => caller !== undefined)).toEqual(taken);
    expect(await rows(`select count(*)::integer as n from audit_entries where action = 'token.created'`)).toEqual([
      { n: 1 },
    ]);
  });
});

describe('a token', () => {
  it('F133 names its organization, its chain and itself; another is unknown', async () => {
    const service = new AccessService(db.pool(1), timing);
    const token = generateToken();
    expect(await service.admit(token, 'ci')).toBe(true);
    expect(await service.admit(token, 'ci'), 'the same token again').toBe(false);
    const caller = await callerOf(service, token);
    expect(caller).toMatchObject({ chain: expect.stringMatching(/^org_/), principal: { type: 'token', name: 'ci' } });
    expect(caller?.principal.id).toMatch(/^tok_/);
    expect(await callerOf(service, `${token}x`)).toBeUndefined();
    expect(await callerOf(service, '')).toBeUndefined();
  });

  it('F133 is stored as its SHA-256 and nowhere else, the audit entry included', async () => {
    const token = generateToken();
    await new AccessService(db.pool(1), timing).admit(token, 'secret');
    const dump = JSON.stringify([await rows('select * from tokens'), await rows('select claim from audit_entries')]);
    expect(dump).not.toContain(token);
    const hash = createHash('sha256').update(token).digest();
    expect(await rows('select name from tokens where hash = $1', [hash])).toEqual([{ name: 'secret' }]);
  });

  it('S4-58 F133 that was revoked is refused everywhere two seconds later at the latest', async () => {
    const service = new AccessService(db.pool(1), timing);
    const token = generateToken();
    await service.admit(token, 'short-lived');
    expect(await callerOf(service, token)).toBeDefined();
    await rows(`update tokens set revoked_at = now() where name = 'short-lived'`);
    timing.nowMs += 1_999;
    expect(await callerOf(service, token), 'still remembered').toBeDefined();
    timing.nowMs += 1;
    expect(await callerOf(service, token)).toBeUndefined();
    expect(await callerOf(new AccessService(db.pool(1), timing), token), 'a replica that never saw it').toBeUndefined();
  });

  it('is long and random, and shows whose it is', () => {
    const tokens = Array.from({ length: 100 }, () => generateToken());
    expect(new Set(tokens).size).toBe(100);
    for (const token of tokens) expect(token).toMatch(/^cap_[\w-]{43}$/);
  });
});
