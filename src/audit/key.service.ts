/**
 * The key that signs bundles. A replica is given one or none; which of them counts says the installation's chain, so
 * that all replicas sign with the same one, and a rotation holds everywhere from the moment that it is recorded.
 */
import { Bug, Problem } from '../kernel/problems.js';
import { fingerprintOf, type SigningKey } from '../kernel/signing-key.js';
import { errorCode } from '../platform/db/db.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Logger } from '../platform/log/logger.js';
import type { Pools } from '../platform/platform.js';
import { StartRefused } from '../platform/start-refused.js';
import type { AuditService } from './audit.service.js';
import type { RecordedKey } from './key.js';
import { currentFingerprint, recordedKeys, recordKeyIfFirst, rotateKeyIfOther } from './key.sql.js';

/** A person has to do something before another try goes better. */
const RETRY_AFTER_SECONDS = 60;

export interface KeyStanding {
  readonly current: RecordedKey | undefined;
  /** Newest first. */
  readonly past: readonly RecordedKey[];
  /** Whether this replica holds the current key. */
  readonly signs: boolean;
}

export class KeyService {
  private own: SigningKey | undefined;

  constructor(
    private readonly audit: AuditService,
    private readonly pools: Pick<Pools, 'read' | 'submit'>,
    private readonly log: Logger,
  ) {}

  /** Whether the installation has a key, whoever holds it. */
  async isRecorded(): Promise<boolean> {
    return (await currentFingerprint(this.pools.read, await this.audit.installationChain())) !== undefined;
  }

  /**
   * Takes the key that this replica was given. The first that any replica comes with is recorded; a former one is taken
   * and signs nothing. Throws `StartRefused` for one that the installation never heard of.
   */
  async admit(own: SigningKey | undefined): Promise<void> {
    if (own === undefined) return this.noteMissing();
    const chain = await this.audit.installationChain();
    await this.recordIfFirst(chain, own);
    const [current, ...past] = await recordedKeys(this.pools.read, chain);
    const { fingerprint } = own;
    if (current?.fingerprint === fingerprint) {
      this.log.info({ code: 'audit_key', fingerprint }, 'signs bundles');
    } else if (past.some((key) => key.fingerprint === fingerprint)) {
      this.log.warn(
        { code: 'audit_key_superseded', fingerprint, current: current?.fingerprint },
        'the key of this replica was replaced: it signs no bundles until it is started with the current one',
      );
    } else throw unknownKey(fingerprint, current?.fingerprint);
    this.own = own;
  }

  async standing(): Promise<KeyStanding> {
    const [current, ...past] = await recordedKeys(this.pools.read, await this.audit.installationChain());
    return { current, past, signs: current !== undefined && current.fingerprint === this.own?.fingerprint };
  }

  /**
   * Makes a key the installation's, by its raw public half. Said again of the current one it writes nothing and answers
   * the receipt of then. Throws `forbidden`.
   */
  async rotate(
    { isInstallationAdmin, principal }: RequestCaller,
    publicKey: Buffer,
  ): Promise<{ standing: KeyStanding; receipt: string }> {
    if (!isInstallationAdmin) {
      throw new Problem('forbidden', 'the signing key belongs to the installation: only its admins replace it');
    }
    const fingerprint = fingerprintOf(publicKey);
    const written = await rotateKeyIfOther(this.pools.submit, {
      chain: await this.audit.installationChain(),
      fingerprint,
      publicKey: publicKey.toString('base64'),
      by: principal.id,
      byName: principal.name,
    });
    const standing = await this.standing();
    const recorded = [...(standing.current ? [standing.current] : []), ...standing.past];
    const receipt = written ?? recorded.find((key) => key.fingerprint === fingerprint)?.receipt;
    if (receipt === undefined) throw new Bug('a key that was recorded is recorded no more');
    return { standing, receipt };
  }

  /** The key to sign with at this moment. Throws `signing_key_missing` or `signing_key_superseded`. */
  async signer(): Promise<SigningKey> {
    const options = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    if (this.own === undefined) {
      const detail = 'this replica has no signing key: make one with `capstan audit keygen` and set CAPSTAN_AUDIT_KEY';
      throw new Problem('signing_key_missing', detail, options);
    }
    const current = await currentFingerprint(this.pools.read, await this.audit.installationChain());
    if (current === this.own.fingerprint) return this.own;
    const detail =
      `this replica holds ${this.own.fingerprint}, and ${current ?? 'none'} is the key of the installation: ` +
      'start it with the current key, or ask a replica that has it';
    throw new Problem('signing_key_superseded', detail, options);
  }

  private async noteMissing(): Promise<void> {
    if (!(await this.isRecorded())) {
      this.log.info({ code: 'audit_key_missing' }, 'no signed bundles: set CAPSTAN_AUDIT_KEY');
      return;
    }
    this.log.warn(
      { code: 'audit_key_missing' },
      'no signed bundles here: the installation has a signing key, and this replica was not given it',
    );
  }

  private async recordIfFirst(chain: string, { fingerprint, publicKey }: SigningKey): Promise<void> {
    try {
      const isFirst = await recordKeyIfFirst(this.pools.submit, chain, { fingerprint, publicKey });
      if (isFirst) this.log.info({ code: 'audit_key_recorded', fingerprint }, "the installation's first signing key");
    } catch (error) {
      // Another replica was first: what the chain says now counts.
      if (errorCode(error) !== '23505') throw error;
    }
  }
}

function unknownKey(own: string, current = 'none'): StartRefused {
  return new StartRefused(
    `the signing key that was given is not this installation's (given: ${own}, current: ${current}): ` +
      'set CAPSTAN_AUDIT_KEY to the current one, or first make the given one its successor, at a replica that runs: ' +
      'capstan audit rotate-key --key-file FILE',
  );
}
