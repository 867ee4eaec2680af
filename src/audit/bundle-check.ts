/**
 * Has our own verifier look at a bundle before it is sent. A large one is looked at in a thread, which the main thread
 * doesn't wait for: leases and other callers would stand still for as long.
 */
import { Worker } from 'node:worker_threads';
import { verifyBundle } from '../verifier/verify.js';

type Verdict = ReturnType<typeof verifyBundle>;

/** So much takes some ten milliseconds here; to start a thread takes fifty. */
const HERE_BYTES = 256 * 1024;
const LIMIT_MS = 60_000;
/** A cap, no reservation. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 1_024 };

export interface BundleToCheck {
  readonly bytes: Uint8Array;
  /** The only key that may have signed it. */
  readonly fingerprint: string;
}

/** The verifier's verdict. Rejects when it couldn't come to one. */
export function checkBundle(bundle: BundleToCheck): Promise<Verdict> | Verdict {
  const { bytes, fingerprint } = bundle;
  return bytes.length <= HERE_BYTES ? verifyBundle(bytes, { fingerprint }) : checkInThread(bundle);
}

function checkInThread(bundle: BundleToCheck): Promise<Verdict> {
  const thread = new Worker(new URL('./bundle.thread.js', import.meta.url), {
    name: 'capstan-bundle',
    workerData: bundle,
    execArgv: [],
    // It prints nothing. Piping it would make Node open this process's own output, non-blocking from then on.
    stdout: true,
    stderr: true,
    resourceLimits: RESOURCE_LIMITS,
  });
  let timer: NodeJS.Timeout | undefined;
  return new Promise<Verdict>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no verdict about a bundle in ${LIMIT_MS} ms`)), LIMIT_MS);
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', (code) => reject(new Error(`the thread that checks a bundle ended with code ${code}`)));
  }).finally(() => {
    clearTimeout(timer);
    void thread.terminate();
  });
}
