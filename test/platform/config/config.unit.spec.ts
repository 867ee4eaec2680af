/** What a process makes of its variables as a whole: defaults, secrets' files, rules between settings, names, showing. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  clientSettings,
  effectiveSettings,
  processEnvironment,
  readConfig,
} from '../../../src/platform/config/config.js';
import { workerNameFrom } from '../../../src/platform/config/parsers.js';
import { type Environment, optional, setting } from '../../../src/platform/config/setting.js';
import { SETTINGS } from '../../../src/platform/config/settings.js';

const URL_A = 'postgres://app:hunter2@db:5432/a';
const URL_B = 'postgres://app:hunter2@direct:5432/a';
const TOKEN = 'hunter2-hunter2-hunter2-hunter2';

const folder = mkdtempSync(join(tmpdir(), 'capstan-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(content: string | Buffer): string {
  const path = join(mkdtempSync(join(folder, 'secret-')), 'hunter2');
  writeFileSync(path, content);
  return path;
}

function configOf(env: Environment) {
  const result = readConfig(env);
  if (!result.ok) throw new Error(result.faults.map(({ message }) => message).join('\n'));
  return result.config;
}

/** The messages of all faults; none of them may hold the word that every given secret and path holds. */
function faultsOf(env: Environment): string[] {
  const result = readConfig(env);
  expect(JSON.stringify(result), 'a given value leaked').not.toContain('hunter2');
  return result.ok ? [] : result.faults.map(({ message }) => message);
}

describe('defaults', () => {
  it("F092 tools get the operator's PATH, without what npm puts in front of it for its own scripts", () => {
    const PATH = '/app/node_modules/.bin:/tmp/node_modules/.bin:/usr/lib/npm/lib/node-gyp-bin:/opt/bin:/bin';
    expect(configOf({ PATH, npm_lifecycle_event: 'start' }).toolPath).toBe('/opt/bin:/bin');
    expect(configOf({ PATH }).toolPath).toBe(PATH);
  });

  it("requests of runs trust the operator's own certificate authorities, wherever the process works", () => {
    expect(configOf({ NODE_EXTRA_CA_CERTS: '/etc/ca.pem' }).caFile).toBe('/etc/ca.pem');
    expect(configOf({ NODE_EXTRA_CA_CERTS: 'ca.pem' }).caFile).toBe(join(process.cwd(), 'ca.pem'));
    expect(configOf({ NODE_EXTRA_CA_CERTS: '' }).caFile).toBeNull();
  });

  it('F152 with nothing set every setting has the default that is documented', () => {
    expect(configOf({ PATH: '/bin', HOME: '/root' })).toEqual({
      databaseUrl: undefined,
      databaseDirectUrl: undefined,
      dataDir: './.capstan',
      host: '127.0.0.1',
      port: 8080,
      metricsPort: undefined,
      bootstrapToken: undefined,
      name: workerNameFrom(hostname()),
      slots: 4,
      queues: ['default'],
      killGraceMs: 10_000,
      drainTimeoutMs: 30_000,
      stallLimitMs: 120_000,
      leaseTtlMs: 30_000,
      leaseRenewMs: 5_000,
      janitorIntervalMs: 5_000,
      pollIntervalMs: 1_000,
      runTimeoutMs: undefined,
      maxRunDurationMs: 30 * 86_400_000,
      idempotencyTtlMs: 7 * 86_400_000,
      retentionMs: 30 * 86_400_000,
      outputLimitBytes: 64 * 1024 * 1024,
      httpAllow: [],
      auditKey: undefined,
      tsaUrl: undefined,
      tsaIntervalMs: 3_600_000,
      logLevel: 'info',
      toolDeadlineMs: 18_000,
      toolPath: '/bin',
      caFile: null,
    });
  });

  it('F152 the configuration cannot be changed once it is read', () => {
    expect(Object.isFrozen(configOf({}))).toBe(true);
  });

  it('F152 a default that its own setting would refuse cannot be declared', () => {
    const declared = { name: 'X', group: 'Runs', value: SETTINGS.slots, help: 'x' } as const;
    expect(() => setting({ ...declared, default: '1001' })).toThrow('the default of X is not integer 0 to 1000');
    expect(setting({ ...declared, default: '7' }).fallback.value()).toBe(7);
    expect(optional({ ...declared, unset: 'none' }).fallback.value()).toBeUndefined();
  });

  it('F152 any host name makes a legal name of a worker', () => {
    expect(workerNameFrom('web-1.example.com')).toBe('web-1.example.com');
    expect(workerNameFrom('_my host')).toBe('my-host');
    expect(workerNameFrom('größe')).toBe('gr--e');
    expect(workerNameFrom('a'.repeat(200))).toBe('a'.repeat(63));
    expect(workerNameFrom('..')).toBe('capstan');
  });

  it('S4-63 the direct URL is the shared one unless it is set', () => {
    expect(configOf({ DATABASE_URL: URL_A })).toMatchObject({ databaseUrl: URL_A, databaseDirectUrl: URL_A });
    expect(configOf({ DATABASE_URL: URL_A, DATABASE_DIRECT_URL: URL_B })).toMatchObject({ databaseDirectUrl: URL_B });
  });
});

describe('faults', () => {
  it('S0-52 all faults of all kinds are reported at once, and no value with them', () => {
    const faults = faultsOf({
      DATABASE_DIRECT_URL: 'hunter2',
      CAPSTAN_SLOTS: 'hunter2',
      CAPSTAN_LEASE_RENEW: '10s',
      CAPSTAN_LOG_LEVEL: 'hunter2',
      CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
      CAPSTAN_BOOTSTRAP_TOKEN_FILE: '/hunter2',
      CAPSTAN_SLOT: 'hunter2',
      CAPSTAN_API_SERVICE_HOST: 'hunter2',
    });
    expect(faults.map((message) => message.split(/[: ]/)[0])).toEqual([
      'CAPSTAN_API_SERVICE_HOST',
      'CAPSTAN_SLOT',
      'DATABASE_DIRECT_URL',
      'CAPSTAN_BOOTSTRAP_TOKEN',
      'CAPSTAN_SLOTS',
      'CAPSTAN_LOG_LEVEL',
      'DATABASE_DIRECT_URL',
      'CAPSTAN_LEASE_TTL',
    ]);
  });

  it('F152 a direct URL without the shared one is refused, however either is given', () => {
    const fault = ['DATABASE_DIRECT_URL is set without DATABASE_URL: set that too or leave this out'];
    expect(faultsOf({ DATABASE_DIRECT_URL: URL_B })).toEqual(fault);
    expect(faultsOf({ DATABASE_DIRECT_URL: URL_B, DATABASE_URL: '' })).toEqual(fault);
    expect(faultsOf({ DATABASE_DIRECT_URL_FILE: file(URL_B) })).toEqual(fault);
    expect(configOf({ DATABASE_DIRECT_URL: URL_B, DATABASE_URL_FILE: file(URL_A) }).databaseUrl).toBe(URL_A);
  });

  it('F152 a direct URL beside a shared one that cannot be read is no second fault', () => {
    expect(faultsOf({ DATABASE_DIRECT_URL: URL_B, DATABASE_URL: 'hunter2' })).toHaveLength(1);
  });
});

describe('the lease', () => {
  const lease = (ttl: string, renew: string, grace: string): Environment => ({
    CAPSTAN_LEASE_TTL: ttl,
    CAPSTAN_LEASE_RENEW: renew,
    CAPSTAN_KILL_GRACE: grace,
  });

  it('F152 a lease that cannot cover three renewals before its tools must stop is refused with the needed minimum', () => {
    expect(faultsOf({ CAPSTAN_LEASE_TTL: '26999ms' })).toEqual([
      'CAPSTAN_LEASE_TTL: expected at least 27s, because CAPSTAN_LEASE_TTL - CAPSTAN_KILL_GRACE - 2s must be at ' +
        'least 3 x CAPSTAN_LEASE_RENEW; or lower CAPSTAN_LEASE_RENEW or CAPSTAN_KILL_GRACE',
    ]);
    expect(configOf({ CAPSTAN_LEASE_TTL: '27s' }).toolDeadlineMs).toBe(15_000);
  });

  it('F152 the same rule binds whichever of the three times is set', () => {
    expect(faultsOf({ CAPSTAN_LEASE_RENEW: '6001ms' })).toHaveLength(1);
    expect(configOf({ CAPSTAN_LEASE_RENEW: '6s' }).toolDeadlineMs).toBe(18_000);
    expect(faultsOf({ CAPSTAN_KILL_GRACE: '13001ms' })).toHaveLength(1);
    expect(configOf({ CAPSTAN_KILL_GRACE: '13s' }).toolDeadlineMs).toBe(15_000);
    expect(configOf(lease('15s', '3s', '4s')).toolDeadlineMs).toBe(9_000);
    expect(faultsOf(lease('10m', '3m', '60s'))[0]).toContain('at least 602s,');
  });

  it('S0-52 the rule of the lease says what is needed and never what was given', () => {
    const [message] = faultsOf(lease('16s', '7s', '12s'));
    expect(message).toContain('at least 35s');
    expect(message).not.toMatch(/16|\b7s|12s/);
  });

  it('F152 the rule waits until the three times can be read', () => {
    expect(faultsOf(lease('15s', 'hunter2', '10s'))).toEqual([
      `CAPSTAN_LEASE_RENEW: expected ${SETTINGS.leaseRenewMs.expects}`,
    ]);
  });
});

describe('secrets in files', () => {
  it('F152 every secret may come as a file, and one line end is cut off', () => {
    const env = (end: string): Environment => ({
      DATABASE_URL_FILE: file(URL_A + end),
      DATABASE_DIRECT_URL_FILE: file(URL_B + end),
      CAPSTAN_BOOTSTRAP_TOKEN_FILE: file(TOKEN + end),
    });
    const expected = { databaseUrl: URL_A, databaseDirectUrl: URL_B, bootstrapToken: TOKEN };
    for (const end of ['', '\n', '\r\n']) expect(configOf(env(end))).toMatchObject(expected);
    expect(faultsOf(env('\n\n')), 'more than one line end was cut off').toHaveLength(3);
  });

  it.each(['DATABASE_URL', 'DATABASE_DIRECT_URL', 'CAPSTAN_BOOTSTRAP_TOKEN'])(
    'S0-52 the file of %s is refused by the name of the setting, never by path or content',
    (name) => {
      const base = name === 'DATABASE_DIRECT_URL' ? { DATABASE_URL: 'postgres://db/x' } : {};
      const fromFile = (path: string) => faultsOf({ ...base, [`${name}_FILE`]: path });
      const unreadable = [`${name}_FILE: the file it names cannot be read`];
      expect(fromFile(join(folder, 'hunter2-missing'))).toEqual(unreadable);
      expect(fromFile(folder)).toEqual(unreadable);
      expect(fromFile('hunter2\u0000')).toEqual(unreadable);
      const refused = [expect.stringMatching(new RegExp(`^${name}_FILE: expected a file that holds `))];
      expect(fromFile(file('hunter2'))).toEqual(refused);
      expect(fromFile(file('')), 'an empty file counted as unset').toEqual(refused);
      expect(fromFile(file(Buffer.from([0xff, 0xfe, 0x68, 0x69])))).toEqual(refused);
    },
  );

  it('F152 a secret given both ways is refused, even when both agree', () => {
    expect(faultsOf({ DATABASE_URL: URL_A, DATABASE_URL_FILE: file(URL_A) })).toEqual([
      'DATABASE_URL and DATABASE_URL_FILE are both set: set one of them',
    ]);
    expect(configOf({ DATABASE_URL: '', DATABASE_URL_FILE: file(URL_A) }).databaseUrl).toBe(URL_A);
    expect(configOf({ DATABASE_URL: URL_A, DATABASE_URL_FILE: '' }).databaseUrl).toBe(URL_A);
  });
});

describe('names', () => {
  it.each([
    ['CAPSTAN_SLOT', 'CAPSTAN_SLOTS'],
    ['CAPSTAN_slots', 'CAPSTAN_SLOTS'],
    ['CAPSTAN_LEASETTL', 'CAPSTAN_LEASE_TTL'],
    ['CAPSTAN_LOGLEVEL', 'CAPSTAN_LOG_LEVEL'],
    ['CAPSTAN_DATABASE_URL', 'DATABASE_URL'],
    ['CAPSTAN_DATABASE_DIRECT_URL_FILE', 'DATABASE_DIRECT_URL_FILE'],
    ['CAPSTAN_BOOTSTRAP_TOKN_FILE', 'CAPSTAN_BOOTSTRAP_TOKEN_FILE'],
    ['CAPSTAN_PORT_FILE', 'CAPSTAN_PORT'],
    ['CAPSTAN_TOKENS', 'CAPSTAN_TOKEN'],
  ])('F152 the misspelt %s is refused, and %s is named as the nearest', (misspelt, nearest) => {
    expect(faultsOf({ [misspelt]: 'hunter2' })).toEqual([`${misspelt} is not a setting; did you mean ${nearest}?`]);
  });

  const prefixed = Object.values(SETTINGS).flatMap(({ name }) => (name.startsWith('CAPSTAN_') ? [name] : []));
  it.each(prefixed)('F152 %s with a letter missing is refused', (name) => {
    const misspelt = `${name.slice(0, -2)}${name.slice(-1)}`;
    expect(faultsOf({ [misspelt]: '1' })).toEqual([`${misspelt} is not a setting; did you mean ${name}?`]);
  });

  it('F152 a server takes no notice of what is meant for the client, the tests and the tools', () => {
    const others = [
      'URL',
      'TOKEN',
      'TOKEN_FILE',
      'TEST_URL',
      'RUN_ID',
      'FENCE',
      'ATTEMPT',
      'OUTPUT_FILE',
      'EVENTS_FILE',
    ];
    const env = Object.fromEntries(others.map((rest) => [`CAPSTAN_${rest}`, 'hunter2']));
    expect(configOf(env)).toEqual(configOf({}));
  });

  it('F152 variables of other programs and empty ones are none of ours', () => {
    expect(configOf({ CAPSTANX: 'a', PORT: 'a', LOG_LEVEL: 'a', CAPSTAN_SLOT: '' })).toEqual(configOf({}));
    expect(configOf({ CAPSTAN_SERVICE_HOST: '' })).toEqual(configOf({}));
  });

  it('S0-52 a hostile name is shown harmless and short', () => {
    const [message = ''] = faultsOf({ [`CAPSTAN_\u001b[2J\n\uFFFD${'x'.repeat(9_999)}`]: '1' });
    expect(message).toMatch(/^CAPSTAN_[?A-Za-z0-9]{72} is not a setting; did you mean [A-Z_]+\?$/);
  });
});

describe("Kubernetes' service variables", () => {
  const linksOf = (service: string, address = 'tcp://10.0.0.7:80'): Environment => ({
    [`${service}_SERVICE_HOST`]: '10.0.0.7',
    [`${service}_SERVICE_PORT`]: '80',
    [`${service}_SERVICE_PORT_HTTP`]: '80',
    [`${service}_PORT`]: address,
    [`${service}_PORT_80_TCP`]: address,
    [`${service}_PORT_80_TCP_PROTO`]: 'tcp',
    [`${service}_PORT_80_TCP_PORT`]: '80',
    [`${service}_PORT_80_TCP_ADDR`]: '10.0.0.7',
  });
  const why = (service: string) =>
    `set by Kubernetes for a service named ${service}: set enableServiceLinks: false or rename the service`;

  it('F152 all variables of a service named capstan are one fault that says why', () => {
    expect(faultsOf(linksOf('CAPSTAN'))).toEqual([`CAPSTAN_PORT and 7 more: ${why('capstan')}`]);
    expect(faultsOf(linksOf('CAPSTAN', 'udp://10.0.0.7:80'))).toHaveLength(1);
  });

  it('F152 CAPSTAN_PORT=tcp://… alone is told from a mistyped port', () => {
    expect(faultsOf({ CAPSTAN_PORT: 'tcp://10.0.0.7:80' })).toEqual([`CAPSTAN_PORT: ${why('capstan')}`]);
    expect(faultsOf({ CAPSTAN_PORT: 'http://10.0.0.7' })).toEqual(['CAPSTAN_PORT: expected integer 0 to 65535']);
  });

  it.each(Object.keys(linksOf('CAPSTAN')))('F152 %s is recognised by itself', (name) => {
    expect(faultsOf({ [name]: 'tcp://10.0.0.7:80' })).toEqual([`${name}: ${why('capstan')}`]);
  });

  it('F152 a service whose name begins with capstan is named as it is', () => {
    const faults = faultsOf({ ...linksOf('CAPSTAN_METRICS'), ...linksOf('CAPSTAN_POSTGRES_RW'), ...linksOf('OTHER') });
    expect(faults).toEqual([
      `CAPSTAN_METRICS_PORT and 7 more: ${why('capstan-metrics')}`,
      `CAPSTAN_POSTGRES_RW_PORT and 7 more: ${why('capstan-postgres-rw')}`,
    ]);
  });

  it('F152 ports that a person set are no service variables', () => {
    expect(configOf({ CAPSTAN_PORT: '81', CAPSTAN_METRICS_PORT: '82' })).toMatchObject({ port: 81, metricsPort: 82 });
  });
});

describe('what is shown', () => {
  const shown = (env: Environment) => new Map(effectiveSettings(env).map((row) => [row.name, row]));

  it('F152 shows every setting in order with its value, where it comes from and its help', () => {
    const rows = effectiveSettings({ CAPSTAN_SLOTS: '9', CAPSTAN_LEASE_TTL: '' });
    expect(rows.map(({ name }) => name)).toEqual(Object.values(SETTINGS).map(({ name }) => name));
    const row = (name: string) => rows.find((one) => one.name === name);
    const help = SETTINGS.slots.help;
    expect(row('CAPSTAN_SLOTS')).toEqual({ name: 'CAPSTAN_SLOTS', value: '9', source: 'environment', help });
    expect(row('CAPSTAN_LEASE_TTL')).toMatchObject({ value: '30s', source: 'default' });
    expect(row('CAPSTAN_NAME')).toMatchObject({ value: workerNameFrom(hostname()), source: 'default' });
    expect(row('DATABASE_URL')).toMatchObject({ value: 'unset: an embedded PostgreSQL', source: 'default' });
  });

  it('S0-52 hides every secret, and every text that cannot be read', () => {
    const env = {
      DATABASE_URL: URL_A,
      DATABASE_DIRECT_URL: 'hunter2',
      CAPSTAN_BOOTSTRAP_TOKEN_FILE: file(TOKEN),
      CAPSTAN_SLOTS: 'hunter2',
      CAPSTAN_DATA_DIR: 'hunter2\u001b[2J',
    };
    expect(JSON.stringify(effectiveSettings(env))).not.toContain('hunter2');
    const rows = shown(env);
    expect(rows.get('DATABASE_URL')).toMatchObject({ value: '(hidden)', source: 'environment' });
    expect(rows.get('DATABASE_DIRECT_URL')).toMatchObject({ value: '(hidden)', source: 'environment' });
    expect(rows.get('CAPSTAN_BOOTSTRAP_TOKEN')).toMatchObject({ value: '(hidden)', source: 'file' });
    expect(rows.get('CAPSTAN_SLOTS')).toMatchObject({ value: '(refused)', source: 'environment' });
    expect(rows.get('CAPSTAN_DATA_DIR')).toMatchObject({ value: '(refused)', source: 'environment' });
  });
});

describe('the command line client', () => {
  it('F152 speaks to this machine when nothing is set', () => {
    const expected = {
      url: 'http://127.0.0.1:8080',
      dataDir: './.capstan',
      namesServer: false,
      noColor: false,
      program: 'capstan',
    };
    expect(clientSettings({})).toEqual(expected);
    expect(clientSettings({ CAPSTAN_URL: '', CAPSTAN_TOKEN: '', CAPSTAN_TOKEN_FILE: '', NO_COLOR: '' })).toEqual(
      expected,
    );
  });

  it('F152 takes the port and the directory of the server beside it, and their defaults when they cannot be read', () => {
    expect(clientSettings({ CAPSTAN_PORT: '81', CAPSTAN_DATA_DIR: '/d' })).toMatchObject({
      url: 'http://127.0.0.1:81',
      dataDir: '/d',
    });
    for (const port of ['0', 'x', 'tcp://10.0.0.7:80']) {
      expect(clientSettings({ CAPSTAN_PORT: port, CAPSTAN_SLOT: '1' }).url).toBe('http://127.0.0.1:8080');
    }
    expect(clientSettings({ CAPSTAN_DATA_DIR: 'd\n' }).dataDir).toBe('./.capstan');
  });

  it('F152 takes its address, its token and the file of it as they are given', () => {
    const env = { CAPSTAN_URL: 'https://c', CAPSTAN_TOKEN: 't', CAPSTAN_TOKEN_FILE: '/t', NO_COLOR: '0' };
    expect(clientSettings(env)).toMatchObject({ url: 'https://c', token: 't', tokenFile: '/t', noColor: true });
  });

  it('F152 keeps its profiles below XDG_CONFIG_HOME or the home, and nowhere without them', () => {
    expect(clientSettings({ XDG_CONFIG_HOME: '/x', HOME: '/h' }).configDir).toBe('/x/capstan');
    for (const relative of ['', 'x', '~/x']) {
      expect(clientSettings({ XDG_CONFIG_HOME: relative, HOME: '/h' }).configDir).toBe('/h/.config/capstan');
    }
    expect(clientSettings({ HOME: 'h' }).configDir).toBeUndefined();
  });

  it('F152 a server or a token in the environment is told from a profile there', () => {
    for (const name of ['CAPSTAN_URL', 'CAPSTAN_TOKEN', 'CAPSTAN_TOKEN_FILE']) {
      expect(clientSettings({ [name]: 'https://x', CAPSTAN_PROFILE: 'p' })).toMatchObject({
        namesServer: true,
        profile: 'p',
      });
    }
    expect(clientSettings({ CAPSTAN_PROFILE: 'p' }).namesServer).toBe(false);
  });

  it('is started by npx once more when npx started it, and by its name in a script of a package', () => {
    const npx = { npm_command: 'exec', npm_lifecycle_event: 'npx' };
    expect(clientSettings(npx).program).toBe('npx capstan');
    expect(clientSettings({ ...npx, npm_command: 'run-script' }).program).toBe('capstan');
    expect(clientSettings({ ...npx, npm_lifecycle_event: 'deploy' }).program).toBe('capstan');
  });

  it('F152 the variables of this process are copied once and cannot be changed', () => {
    const env = processEnvironment();
    expect(env.PATH).toBe(process.env.PATH);
    expect(Object.isFrozen(env)).toBe(true);
    expect(env).not.toBe(process.env);
  });
});
