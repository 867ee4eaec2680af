/** Who may act: the first organization and token, and the look-up of a bearer token. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { installationChain } from '../audit/audit.sql.js';
import { recordMigrationsIfNew } from '../audit/schema.sql.js';
import { encodeId, newId } from '../kernel/ids.js';
import { Bug } from '../kernel/problems.js';
import { errorCode, type Pool } from '../platform/db/db.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Timing } from '../platform/time.js';
import { findOrganization, findToken, hasToken, makeInstallationIfNone, makeTokenIfNew } from './access.sql.js';

/** A token's look-up is kept this long from when it was asked for, so that a revoked one is refused everywhere within it. */
const REMEMBER_MS = 2_000;
const REMEMBER_TOKENS = 1_000;

/** Whose a token is. With a revoked one nobody may act, but who tries is known. */
export interface Identity {
  readonly caller: RequestCaller;
  readonly isRevoked: boolean;
}

export class AccessService {
  private readonly remembered = new Map<string, { readonly identity: Identity; readonly untilMs: number }>();
  /** Look-ups under way, which whoever asks for the same token meanwhile waits for: dozens may when one is forgotten. */
  private readonly asked = new Map<string, Promise<Identity | undefined>>();

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
    const digest = hashOf(token);
    const memo = digest.toString('base64');
    const known = this.remembered.get(memo);
    if (known && known.untilMs > this.timing.monotonicMs()) return known.identity;
    const asked = this.asked.get(memo) ?? this.lookUp(digest, memo).finally(() => this.asked.delete(memo));
    this.asked.set(memo, asked);
    return asked;
  }

  private async lookUp(digest: Buffer, memo: string): Promise<Identity | undefined> {
    const askedAtMs = this.timing.monotonicMs();
    const found = await findToken(this.pool, digest);
    if (!found || !timingSafeEqual(found.hash, digest)) return undefined;
    const caller: RequestCaller = {
      organizationId: found.organizationId,
      chain: encodeId('org', found.organizationId),
      principal: { type: 'token', id: encodeId('tok', found.id), name: found.name },
      isInstallationAdmin: found.installation,
    };
    const identity = { caller, isRevoked: found.isRevoked };
    if (this.remembered.size >= REMEMBER_TOKENS) this.remembered.clear();
    this.remembered.set(memo, { identity, untilMs: askedAtMs + REMEMBER_MS });
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
  return hash('sha256', token, 'buffer');
}
