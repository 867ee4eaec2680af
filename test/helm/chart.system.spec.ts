/** What the chart makes of values, and what it refuses. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Setting } from '../../src/platform/config/setting.js';
import { SETTINGS } from '../../src/platform/config/settings.js';
import {
  Chart,
  deployment,
  type KubernetesObject,
  LEAST,
  objections,
  podOf,
  type Rendered,
  type Values,
} from './chart.fixture.js';

const ROOT = resolve(import.meta.dirname, '../..');
const SECRETS = Object.values<Setting<unknown>>(SETTINGS).filter(({ isSecret }) => isSecret);
/** Stands wherever somebody might try to put a secret. */
const SECRET_TEXT = 'postgres://capstan:hunter2hunter2hunter2hunter2@db/capstan';

/** Everything that can be said, said. */
const FULL: Values = {
  replicas: 5,
  image: {
    repository: 'registry.example.com:5000/ops/capstan',
    digest: `sha256:${'a'.repeat(64)}`,
    pullPolicy: 'Always',
  },
  imagePullSecrets: [{ name: 'registry' }],
  secrets: Object.fromEntries(SECRETS.map(({ name }) => [name, { existingSecret: 'capstan', key: name }])),
  settings: {
    CAPSTAN_DRAIN_TIMEOUT: '10m',
    CAPSTAN_KILL_GRACE: '1500ms',
    CAPSTAN_STALL_LIMIT: '5m',
    CAPSTAN_SLOTS: 8,
    CAPSTAN_QUEUES: 'default,batch',
    CAPSTAN_HOST: '::',
    CAPSTAN_OUTPUT_LIMIT: '16MiB',
    CAPSTAN_LOG_LEVEL: 'debug',
  },
  workers: {
    replicas: 2,
    settings: { CAPSTAN_QUEUES: 'gpu', CAPSTAN_DRAIN_TIMEOUT: '1h', CAPSTAN_SLOTS: '1' },
    resources: { limits: { memory: '4Gi' } },
    nodeSelector: { pool: 'gpu' },
    tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }],
  },
  resources: { requests: { cpu: '1', memory: '1Gi' } },
  preStopSeconds: 0,
  service: { type: 'LoadBalancer', port: 8443, annotations: { 'example.com/scope': 'internal' } },
  serviceAccount: { name: 'ops', annotations: { 'example.com/role': 'capstan' } },
  podDisruptionBudget: { maxUnavailable: '30%' },
  metrics: { enabled: true },
  podAnnotations: { 'example.com/scrape': 'true' },
  podLabels: { team: 'ops' },
  nodeSelector: { pool: 'general' },
  tolerations: [{ operator: 'Exists' }],
  extraEnv: [
    { name: 'NODE_EXTRA_CA_CERTS', value: '/certs/ca.pem' },
    { name: 'HTTPS_PASSWORD', valueFrom: { secretKeyRef: { name: 'proxy', key: 'password' } } },
  ],
  extraVolumes: [{ name: 'certs', configMap: { name: 'certs' } }],
  extraVolumeMounts: [{ name: 'certs', mountPath: '/certs', readOnly: true }],
};

let chart: Chart;
beforeAll(async () => {
  chart = await Chart.open();
});
afterAll(() => chart.close());

function also(values: Values): Values {
  return { ...LEAST, ...values };
}

function podsOf(rendered: Rendered) {
  const deployments = rendered.objects.filter(({ kind }) => kind === 'Deployment');
  return deployments.map(({ metadata }) => podOf(deployment(rendered, metadata.name)));
}

/** The Prometheus operator's; there is no model of it. */
interface PodMonitor {
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly podMetricsEndpoints: readonly object[];
  };
}

function budgetsOf({ objects }: Rendered) {
  const budgets = objects.filter(({ kind }) => kind === 'PodDisruptionBudget') as (KubernetesObject &
    IPodDisruptionBudget)[];
  return budgets.map(({ metadata, spec }) => ({
    name: metadata.name,
    maxUnavailable: spec?.maxUnavailable,
    selector: spec?.selector,
  }));
}

describe('what is rendered', () => {
  it.each([
    ['the least', LEAST],
    ['everything', FULL],
  ])('is taken by Kubernetes without a field that it does not know: %s', async (_what, values) => {
    const { objects } = await chart.render(values);
    expect(objects.length).toBeGreaterThan(3);
    expect(objects.flatMap(objections).filter(Boolean)).toEqual([]);
  });

  it('F150 is the same each time, in every byte', async () => {
    expect((await chart.render(FULL)).text).toBe((await chart.render(FULL)).text);
  });

  it('F150 rolls the pods for a setting, and for nothing that is no part of them', async () => {
    const template = async (values: Values) =>
      deployment(await chart.render(also(values)), 'prod-capstan').spec?.template;
    const before = await template({});
    expect(await template({ replicas: 7, service: { port: 81 }, podDisruptionBudget: { enabled: false } })).toEqual(
      before,
    );
    expect(await template({ settings: { CAPSTAN_SLOTS: 9 } })).not.toEqual(before);
  });

  it('is three replicas of which a rollout and an eviction take away none too many', async () => {
    const rendered = await chart.render(LEAST);
    const { spec } = deployment(rendered, 'prod-capstan');
    expect(spec?.replicas).toBe(3);
    expect(spec?.strategy?.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
    const budget = rendered.objects.find(({ kind }) => kind === 'PodDisruptionBudget');
    expect(budget).toMatchObject({ spec: { maxUnavailable: 1, selector: spec?.selector } });
    expect(rendered.objects.find(({ kind }) => kind === 'Service')).toMatchObject({
      spec: { selector: spec?.selector.matchLabels, ports: [{ port: 80, targetPort: 'http' }] },
    });
  });

  it('lets an eviction take one worker at a time too, beside a replica', async () => {
    const rendered = await chart.render(also({ workers: { replicas: 2 } }));
    const selectors = ['prod-capstan', 'prod-capstan-worker'].map((name) => deployment(rendered, name).spec?.selector);
    expect(budgetsOf(rendered)).toEqual([
      { name: 'prod-capstan', maxUnavailable: 1, selector: selectors[0] },
      { name: 'prod-capstan-worker', maxUnavailable: 1, selector: selectors[1] },
    ]);
    const components = selectors.map((selector) => selector?.matchLabels?.['app.kubernetes.io/component']);
    expect(components).toEqual(['replica', 'worker']);
    const single = await chart.render(also({ workers: { replicas: 1 } }));
    expect(budgetsOf(single).map(({ name }) => name)).toEqual(['prod-capstan']);
    const off = await chart.render(also({ workers: { replicas: 2 }, podDisruptionBudget: { enabled: false } }));
    expect(budgetsOf(off)).toEqual([]);
  });

  it('has replicas and workers scraped by the Prometheus operator on the port that their pods name', async () => {
    const values = also({ workers: { replicas: 1 }, metrics: { enabled: true, podMonitor: true } });
    const rendered = await chart.render(values);
    const monitor = rendered.objects.find(({ kind }) => kind === 'PodMonitor') as unknown as PodMonitor;
    expect(Object.keys(monitor)).toEqual(['apiVersion', 'kind', 'metadata', 'spec']);
    expect(monitor).toMatchObject({ apiVersion: 'monitoring.coreos.com/v1', metadata: { name: 'prod-capstan' } });
    const { selector, podMetricsEndpoints, ...others } = monitor.spec;
    expect(others).toEqual({});
    expect(podMetricsEndpoints).toEqual([{ port: 'metrics' }]);
    expect(Object.keys(selector)).toEqual(['matchLabels']);
    for (const name of ['prod-capstan', 'prod-capstan-worker']) {
      const of = deployment(rendered, name);
      expect(of.spec?.template.metadata?.labels).toMatchObject(selector.matchLabels);
      const { container, env } = podOf(of);
      expect(container.ports).toContainEqual({ name: 'metrics', containerPort: 9090 });
      expect(env).toContainEqual({ name: 'CAPSTAN_METRICS_PORT', value: '9090' });
    }
    expect((await chart.render(FULL)).objects.map(({ kind }) => kind)).not.toContain('PodMonitor');
  });

  it('is called by its release, in names that are no longer than Kubernetes takes and differ as releases do', async () => {
    const namesOf = async (release: string) => {
      const { objects } = await chart.render(also({ workers: { replicas: 2 } }), release);
      expect(objects.flatMap(objections).filter(Boolean)).toEqual([]);
      return [...new Set(objects.map(({ metadata }) => metadata.name))].sort();
    };
    expect(await namesOf('my-capstan')).toEqual(['my-capstan', 'my-capstan-worker']);
    const [one, another] = await Promise.all(['x', 'y'].map((last) => namesOf(`a${'-b'.repeat(25)}-${last}`)));
    for (const name of [...one!, ...another!]) expect(name).toMatch(/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/);
    expect(one!.filter((name) => another!.includes(name))).toEqual([]);
  });

  it.each(['123', '1e5', 'true', 'null'])(
    'takes a name for text that YAML takes for something else: %s',
    async (name) => {
      const secrets = { DATABASE_URL: { existingSecret: name, key: name } };
      const { objects } = await chart.render(also({ secrets, serviceAccount: { name } }));
      expect(objects.flatMap(objections).filter(Boolean)).toEqual([]);
      expect(objects.find(({ kind }) => kind === 'ServiceAccount')?.metadata.name).toBe(name);
    },
  );

  it('warns of an installation that executes nothing', async () => {
    const settings = { CAPSTAN_SLOTS: 0 };
    expect((await chart.render(also({ settings }))).text).toMatch(/there are no workers: nothing here executes runs/);
    for (const values of [{}, { settings, workers: { replicas: 1 } }]) {
      expect((await chart.render(also(values))).text).not.toMatch(/executes runs/);
    }
  });

  it('runs the version that the chart is for', async () => {
    const { version } = JSON.parse(await readFile(resolve(ROOT, 'package.json'), 'utf8')) as { version: string };
    const [pod] = podsOf(await chart.render(LEAST));
    expect(pod?.container.image).toBe(`registry.example.com/capstan:${version}`);
    const [full] = podsOf(await chart.render(FULL));
    expect(full?.container.image).toMatch(/^registry\.example\.com:5000\/ops\/capstan@sha256:a{64}$/);
  });
});

describe('a pod', () => {
  it('gets no variables of services: one named capstan would stop the program', async () => {
    for (const { spec } of podsOf(await chart.render(FULL))) expect(spec.enableServiceLinks).toBe(false);
  });

  it('has no rights: not root, nothing to write to but /tmp, no token of the cluster', async () => {
    for (const { spec, container } of podsOf(await chart.render(FULL))) {
      expect(spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(spec.automountServiceAccountToken).toBe(false);
      const writable = container.volumeMounts?.filter(({ readOnly }) => !readOnly).map(({ mountPath }) => mountPath);
      expect(writable).toEqual(['/tmp']);
    }
  });

  it('F045 lives as long as its process answers: no probe that kills asks for the database or the schema', async () => {
    const [pod] = podsOf(await chart.render(LEAST));
    const { startupProbe, livenessProbe, readinessProbe } = pod!.container;
    expect([startupProbe?.httpGet?.path, livenessProbe?.httpGet?.path]).toEqual(['/healthz', '/healthz']);
    expect(readinessProbe?.httpGet?.path).toBe('/readyz');
  });

  it.each([
    ['120s', 120],
    ['70s', 70],
    ['10m', 600],
  ])('ends itself at a stall of %s before its liveness probe ends it', async (limit, seconds) => {
    const [pod] = podsOf(await chart.render(also({ settings: { CAPSTAN_STALL_LIMIT: limit } })));
    const { periodSeconds = 0, failureThreshold = 0 } = pod!.container.livenessProbe!;
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(seconds + 60);
  });

  it.each([
    ['30s', '10s', 5, 40],
    ['0', '1s', 0, 1],
    ['1500ms', '1001ms', 1, 4],
    ['24h', '1m', 5, 86_460],
    ['1d', '60s', 300, 86_460],
  ])(
    'F121 with a drain of %s, a kill grace of %s and %i s of notice has time for all of it and 5 s more',
    async (drain, kill, preStopSeconds, seconds) => {
      const settings = { CAPSTAN_DRAIN_TIMEOUT: drain, CAPSTAN_KILL_GRACE: kill };
      const [pod] = podsOf(await chart.render(also({ settings, preStopSeconds })));
      expect(pod?.graceSeconds).toBe(preStopSeconds + seconds + 10);
      const preStop = pod?.container.lifecycle?.preStop?.exec?.command;
      expect(preStop).toEqual(preStopSeconds === 0 ? undefined : ['sleep', String(preStopSeconds)]);
    },
  );

  it('F121 keeps a longer time that is asked for, and each deployment its own', async () => {
    const [pod] = podsOf(await chart.render(also({ terminationGracePeriodSeconds: 600 })));
    expect(pod?.graceSeconds).toBe(600);
    const [replica, worker] = podsOf(await chart.render(FULL));
    expect([replica?.graceSeconds, worker?.graceSeconds]).toEqual([600 + 2 + 10, 3600 + 2 + 10]);
  });

  it('of a worker has the settings of replicas under its own, and the secrets of the database alone', async () => {
    const rendered = await chart.render(FULL);
    const { container, spec, env } = podOf(deployment(rendered, 'prod-capstan-worker'));
    expect(container.args).toEqual(['worker']);
    expect(spec.nodeSelector).toEqual({ pool: 'gpu' });
    const values = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    expect(values).toMatchObject({ CAPSTAN_QUEUES: 'gpu', CAPSTAN_SLOTS: '1', CAPSTAN_LOG_LEVEL: 'debug' });
    const files = Object.keys(values).filter((name) => name.endsWith('_FILE'));
    expect(files).toEqual(['DATABASE_DIRECT_URL_FILE', 'DATABASE_URL_FILE']);
    expect(podOf(deployment(rendered, 'prod-capstan')).container.args).toEqual(['serve']);
  });

  it.each<[string, Values, Values, (string | undefined)[]]>([
    ['when replicas leave the work to it', { CAPSTAN_SLOTS: 0 }, {}, ['0', undefined]],
    ['when replicas have many', { CAPSTAN_SLOTS: 8 }, {}, ['8', undefined]],
    ['as its own settings say', { CAPSTAN_SLOTS: 8 }, { CAPSTAN_SLOTS: 0 }, ['8', '0']],
    ['as its own settings alone say', {}, { CAPSTAN_SLOTS: 2 }, [undefined, '2']],
  ])('of a worker has no slots from replicas: %s', async (_when, settings, own, slots) => {
    const pods = podsOf(await chart.render(also({ settings, workers: { replicas: 1, settings: own } })));
    expect(pods.map(({ env }) => env.find(({ name }) => name === 'CAPSTAN_SLOTS')?.value)).toEqual(slots);
  });
});

describe('secrets', () => {
  it('F150 are files of Secrets that exist: none is made, and none stands in an environment', async () => {
    const rendered = await chart.render(FULL);
    expect(rendered.objects.map(({ kind }) => kind)).not.toContain('Secret');
    const { spec, container, env } = podOf(deployment(rendered, 'prod-capstan'));
    const mount = container.volumeMounts?.find(({ name }) => name === 'secrets');
    const volume = spec.volumes?.find(({ name }) => name === 'secrets');
    expect(volume?.projected?.defaultMode).toBe(0o440);
    for (const { name } of SECRETS) {
      expect(env.filter((each) => each.name === name)).toEqual([]);
      expect(env).toContainEqual({ name: `${name}_FILE`, value: `${mount?.mountPath}/${name}` });
      const source = { secret: { name: 'capstan', items: [{ key: name, path: name }] } };
      expect(volume?.projected?.sources).toContainEqual(source);
    }
    expect(container.envFrom).toBeUndefined();
  });

  it.each<[string, Values]>([
    ['as a setting', { settings: { DATABASE_URL: SECRET_TEXT } }],
    ['as a setting of workers', { workers: { settings: { CAPSTAN_BOOTSTRAP_TOKEN: SECRET_TEXT } } }],
    ['in place of a reference', { secrets: { DATABASE_URL: SECRET_TEXT } }],
    ['beside a reference', { secrets: { DATABASE_URL: { existingSecret: 'x', key: 'url', value: SECRET_TEXT } } }],
    ['as the name of one', { secrets: { DATABASE_URL: { existingSecret: SECRET_TEXT, key: 'url' } } }],
    ['as an extra variable', { extraEnv: [{ name: 'DATABASE_URL', value: SECRET_TEXT }] }],
    ['as an extra variable of ours', { extraEnv: [{ name: 'CAPSTAN_AUDIT_KEY', value: SECRET_TEXT }] }],
    ['as an extra variable by the look of it', { extraEnv: [{ name: 'PGPASSWORD', value: SECRET_TEXT }] }],
    ['as a value of its own', { databaseUrl: SECRET_TEXT }],
  ])('F150 are refused as text, and not repeated: %s', async (_where, values) => {
    const refusal = await chart.refusal(also(values));
    expect(refusal).not.toBe('');
    expect(refusal).not.toContain('hunter2');
  });
});

describe('refused, by name', () => {
  it.each<[string, Values, RegExp]>([
    ['no secret for the database', { secrets: {} }, /secrets\.DATABASE_URL\.existingSecret: name the Secret/],
    ['no image', { image: {} }, /image\.repository: say where/],
    ['a setting that is none', { settings: { CAPSTAN_SLOT: 4 } }, /\/settings .*CAPSTAN_SLOT$/m],
    ['a folder for a database of its own', { settings: { CAPSTAN_DATA_DIR: '/data' } }, /CAPSTAN_DATA_DIR/],
    ['a port that probes would not find', { settings: { CAPSTAN_PORT: 9000 } }, /CAPSTAN_PORT/],
    ['a setting out of its range', { settings: { CAPSTAN_SLOTS: 1001 } }, /\/settings\/CAPSTAN_SLOTS/],
    ['a duration without a unit', { settings: { CAPSTAN_DRAIN_TIMEOUT: '30' } }, /\/settings\/CAPSTAN_DRAIN_TIMEOUT/],
    ['no word on draining', { settings: { CAPSTAN_DRAIN_TIMEOUT: null } }, /'CAPSTAN_DRAIN_TIMEOUT'/],
    ['too short a grace period', { terminationGracePeriodSeconds: 54 }, /terminationGracePeriodSeconds: at least 55,/],
    [
      'too short for the workers',
      { terminationGracePeriodSeconds: 60, workers: { replicas: 1, settings: { CAPSTAN_DRAIN_TIMEOUT: '1m' } } },
      /at least 85,/,
    ],
    ['no replica', { replicas: 0 }, /\/replicas must be >= 1/],
    ['a value that is none', { replicaCount: 3 }, /replicaCount/],
    ['a monitor of nothing', { metrics: { podMonitor: true } }, /metrics\.podMonitor: needs metrics\.enabled/],
  ])('%s', async (_what, values, says) => {
    expect(await chart.refusal(also(values))).toMatch(says);
  });

  it.each(['1abc', 'prod.eu', '1capstan'])('a release that no Service can be called by: %s', async (release) => {
    await expect(chart.render(LEAST, release)).rejects.toThrow(
      `release ${release}: its name has to begin with a letter and to have no dots`,
    );
  });
});

it('F152 the schema has each setting once, in words that Go reads too', async () => {
  const text = await readFile(resolve(ROOT, 'helm/capstan/values.schema.json'), 'utf8');
  for (const { name } of Object.values<Setting<unknown>>(SETTINGS)) {
    const times = text.split(`"${name}": {`).length - 1;
    expect(times, name).toBe(/^CAPSTAN_(NAME|PORT|METRICS_PORT|DATA_DIR)$/.test(name) ? 0 : 1);
  }
  expect(text.match(/"pattern": .*\(\?/g)).toBeNull();
});
