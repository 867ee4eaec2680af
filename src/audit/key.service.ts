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
import { brokenChain, WHAT_TO_DO } from './broken-chain.js';
import type { ChainBreak } from './chain.js';
import type { RecordedKey } from './key.js';
import { currentFingerprint, isKeyRecorded, recordedKeys, recordKeyIfFirst, rotateKeyIfOther } from './key.sql.js';

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

  /** Fingerprint of the key that this replica was given. */
  get ownFingerprint(): string | null {
    return this.own?.fingerprint ?? null;
  }

  /** Whether the installation has a key, whoever holds it. */
  async isRecorded(): Promise<boolean> {
    return isKeyRecorded(this.pools.read, await this.audit.installationChain());
  }

  /**
   * Takes the key that this replica was given. The first that any replica comes with is recorded; a former one is taken
   * and signs nothing. A chain that doesn't hold says nothing about keys: then the given one is kept, and what becomes
   * of it is decided when the chain holds again. Throws `StartRefused` for one that the installation never heard of.
   */
  async admit(own: SigningKey | undefined): Promise<void> {
    if (own === undefined) return this.noteMissing();
    const chain = await this.audit.installationChain();
    const broken = await this.recordIfFirst(chain, own);
    if (broken) this.noteBroken(chain, broken, own);
    else await this.noteStanding(chain, own);
    this.own = own;
  }

  async standing(): Promise<KeyStanding> {
    const [current, ...past] = await recordedKeys(this.pools.read, await this.audit.installationChain());
    return { current, past, signs: current !== undefined && current.fingerprint === this.own?.fingerprint };
  }

  /**
   * Makes a key the installation's, by its raw public half. Said again of the current one it writes nothing and answers
   * the receipt of then.
   */
  async rotate(
    { principal }: Pick<RequestCaller, 'principal'>,
    publicKey: Buffer,
  ): Promise<{ standing: KeyStanding; receipt: string }> {
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

  /**
   * The key to sign with at this moment. Throws `signing_key_missing`, `signing_key_superseded`, or `chain_broken` of the
   * installation's chain, which is what says whose key it is.
   */
  async signer(): Promise<SigningKey> {
    const { own } = this;
    const options = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    const chain = await this.audit.installationChain();
    const current = await currentFingerprint(this.pools.read, chain);
    if (own === undefined) throw new Problem('signing_key_missing', whatIsMissing(current), options);
    // Without one this replica came while the chain didn't hold, which may be over.
    const broken = this.audit.brokenAsKnown(chain) ?? (current ? undefined : await this.recordIfFirst(chain, own));
    if (broken) throw brokenChain(chain, broken, 'nobody can say which key signs, and nothing is signed');
    const signing = current ?? (await currentFingerprint(this.pools.read, chain));
    if (signing === own.fingerprint) return own;
    const detail =
      `this replica holds ${own.fingerprint}, and ${signing ?? 'none'} is the key of the installation: ` +
      'start it with the current key, or ask a replica that has it';
    throw new Problem('signing_key_superseded', detail, options);
  }

  /** What a chain that holds says of this replica's key. */
  private async noteStanding(chain: string, { fingerprint }: SigningKey): Promise<void> {
    const [current, ...past] = await recordedKeys(this.pools.read, chain);
    if (current?.fingerprint === fingerprint) {
      this.log.info({ code: 'audit_key', fingerprint }, 'signs bundles');
    } else if (past.some((key) => key.fingerprint === fingerprint)) {
      this.log.warn(
        { code: 'audit_key_superseded', fingerprint, current: current?.fingerprint },
        'the key of this replica was replaced: it signs no bundles until it is started with the current one',
      );
    } else throw unknownKey(fingerprint, current?.fingerprint);
  }

  private noteBroken(chain: string, { brokenAt: seq, check }: ChainBreak, { fingerprint }: SigningKey): void {
    this.log.error(
      { code: 'audit_key_not_admitted', fingerprint, chain, seq, check },
      `nothing is signed, and no key is recorded: the installation's chain ${chain}, which says whose key signs, ` +
        `doesn't hold at entry ${seq} (check: ${check}). ${WHAT_TO_DO}`,
    );
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

  /** Records the key if the chain, which is recomputed before, tells of none; answers its break. */
  private async recordIfFirst(chain: string, { fingerprint, publicKey }: SigningKey): Promise<ChainBreak | undefined> {
    const { brokenAt, check } = await this.audit.verify(chain);
    if (brokenAt !== undefined && check !== undefined) return { brokenAt, check };
    try {
      const isFirst = await recordKeyIfFirst(this.pools.submit, chain, { fingerprint, publicKey });
      if (isFirst) this.log.info({ code: 'audit_key_recorded', fingerprint }, "the installation's first signing key");
    } catch (error) {
      // Another replica was first: what the chain says now counts.
      if (errorCode(error) !== '23505') throw error;
    }
    return undefined;
  }
}

function unknownKey(own: string, current = 'none'): StartRefused {
  return new StartRefused(
    `the signing key that was given is not this installation's (given: ${own}, current: ${current}): ` +
      'set CAPSTAN_AUDIT_KEY to the current one, or first make the given one its successor, at a replica that runs: ' +
      'capstan audit rotate-key --key-file FILE',
  );
}

function whatIsMissing(current: string | undefined): string {
  return current === undefined
    ? 'there is none yet: make one with `capstan audit keygen` and start the replicas with CAPSTAN_AUDIT_KEY_FILE'
    : `this replica was not given it: start it with ${current} (CAPSTAN_AUDIT_KEY_FILE), or ask a replica that has it; ` +
        'if it is lost, `capstan audit rotate-key`';
}
