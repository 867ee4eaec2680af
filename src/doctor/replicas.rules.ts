/** What is wrong between replicas that share a database. Pure. */
import type { Check, Fault } from '../kernel/diagnosis.js';
import type { ConnectedLife } from './replicas.js';

/** Longer than a rolling upgrade takes. */
const UPGRADE_MINUTES = 60;
/** Nothing is decided by it, but logs and times of output are of little use. */
const CLOCK_MS = 10_000;
/** Replicas make partitions every ten minutes, days ahead. */
const SETTLED_MINUTES = 20;

/** `key` is the fingerprint of the key that signs, as the installation's chain says. */
export function replicasCheck(connected: readonly ConnectedLife[], key: string | undefined): Check {
  const lives = connected.filter((life) => !isReplaced(life, connected));
  const versions = [...new Set(lives.map(({ version }) => version))];
  return {
    name: 'replicas',
    summary: lives.length === 0 ? 'none is connected' : `${lives.length} connected, version ${versions.join(', ')}`,
    faults: [...sameName(lives), ...otherVersions(lives), ...otherKeys(lives, key), ...farClocks(lives)],
    notes: [],
  };
}

/**
 * A process of the same name came, and this one has not renewed since: it was killed, and its lease is not over yet. What
 * renews beside the other for longer than one renewal lives beside it; a lease covers three of them.
 */
function isReplaced(life: ConnectedLife, lives: readonly ConnectedLife[]): boolean {
  return lives.some(
    ({ name, startedAtMs }) =>
      name === life.name && startedAtMs > life.startedAtMs && life.seenAtMs <= startedAtMs + life.ttlMs / 3,
  );
}

function sameName(lives: readonly ConnectedLife[]): Fault[] {
  const names = lives.map(({ name }) => name);
  const twice = [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
  return twice.map((name) => ({
    what: `${names.filter((each) => each === name).length} connected processes are called ${name}`,
    remedy: 'give each its own CAPSTAN_NAME',
  }));
}

/** Since the last of the versions came. */
function otherVersions(lives: readonly ConnectedLife[]): Fault[] {
  const oldest = new Map<string, number>();
  for (const { version, ageMinutes } of lives) {
    oldest.set(version, Math.max(oldest.get(version) ?? 0, ageMinutes));
  }
  const minutes = Math.min(...oldest.values());
  if (oldest.size < 2 || minutes <= UPGRADE_MINUTES) return [];
  const who = [...oldest.keys()].map(
    (version) => `${version} (${namesOf(lives.filter((l) => l.version === version))})`,
  );
  return [
    {
      what: `different versions have been running side by side for ${minutes} minutes: ${who.join(', ')}`,
      remedy: 'finish the upgrade',
    },
  ];
}

function otherKeys(lives: readonly ConnectedLife[], key: string | undefined): Fault[] {
  if (key === undefined) return [];
  const judged = lives.filter(({ kind, clockAheadMs }) => kind === 'replica' && clockAheadMs !== null);
  const missing = judged.filter(({ signs }) => signs === null);
  const other = judged.filter(({ signs }) => signs !== null && signs !== key);
  const remedy = `start it with the key ${key} (CAPSTAN_AUDIT_KEY_FILE)`;
  return [
    ...missing.map(({ name }) => ({
      what: `${name} signs no bundles: the installation has a key, and this replica was not given it`,
      remedy,
    })),
    ...other.map(({ name, signs }) => ({
      what: `${name} signs no bundles: its key ${signs} is not the one of the installation any more`,
      remedy,
    })),
  ];
}

function farClocks(lives: readonly ConnectedLife[]): Fault[] {
  return lives.flatMap(({ name, clockAheadMs }) => {
    if (clockAheadMs === null || Math.abs(clockAheadMs) <= CLOCK_MS) return [];
    const seconds = Math.round(Math.abs(clockAheadMs) / 1_000);
    const where = clockAheadMs > 0 ? 'ahead of' : 'behind';
    return [
      {
        what: `the clock of ${name} is ${seconds} s ${where} the database's`,
        remedy: 'let both machines follow the same time servers (chrony, systemd-timesyncd)',
      },
    ];
  });
}

export function partitionsCheck(missing: readonly string[], lives: readonly ConnectedLife[]): Check {
  const isSettled = lives.some(({ ageMinutes }) => ageMinutes > SETTLED_MINUTES);
  const faults = missing.map((partition) => ({
    what: `${partition} was not made ahead: its rows will go to the default partition`,
    remedy: "look for loop_failed of housekeeping in the replicas' logs; the role needs to own the tables",
  }));
  return {
    name: 'partitions',
    summary: missing.length === 0 ? 'made ahead' : 'made when a replica runs',
    faults: isSettled ? faults : [],
    notes: [],
  };
}

function namesOf(lives: readonly ConnectedLife[]): string {
  return lives.map(({ name }) => name).join(', ');
}
