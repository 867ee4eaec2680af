/** The words of the API for whoever writes TypeScript, out of the generated document. Instants are RFC 3339 in UTC. */
import type { components, paths } from './schema.js';

type Schemas = components['schemas'];

export type Run = Schemas['Run'];
/** A run as lists have it: without `spec` and `output`. */
export type RunSummary = Schemas['RunSummary'];
export type RunEvent = Schemas['Event'];
export type Why = Schemas['Why'];
export type Worker = Schemas['Worker'];
export type Queue = Schemas['Queue'];
export type Retention = Schemas['Retention'];
export type AuditEntry = Schemas['Entry'];
export type ReceiptCheck = Schemas['Receipt'];
export type SigningKeys = Schemas['Key'];
export type Verification = Schemas['Verification'];
export type Version = Schemas['Version'];

interface Specs {
  readonly noop: Schemas['NoopSpec'];
  readonly command: Schemas['CommandSpec'];
  readonly script: Schemas['ScriptSpec'];
  readonly http: Schemas['HttpSpec'];
}

type OfKind<K extends Schemas['Submit']['kind']> = Omit<Schemas['Submit'], 'kind' | 'spec'> & {
  readonly kind: K;
} & (K extends 'noop' ? { readonly spec?: Specs[K] } : { readonly spec: Specs[K] });

/** What is asked to run: the spec is the one of its kind. */
export type Submission = { [K in keyof Specs]: OfKind<K> }[keyof Specs];
/** One of a batch; with a key of its own it is the same run whichever way it comes. */
export type BatchSubmission = Submission & Pick<Schemas['BatchItem'], 'idempotencyKey'>;
/** What came of one of a batch: its run, or the problem that it has. */
export type BatchItem = Schemas['BatchItemAnswer'];

/** Which runs are meant: all members must fit. */
export type RunFilter = Schemas['RunFilter'];
export type AuditFilter = Omit<NonNullable<paths['/v1/audit']['get']['parameters']['query']>, 'limit' | 'cursor'>;
export type BundlePick = NonNullable<paths['/v1/audit/bundle']['get']['parameters']['query']>;
export type VerificationPick = NonNullable<paths['/v1/audit/verify']['get']['parameters']['query']>;

/** What a cancel by filter came to, all in all. */
export type Canceled = Omit<Schemas['BulkCancelAnswer'], 'dryRun' | 'next'>;
/** What a rerun by filter came to, all in all. */
export type Reruns = Omit<Schemas['BulkRerunAnswer'], 'dryRun' | 'next'>;
