/** A thread that checks one bundle, answers with the verdict, and is over. */
import { parentPort, workerData } from 'node:worker_threads';
import { verifyBundle } from '../verifier/verify.js';
import type { BundleToCheck } from './bundle-check.js';

const { bytes, fingerprint } = workerData as BundleToCheck;
parentPort?.postMessage(verifyBundle(bytes, { fingerprint }));
