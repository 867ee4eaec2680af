/**
 * Which variables are ours. A `CAPSTAN_…` variable that nobody reads would be a setting silently ignored, so it is
 * a fault here; so are the variables that Kubernetes makes of a service whose name begins with `capstan`. Pure.
 */
import { closest } from 'fastest-levenshtein';
import { type Environment, type Fault, fileVariable } from './setting.js';
import { SETTINGS } from './settings.js';

const PREFIX = 'CAPSTAN_';

/** Read by the command line client, by tests or by a tool; a server takes no notice of them. */
const NOT_THE_SERVERS = [
  'CAPSTAN_URL',
  'CAPSTAN_TOKEN',
  'CAPSTAN_TOKEN_FILE',
  'CAPSTAN_PROFILE',
  'CAPSTAN_TEST_URL',
  'CAPSTAN_RUN_ID',
  'CAPSTAN_FENCE',
  'CAPSTAN_ATTEMPT',
  'CAPSTAN_OUTPUT_FILE',
  'CAPSTAN_EVENTS_FILE',
];

const KNOWN: ReadonlySet<string> = new Set([
  ...Object.values(SETTINGS).flatMap(({ name, isSecret }) => (isSecret ? [name, fileVariable(name)] : [name])),
  ...NOT_THE_SERVERS,
]);

/** What people remember is the part behind the prefix: `CAPSTAN_DATABASE_URL` is meant to be `DATABASE_URL`. */
const KNOWN_BY_REST: ReadonlyMap<string, string> = new Map([...KNOWN].map((name) => [restOf(name), name]));

const SERVICE_LINK =
  /^(CAPSTAN(?:_[A-Z0-9]+)*?)_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_[A-Z]+)?)$/;
/** A service `capstan-metrics` makes a `CAPSTAN_METRICS_PORT`: only its value tells it from the setting. */
const SERVICE_PORT_LINK = /^(CAPSTAN(?:_[A-Z0-9]+)*?)_PORT$/;

/** One fault for each set `CAPSTAN_…` variable that is none of the known ones, naming the nearest known one. */
export function unknownNames(env: Environment): Fault[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && env[name] && !KNOWN.has(name))
    .sort()
    .map((name) => {
      const shown = printable(name);
      return { name: shown, message: `${shown} is not a setting; did you mean ${nearestKnown(name)}?` };
    });
}

/** Takes Kubernetes' service variables out of `env`: one fault for each service, whatever the number of variables. */
export function withoutServiceLinks(env: Environment): { readonly env: Environment; readonly faults: Fault[] } {
  const own: Record<string, string | undefined> = {};
  const links = new Map<string, string[]>();
  for (const name of Object.keys(env).sort()) {
    const service = serviceBehind(name, env[name]);
    if (service === undefined) own[name] = env[name];
    else links.set(service, [...(links.get(service) ?? []), name]);
  }
  const faults = [...links].map(([service, [name = '', ...more]]) => {
    const names = more.length > 0 ? `${name} and ${more.length} more` : name;
    const remedy = 'set enableServiceLinks: false or rename the service';
    return { name, message: `${names}: set by Kubernetes for a service named ${service}: ${remedy}` };
  });
  return { env: own, faults };
}

/** The name of the service that a variable was made of, if it was. */
function serviceBehind(name: string, value: string | undefined): string | undefined {
  if (!value) return undefined;
  const isAddress = /^(tcp|udp|sctp):\/\//.test(value);
  const match = SERVICE_LINK.exec(name) ?? (isAddress ? SERVICE_PORT_LINK.exec(name) : null);
  return match?.[1]?.toLowerCase().replaceAll('_', '-');
}

function nearestKnown(name: string): string | undefined {
  const rest = restOf(name.toUpperCase());
  // Only secrets come as files; by distance alone `CAPSTAN_PORT_FILE` would be nearest to `CAPSTAN_TOKEN_FILE`.
  const meant = [rest, rest.replace(/_FILE$/, ''), closest(rest, [...KNOWN_BY_REST.keys()])];
  return meant.map((each) => KNOWN_BY_REST.get(each)).find((known) => known !== undefined);
}

function restOf(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}

/** A name may hold any byte but `=`; what is shown of it cannot steer a terminal or flood a log. */
function printable(name: string): string {
  return name.replace(/[^A-Za-z0-9_.-]/g, '?').slice(0, 80);
}
