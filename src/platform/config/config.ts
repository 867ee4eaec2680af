/**
 * The typed configuration of a process, read once at start-up and frozen; this folder alone reads `process.env`.
 * Invariant: all faults are reported at once, and no fault holds a value that was given.
 */
import { isAbsolute, join, resolve } from 'node:path';
import { formatDuration } from '../../kernel/duration.js';
import { unknownNames, withoutServiceLinks } from './names.js';
import { isGiven, readSetting, type Source } from './reading.js';
import type { Environment, Fault, Setting } from './setting.js';
import { SETTINGS } from './settings.js';

type Settings = typeof SETTINGS;
type SettingValues = { readonly [K in keyof Settings]: Settings[K] extends Setting<infer T> ? T : never };

/** Durations are milliseconds (`…Ms`); an optional setting that is not set is `undefined`. */
export type Config = SettingValues & {
  /** From the moment a renewal is sent until a tool is told to stop: TTL less the kill grace less 2 s. */
  readonly toolDeadlineMs: number;
  /** Where the programs of tools are looked up: this process's own PATH. */
  readonly toolPath: string;
  /** Certificate authorities that requests of runs trust besides Node's own: this process's own NODE_EXTRA_CA_CERTS. */
  readonly caFile: string | null;
};

export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** Between the last KILL and the end of the lease. */
const DEADLINE_MARGIN_MS = 2_000;
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

/** A copy of the variables of this process. Nothing else reads `process.env`. */
export function processEnvironment(): Environment {
  return Object.freeze({ ...process.env });
}

/** The configuration of a server or worker. Reads the files that `…_FILE` variables name. */
export function readConfig(env: Environment): ConfigResult {
  const { env: own, faults } = withoutServiceLinks(env);
  faults.push(...unknownNames(own));
  const values: Partial<SettingValues> = {};
  for (const [key, setting] of Object.entries<Setting<unknown>>(SETTINGS)) {
    const reading = readSetting(setting, own);
    if ('fault' in reading) faults.push(reading.fault);
    else Object.assign(values, { [key]: reading.value });
  }
  faults.push(...directWithoutShared(own), ...leaseTooShort(values));
  if (faults.length > 0) return { ok: false, faults };
  // The loop above has set every key of the table, each from the parser of its own declaration.
  const read = values as SettingValues;
  return {
    ok: true,
    config: Object.freeze({
      ...read,
      databaseDirectUrl: read.databaseDirectUrl ?? read.databaseUrl,
      toolPath: toolPathIn(env),
      // The process that makes the requests works in another folder.
      caFile: env.NODE_EXTRA_CA_CERTS ? resolve(env.NODE_EXTRA_CA_CERTS) : null,
      toolDeadlineMs: read.leaseTtlMs - read.killGraceMs - DEADLINE_MARGIN_MS,
    }),
  };
}

/** PATH without the folders that npm puts in front of it for its scripts: not the operator's, and some may be anybody's. */
function toolPathIn(env: Environment): string {
  const folders = (env.PATH ?? DEFAULT_PATH).split(':');
  if (env.npm_lifecycle_event === undefined) return folders.join(':');
  return folders.filter((folder) => !/\/node_modules\/\.bin$|\/node-gyp-bin$/.test(folder)).join(':');
}

function directWithoutShared(env: Environment): Fault[] {
  const { databaseDirectUrl, databaseUrl } = SETTINGS;
  if (!isGiven(databaseDirectUrl, env) || isGiven(databaseUrl, env)) return [];
  const name = databaseDirectUrl.name;
  return [{ name, message: `${name} is set without ${databaseUrl.name}: set that too or leave this out` }];
}

/** A tool must outlive two lost renewals; judged only when the three durations could be read. */
function leaseTooShort({ leaseTtlMs, leaseRenewMs, killGraceMs }: Partial<SettingValues>): Fault[] {
  if (leaseTtlMs === undefined || leaseRenewMs === undefined || killGraceMs === undefined) return [];
  const minimumMs = killGraceMs + DEADLINE_MARGIN_MS + 3 * leaseRenewMs;
  if (leaseTtlMs >= minimumMs) return [];
  const [ttl, renew, grace] = [SETTINGS.leaseTtlMs.name, SETTINGS.leaseRenewMs.name, SETTINGS.killGraceMs.name];
  const rule = `${ttl} - ${grace} - 2s must be at least 3 x ${renew}`;
  const expected = `expected at least ${formatDuration(minimumMs)}, because ${rule}`;
  return [{ name: ttl, message: `${ttl}: ${expected}; or lower ${renew} or ${grace}` }];
}

export interface EffectiveSetting {
  readonly name: string;
  /** As it was given, or the default; `(hidden)` for a secret that is set, `(refused)` for what cannot be read. */
  readonly value: string;
  readonly source: Source;
  readonly help: string;
}

/** What each setting is and where it comes from, in the table's order; never a secret, never a refused text. */
export function effectiveSettings(env: Environment): EffectiveSetting[] {
  return Object.values<Setting<unknown>>(SETTINGS).map((setting) => {
    const reading = readSetting(setting, env);
    const isHidden = setting.isSecret && reading.source !== 'default';
    const shown = 'fault' in reading ? '(refused)' : reading.text;
    return { name: setting.name, value: isHidden ? '(hidden)' : shown, source: reading.source, help: setting.help };
  });
}

/** What the command line client takes from the environment; the client checks `url` and reads `tokenFile` itself. */
export interface ClientSettings {
  /** `CAPSTAN_URL`, otherwise this machine at `CAPSTAN_PORT` or its default. */
  readonly url: string;
  readonly token?: string;
  /** Path of a file that holds the token. */
  readonly tokenFile?: string;
  /** Any of `CAPSTAN_URL`, `CAPSTAN_TOKEN` and `CAPSTAN_TOKEN_FILE` is set: together they name server and token. */
  readonly namesServer: boolean;
  /** `CAPSTAN_PROFILE`. */
  readonly profile?: string;
  /** Where the client keeps its profiles; none where nobody has a home. */
  readonly configDir?: string;
  /** Where a server of this machine keeps its files. */
  readonly dataDir: string;
  /** https://no-color.org: set to anything but an empty text. */
  readonly noColor: boolean;
  /** What the client is to be started by once more: who has it through npx has no `capstan` on the PATH. */
  readonly program: 'capstan' | 'npx capstan';
}

/** Never fails: a client must work beside a server's broken settings, so those that can't be read count as unset. */
export function clientSettings(env: Environment): ClientSettings {
  // Port 0 is any free port: nobody can know it from here.
  const port = valueOrDefault(SETTINGS.port, env) || SETTINGS.port.fallback.value();
  return {
    url: env.CAPSTAN_URL || `http://127.0.0.1:${port}`,
    ...(env.CAPSTAN_TOKEN ? { token: env.CAPSTAN_TOKEN } : {}),
    ...(env.CAPSTAN_TOKEN_FILE ? { tokenFile: env.CAPSTAN_TOKEN_FILE } : {}),
    namesServer: Boolean(env.CAPSTAN_URL || env.CAPSTAN_TOKEN || env.CAPSTAN_TOKEN_FILE),
    ...(env.CAPSTAN_PROFILE ? { profile: env.CAPSTAN_PROFILE } : {}),
    ...configDirIn(env),
    dataDir: valueOrDefault(SETTINGS.dataDir, env),
    noColor: Boolean(env.NO_COLOR),
    program: env.npm_command === 'exec' && env.npm_lifecycle_event === 'npx' ? 'npx capstan' : 'capstan',
  };
}

/** https://specifications.freedesktop.org/basedir: a relative path counts as none. */
function configDirIn({ XDG_CONFIG_HOME: folder = '', HOME: home = '' }: Environment): { configDir?: string } {
  if (isAbsolute(folder)) return { configDir: join(folder, 'capstan') };
  return isAbsolute(home) ? { configDir: join(home, '.config', 'capstan') } : {};
}

function valueOrDefault<T>(setting: Setting<T>, env: Environment): T {
  const reading = readSetting(setting, env);
  return 'fault' in reading ? setting.fallback.value() : reading.value;
}
