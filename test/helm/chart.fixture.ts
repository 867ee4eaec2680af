/**
 * The chart as `helm install` treats it: values are merged, checked against the schema, rendered, and what comes out is
 * checked against Kubernetes' own schemas. Rendered by `minihelm/`, since Debian has no helm.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Ajv, type ValidateFunction } from 'ajv';
import { Deployment, type IDeployment } from 'kubernetes-models/apps/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service, ServiceAccount } from 'kubernetes-models/v1';

const ROOT = resolve(import.meta.dirname, '../..');
const CHART = join(ROOT, 'helm/capstan');
const MINIHELM = join(import.meta.dirname, 'minihelm/minihelm.go');
/** As Debian's packages lay out Go libraries; no compiler for C is needed. */
const GO = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', CGO_ENABLED: '0' };

export type Values = Readonly<Record<string, unknown>>;

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

export interface Rendered {
  /** Every file as text, NOTES.txt too. */
  readonly text: string;
  readonly objects: readonly KubernetesObject[];
}

/** What an installation has to say at least. */
export const LEAST: Values = {
  image: { repository: 'registry.example.com/capstan' },
  secrets: { DATABASE_URL: { existingSecret: 'capstan-database', key: 'url' } },
};

interface RenderedFile {
  readonly text: string;
  readonly objects: readonly KubernetesObject[];
}

export class Chart {
  private constructor(
    private readonly folder: string,
    private readonly program: string,
    private readonly isLegal: ValidateFunction,
  ) {}

  static async open(): Promise<Chart> {
    const folder = await mkdtemp(join(tmpdir(), 'capstan-chart-'));
    const program = join(folder, 'minihelm');
    const cache = join(ROOT, 'node_modules/.cache/capstan-go');
    const { PATH = '' } = process.env;
    await promisify(execFile)('go', ['build', '-o', program, MINIHELM], { env: { ...GO, PATH, GOCACHE: cache } });
    const schema = JSON.parse(await readFile(join(CHART, 'values.schema.json'), 'utf8')) as object;
    return new Chart(folder, program, new Ajv({ allowUnionTypes: true, allErrors: true }).compile(schema));
  }

  /** Rejects with what a person would be told. */
  async render(values: Values, release = 'prod'): Promise<Rendered> {
    const file = join(await mkdtemp(join(this.folder, 'values-')), 'values.json');
    await writeFile(file, JSON.stringify(values));
    const run = promisify(execFile)(this.program, [CHART, release, file]);
    const { stdout, stderr } = await run.catch((error: { stdout: string; stderr: string }) => error);
    const [merged = '', files = ''] = stdout.split('\n');
    if (merged === '') throw new Error(stderr);
    if (!this.isLegal(JSON.parse(merged))) throw new Error(faultsOf(this.isLegal));
    if (files === '') throw new Error(stderr);
    const parts = JSON.parse(files) as readonly RenderedFile[];
    return { text: parts.map(({ text }) => text).join('\n'), objects: parts.flatMap(({ objects }) => objects) };
  }

  /** What is wrong with these values; an empty text when nothing is. */
  refusal(values: Values): Promise<string> {
    return this.render(values).then(
      () => '',
      (error: unknown) => String(error),
    );
  }

  async close(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Only names, as helm's own message has them. */
function faultsOf({ errors }: ValidateFunction): string {
  return (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath} ${message} ${params.additionalProperty ?? ''}`)
    .join('\n');
}

const MODELS: Readonly<Record<string, (data: never) => { validate(): void }>> = {
  'apps/v1 Deployment': (data) => new Deployment(data),
  'v1 Service': (data) => new Service(data),
  'v1 ServiceAccount': (data) => new ServiceAccount(data),
  'policy/v1 PodDisruptionBudget': (data) => new PodDisruptionBudget(data),
};

/**
 * What a strict API server would object to. Its schemas let fields pass that they don't know; such a field is one that
 * the check never reads.
 */
export function objections(object: KubernetesObject): string {
  const model = MODELS[`${object.apiVersion} ${object.kind}`];
  if (!model) return `no schema for ${object.apiVersion} ${object.kind}`;
  const unread = new Set<string>();
  try {
    const made = model(object as never);
    made.validate.call(watched(made, '', unread));
  } catch (error) {
    return String(error);
  }
  return [...unread].map((path) => `${path} is no field`).join('\n');
}

/** `value`, with the path of each field in `unread` until it is read. */
function watched(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const inside = new Map(Object.entries(value).map(([key, each]) => [key, watched(each, `${path}/${key}`, unread)]));
  for (const key of inside.keys()) unread.add(`${path}/${key}`);
  return new Proxy(value, {
    get(target, key) {
      if (typeof key !== 'string' || !inside.has(key)) return Reflect.get(target, key);
      unread.delete(`${path}/${key}`);
      return inside.get(key);
    },
  });
}

/** The deployment of that name. */
export function deployment({ objects }: Rendered, name: string): IDeployment {
  const found = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name);
  if (!found) throw new Error(`no deployment ${name} among ${objects.map(({ metadata }) => metadata.name)}`);
  return found as KubernetesObject & IDeployment;
}

/** What the pods of a deployment are made of. */
export function podOf(of: IDeployment) {
  const spec = of.spec?.template.spec;
  const container = spec?.containers[0];
  if (!spec || !container) throw new Error('a deployment without a container');
  return { spec, container, env: container.env ?? [], graceSeconds: spec.terminationGracePeriodSeconds ?? 30 };
}
