/**
 * Which server is asked, and with which token. Invariant: a token goes only to the host it was given for, which is
 * the one named beside it: on the command line, in the environment, in a profile, or this machine's own server for its
 * own file.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type ClientSettings, clientSettings } from '../platform/config/config.js';
import type { Environment } from '../platform/config/setting.js';
import { Failure, wrongUsage } from './failure.js';
import { type Profile, type Profiles, profileCalled, readProfiles } from './profiles.js';

/** The token that a server with an embedded database makes for its own machine, in its data folder. */
const ADMIN_TOKEN_FILE = 'admin-token';
/** A token and what may stand around it. */
const TOKEN_FILE_BYTES = 4096;

export interface Target {
  /** Ends in a slash. */
  readonly url: URL;
  readonly token: string | undefined;
  /** Where the token came from, or that there is none: for a person who was refused. */
  readonly tokenSource: string;
  /** The profile that would count, were it not for a token in the environment that names no server. */
  readonly passedOver?: string;
}

export interface TargetOptions {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly profile?: string;
}

/** A profile that counts, and who named it. */
interface Chosen extends Profile {
  readonly name: string;
  readonly source: string;
}

export interface Choice extends Target {
  /** Who named the server. */
  readonly urlSource: string;
}

/**
 * `--url` and `--token-file` come first; then the profile that `--profile` names; then what the environment names, as
 * one; then the profile of CAPSTAN_PROFILE, or else the one in use; and last this machine's own server.
 * Reads a token's file when one is named. Fails with `usage` or `unable`.
 */
export function targetOf(options: TargetOptions, env: Environment): Choice {
  const settings = clientSettings(env);
  const profile = chosenProfile(options, settings);
  const { url, urlSource } = address(options, settings, env, profile);
  const { tokenFile } = options;
  if (tokenFile !== undefined) return { url, urlSource, ...fromFile(tokenFile, `--token-file ${tokenFile}`) };
  if (profile === undefined && (settings.token !== undefined || settings.tokenFile !== undefined)) {
    const passedOver = env.CAPSTAN_URL || options.url !== undefined ? undefined : profileBehind(settings);
    return { url, urlSource, ...(passedOver && { passedOver }), ...fromEnvironment(settings, env, url) };
  }
  const token = profile && tokenOf(profile, url);
  return { url, urlSource, ...(token ?? fromOwnServer(settings, env, url)) };
}

function chosenProfile(options: TargetOptions, settings: ClientSettings): Chosen | undefined {
  const { url, tokenFile, profile: named } = options;
  if (named !== undefined) {
    if (url !== undefined) throw wrongUsage('--profile names the server: leave --url out');
    return chosen(readProfiles(settings.configDir), named, `--profile ${named}`);
  }
  const isTold = url !== undefined && tokenFile !== undefined;
  if (isTold || settings.namesServer) return undefined;
  const profiles = readProfiles(settings.configDir);
  if (settings.profile !== undefined) return chosen(profiles, settings.profile, `CAPSTAN_PROFILE=${settings.profile}`);
  return profiles.current === null ? undefined : chosen(profiles, profiles.current, 'the profile in use');
}

/** The name alone, for a remark: what is wrong with the profiles is no matter where they don't count. */
function profileBehind({ profile, configDir }: ClientSettings): string | undefined {
  try {
    return profile ?? readProfiles(configDir).current ?? undefined;
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

function chosen(profiles: Profiles, name: string, source: string): Chosen {
  return { ...profileCalled(profiles, name, source), name, source };
}

function address(
  { url }: TargetOptions,
  settings: ClientSettings,
  env: Environment,
  profile: Chosen | undefined,
): { url: URL; urlSource: string } {
  if (url !== undefined) return { url: serverUrl(url, '--url'), urlSource: '--url' };
  if (profile) return { url: serverUrl(profile.url, `profile ${profile.name}`), urlSource: `profile ${profile.name}` };
  return { url: serverUrl(settings.url, 'CAPSTAN_URL'), urlSource: env.CAPSTAN_URL ? 'CAPSTAN_URL' : 'this machine' };
}

/** For another host than its own it has none. */
function tokenOf({ name, url: own, token }: Chosen, url: URL): Credential | undefined {
  if (token === null || serverUrl(own, `profile ${name}`).origin !== url.origin) return undefined;
  return { token: checked(token, `profile ${name}`), tokenSource: `profile ${name}` };
}

/** Checks an address; `source` is who named it. */
export function serverUrl(text: string, source: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable = url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
  if (!isUsable) throw wrongUsage(`${source}: expected http://HOST:PORT or https://HOST`);
  if (url.username !== '' || url.password !== '') {
    throw wrongUsage(`${source}: a URL with a user or password in it is not taken`, 'use a token: capstan --help');
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

type Credential = Pick<Target, 'token' | 'tokenSource'>;

/** What stands in the environment belongs together: beside a CAPSTAN_URL the token is for that host alone. */
function fromEnvironment(settings: ClientSettings, env: Environment, url: URL): Credential {
  const name = settings.token === undefined ? 'CAPSTAN_TOKEN_FILE' : 'CAPSTAN_TOKEN';
  if (env.CAPSTAN_URL) {
    const own = serverUrl(settings.url, 'CAPSTAN_URL').origin;
    if (own !== url.origin) {
      throw noCredentials(
        `${name} belongs to ${own} (CAPSTAN_URL) and is not sent to ${url.origin}`,
        "name that server's own token with --token-file FILE, or set CAPSTAN_URL instead of --url",
      );
    }
  }
  if (settings.token !== undefined) return { token: checked(settings.token, name), tokenSource: name };
  return fromFile(settings.tokenFile ?? '', `${name} (${settings.tokenFile})`);
}

/**
 * The file is for this machine's server at the very address that its settings name. Another spelling of it, such as
 * `localhost`, may lead to a process of somebody else that listens on [::1].
 */
function fromOwnServer(settings: ClientSettings, env: Environment, url: URL): Credential {
  const own = clientSettings({ ...env, CAPSTAN_URL: undefined }).url;
  const path = join(settings.dataDir, ADMIN_TOKEN_FILE);
  if (url.origin !== new URL(own).origin) {
    return { token: undefined, tokenSource: `no token was given (${path} is only for ${own})` };
  }
  try {
    return { token: checked(tokenIn(path), path), tokenSource: path };
  } catch (error) {
    if (error instanceof Failure) throw error;
    return { token: undefined, tokenSource: `no token was given, and ${path} ${whyUnreadable(error)}` };
  }
}

export function fromFile(path: string, source: string): Credential {
  try {
    return { token: checked(tokenIn(path), source), tokenSource: source };
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw noCredentials(`${source} ${whyUnreadable(error)}`);
  }
}

/** Reads no more than a token could be, whatever stands there: what is longer is none. */
function tokenIn(path: string): string {
  const buffer = Buffer.alloc(TOKEN_FILE_BYTES + 1);
  let bytes = 0;
  const file = openSync(path, 'r');
  try {
    for (let read = -1; read !== 0 && bytes < buffer.length; bytes += read) {
      read = readSync(file, buffer, { offset: bytes });
    }
  } finally {
    closeSync(file);
  }
  return bytes > TOKEN_FILE_BYTES ? '' : buffer.toString('utf8', 0, bytes).trim();
}

function whyUnreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code === 'ENOENT' ? 'does not exist' : `cannot be read${code && `: ${code}`}`;
}

/** Anything else could not stand in a header, and is rather another file taken by mistake. */
export function checked(token: string, source: string): string {
  if (/^[\x21-\x7e]{1,255}$/.test(token)) return token;
  throw noCredentials(`${source} holds no token (1 to 255 visible ASCII characters)`);
}

function noCredentials(detail: string, ...hints: readonly string[]): Failure {
  return new Failure('unable', { title: 'credentials', detail, code: 'credentials' }, hints);
}
