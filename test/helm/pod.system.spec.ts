/**
 * The rendered pod as a real process: its variables, its secrets as files, its probes, and an end as a kubelet makes it.
 * Of a pod's own are only its network and its file system: ports and folders are replaced by some of this machine.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { ChaosDatabase } from '../chaos/database.fixture.js';
import { freePort } from '../chaos/port.js';
import { type Finished, finishOf, spawnCapstan, until } from '../server.js';
import { Chart, deployment, podOf, type Values } from './chart.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const POD = 'prod-capstan-7d9c5f6b8d-x2x4z';
const PASSWORD = `p@:/?#[]% w"'$`;

const VALUES: Values = {
  image: { repository: 'registry.example.com/capstan' },
  secrets: {
    DATABASE_URL: { existingSecret: 'database', key: 'url' },
    DATABASE_DIRECT_URL: { existingSecret: 'database', key: 'direct' },
    CAPSTAN_BOOTSTRAP_TOKEN: { existingSecret: 'first-token', key: 'token' },
    CAPSTAN_AUDIT_KEY: { existingSecret: 'audit', key: 'seed' },
  },
  settings: { CAPSTAN_DRAIN_TIMEOUT: '2s', CAPSTAN_KILL_GRACE: '1s', CAPSTAN_SLOTS: 2, CAPSTAN_LOG_LEVEL: 'info' },
  workers: { replicas: 1, settings: { CAPSTAN_QUEUES: 'gpu' } },
  metrics: { enabled: true },
  preStopSeconds: 0,
};

let chart: Chart;
let db: ChaosDatabase;
let folder: string;
const pods: Pod[] = [];

beforeAll(async () => {
  [chart, db] = await Promise.all([Chart.open(), ChaosDatabase.start()]);
  folder = await mkdtemp(join(tmpdir(), 'capstan-pod-'));
  await db.query(`create role kube superuser login password '${PASSWORD.replaceAll("'", "''")}'`);
});
afterEach(async () => {
  for (const { kill, finished } of pods.splice(0)) {
    kill('SIGKILL');
    await finished;
  }
});
afterAll(async () => {
  await db.close();
  await chart.close();
  await rm(folder, { recursive: true, force: true });
});

interface Pod {
  readonly url: string;
  readonly metricsUrl: string;
  readonly graceSeconds: number;
  readonly paths: { readonly startup: string; readonly liveness: string; readonly readiness: string };
  readonly finished: Promise<Finished>;
  kill(signal: NodeJS.Signals): void;
}

/** What `kubectl create secret` has put into the namespace. */
function secrets(): Readonly<Record<string, Readonly<Record<string, string>>>> {
  const url = new URL(db.url);
  url.username = 'kube';
  url.password = encodeURIComponent(PASSWORD);
  return {
    database: { url: url.href, direct: `${url.href}\n` },
    'first-token': { token: TOKEN },
    audit: { seed: Buffer.alloc(32, 7).toString('base64') },
  };
}

/** Starts what the deployment of that name says, as a kubelet reads it. */
async function start(name: string): Promise<Pod> {
  const { spec, container, env, graceSeconds } = podOf(deployment(await chart.render(VALUES), name));
  const mountPath = container.volumeMounts?.find((mount) => mount.name === 'secrets')?.mountPath ?? '';
  const mounted = join(folder, name, mountPath);
  await mkdir(mounted, { recursive: true });
  for (const { secret } of spec.volumes?.find((volume) => volume.name === 'secrets')?.projected?.sources ?? []) {
    for (const { key, path } of secret?.items ?? []) {
      await writeFile(join(mounted, path), secrets()[secret?.name ?? '']?.[key] ?? '');
    }
  }
  const ports = { '8080': await freePort(), '9090': await freePort() } as const;
  const given = env.map(({ name, value = '', valueFrom }) => {
    if (valueFrom?.fieldRef?.fieldPath === 'metadata.name') return [name, POD];
    if (value.startsWith(mountPath)) return [name, value.replace(mountPath, mounted)];
    return [name, value === '8080' || value === '9090' ? String(ports[value]) : value];
  });
  const child = await spawnCapstan(container.args ?? [], Object.fromEntries(given));
  child.stdin?.end();
  const pod: Pod = {
    url: `http://127.0.0.1:${ports['8080']}`,
    metricsUrl: `http://127.0.0.1:${ports['9090']}/metrics`,
    graceSeconds,
    paths: {
      startup: container.startupProbe?.httpGet?.path ?? '',
      liveness: container.livenessProbe?.httpGet?.path ?? '',
      readiness: container.readinessProbe?.httpGet?.path ?? '',
    },
    finished: finishOf(child),
    kill: (signal) => child.kill(signal),
  };
  pods.push(pod);
  return pod;
}

async function isFine(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function untilReady(pod: Pod): Promise<void> {
  const ended = pod.finished.then(({ code, stderr }) => {
    throw new Error(`ended with ${code}: ${stderr}`);
  });
  await Promise.race([until('the pod is ready', () => isFine(pod.url + pod.paths.readiness), 60_000), ended]);
}

/** SIGTERM, and SIGKILL when the grace period is over. */
async function deletePod(pod: Pod): Promise<Finished> {
  pod.kill('SIGTERM');
  const timer = setTimeout(() => pod.kill('SIGKILL'), pod.graceSeconds * 1_000);
  const end = await pod.finished;
  clearTimeout(timer);
  return end;
}

function submit(pod: Pod, run: object): Promise<Response> {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  return fetch(`${pod.url}/v1/runs`, { method: 'POST', headers, body: JSON.stringify(run) });
}

it('F121 F150 a replica starts from the rendered pod, passes its probes, and ends its runs within the grace period', async () => {
  const pod = await start('prod-capstan');
  await untilReady(pod);
  expect(await isFine(pod.url + pod.paths.startup)).toBe(true);
  expect(await isFine(pod.url + pod.paths.liveness)).toBe(true);
  expect(await isFine(pod.metricsUrl)).toBe(true);
  const started = join(folder, 'started');
  const spec = {
    interpreter: 'bash',
    content: `trap '' TERM; echo > "$STARTED"; sleep 600`,
    env: { STARTED: started },
  };
  expect((await submit(pod, { kind: 'script', spec })).status).toBe(201);
  await until('the tool runs', () => existsSync(started));
  const { code, signal, stderr } = await deletePod(pod);
  expect([code, signal], stderr).toEqual([0, null]);
  expect(await db.query('select end_code from runs')).toEqual([{ end_code: 'replica_stopped' }]);
});

it('a worker starts from the rendered pod under its own name, serves its probes, and ends in order', async () => {
  const pod = await start('prod-capstan-worker');
  await untilReady(pod);
  expect(await db.query(`select name, queues from workers where state = 'live'`)).toEqual([
    { name: POD, queues: ['gpu'] },
  ]);
  expect(await isFine(pod.metricsUrl)).toBe(true);
  expect((await deletePod(pod)).code).toBe(0);
  expect(await db.query(`select state from workers where 'gpu' = any (queues)`)).toEqual([{ state: 'stopped' }]);
});
