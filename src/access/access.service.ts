/** Who may act: the first organization and token, and the look-up of a bearer token. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { installationChain } from '../audit/audit.sql.js';
import { recordMigrationsIfNew } from '../audit/schema.sql.js';
import { encodeId, newId } from '../kernel/ids.js';
import { Bug } from '../kernel/problems.js';
import { errorCode, type Pool } from '../platform/db/db.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Timing } from '../platform/time.js';
import { findOrganization, findToken, hasToken, makeInstallationIfNone, makeTokenIfNew } from './access.sql.js';

/** A token's look-up is kept this long, so that a revoked one is refused everywhere within it. */
const REMEMBER_MS = 2_000;
const REMEMBER_TOKENS = 1_000;

/** Whose a token is. With a revoked one nobody may act, but who tries is known. */
export interface Identity {
  readonly caller: RequestCaller;
  readonly isRevoked: boolean;
}

export class AccessService {
  private readonly remembered = new Map<string, { readonly identity: Identity; readonly untilMs: number }>();

  constructor(
    private readonly pool: Pool,
    private readonly timing: Timing,
  ) {}

  /**
   * Makes the installation and its organization `default` when there is none, and puts on record what was done to the
   * schema. Safe on every start of every replica.
   */
  async prepare(): Promise<void> {
    const [installation, organization] = [newId(), newId()];
    await makeInstallationIfNone(this.pool, {
      installation,
      installationChain: encodeId('ins', installation),
      organization,
      organizationChain: encodeId('org', organization),
    });
    const chain = await installationChain(this.pool);
    if (!chain) throw new Bug('the installation has no chain');
    await recordMigrationsIfNew(this.pool, chain).catch((error: unknown) => {
      // Another replica that starts was faster.
      if (errorCode(error) !== '23505') throw error;
    });
  }

  /** Takes the token that the operator handed in, when the database has none yet. Returns whether it did. */
  async bootstrap(token: string): Promise<boolean> {
    return (await hasToken(this.pool)) ? false : this.make(token, 'bootstrap', true);
  }

  /** Makes this very token known, whatever other tokens there are: for who owns the data folder anyway. */
  async admit(token: string, name: string): Promise<boolean> {
    return this.make(token, name, false);
  }

  async hasToken(): Promise<boolean> {
    return hasToken(this.pool);
  }

  /** Whose a bearer token is, also one that was revoked; `undefined` when nobody here knows it. */
  async identify(token: string): Promise<Identity | undefined> {
    const hash = hashOf(token);
    const memo = hash.toString('base64');
    const known = this.remembered.get(memo);
    if (known && known.untilMs > this.timing.monotonicMs()) return known.identity;
    const found = await findToken(this.pool, hash);
    if (!found || !timingSafeEqual(found.hash, hash)) return undefined;
    const caller: RequestCaller = {
      organizationId: found.organizationId,
      chain: encodeId('org', found.organizationId),
      principal: { type: 'token', id: encodeId('tok', found.id), name: found.name },
      isInstallationAdmin: found.installation,
    };
    const identity = { caller, isRevoked: found.isRevoked };
    if (this.remembered.size >= REMEMBER_TOKENS) this.remembered.clear();
    this.remembered.set(memo, { identity, untilMs: this.timing.monotonicMs() + REMEMBER_MS });
    return identity;
  }

  private async make(token: string, name: string, bootstrap: boolean): Promise<boolean> {
    const organization = await findOrganization(this.pool, 'default');
    if (!organization) throw new Bug('the organization `default` is missing');
    const id = newId();
    return makeTokenIfNew(this.pool, {
      id,
      organizationId: organization.id,
      chain: encodeId('org', organization.id),
      object: encodeId('tok', id),
      name,
      hash: hashOf(token),
      bootstrap,
      installation: true,
    });
  }
}

/** A new random token; `cap_` tells people and scanners whose it is. */
export function generateToken(): string {
  return `cap_${randomBytes(32).toString('base64url')}`;
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}
