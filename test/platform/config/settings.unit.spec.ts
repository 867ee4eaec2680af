/**
 * Every setting of the table, one by one: its edges are taken, what lies beyond them is refused, and a refusal names
 * the setting and what it expects but never the text. `CASES` is tied to the table: a new setting asks for its own.
 */
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/platform/config/config.js';
import type { Environment, Setting } from '../../../src/platform/config/setting.js';
import { SETTINGS } from '../../../src/platform/config/settings.js';

type Key = keyof typeof SETTINGS;

interface Case {
  readonly name: string;
  /** Words that a refusal must hold. */
  readonly says: string;
  readonly taken: readonly (readonly [text: string, value: unknown])[];
  readonly refused: readonly string[];
}

const DAY = 86_400_000;
const DURATION_WORDS = '(an integer and ms, s, m, h or d)';
const NOT_INTEGERS = ['hunter2', '-1', '+1', '1.0', '1e2', '0x10', '007', ' 1', '1 ', '1\n', 'NaN', 'Infinity', '１'];
const NOT_DURATIONS = ['hunter2', '5', '-5s', '1.5h', '5 s', '5S', 's', '5s ', '5s\n', '1h30m', '5w', '9'.repeat(400)];
const NOT_URLS = [
  'hunter2',
  'mysql://u:hunter2@db/x',
  'POSTGRES',
  'postgres:/db',
  'postgres://u:hunter2%@db/x',
  'postgres://u:hun#ter2@db/x',
  'postgres://u:hunter2@db/x#y',
  'postgres://u:hunter2@a:1,b:2/x',
  'postgres://u:hunter2@a,b/x',
  ' postgres://u:hunter2@db/x',
  'postgres://u:hunter2@db/x\n',
  'postgres://u:hun ter2@db/x',
  'postgres://u:hunter2\u0007@db/x',
  'postgres://u:hunter2\uFFFD@db/x',
];
const URLS = ['postgres://db/x', 'postgresql://u:p%25%23@db:6432/x?sslmode=require', 'postgres://u:p@[::1]:5432/x'];
const same = (texts: readonly string[]) => texts.map((text) => [text, text] as const);

const CASES: { readonly [K in Key]: Case } = {
  databaseUrl: { name: 'DATABASE_URL', says: 'postgres:// or postgresql://', taken: same(URLS), refused: NOT_URLS },
  databaseDirectUrl: {
    name: 'DATABASE_DIRECT_URL',
    says: 'postgres:// or postgresql://',
    taken: same(URLS),
    refused: NOT_URLS,
  },
  dataDir: {
    name: 'CAPSTAN_DATA_DIR',
    says: 'path of a directory',
    taken: same(['.', '/var/lib/capstan', 'C:\\capstan data', './größe']),
    refused: ['hunter2\n', 'hunter2\u001b[2J', 'hunter2\u009b', 'hunter2\uFFFD', '\ud800hunter2'],
  },
  host: {
    name: 'CAPSTAN_HOST',
    says: 'IP address or host name',
    taken: same(['0.0.0.0', '::', '::1', 'localhost', 'a-1.example.com']),
    refused: [
      'hunter2!',
      '127.0.0.300',
      '127.0.0',
      '[::1]',
      '::g',
      '-a',
      'a-',
      'a..b',
      'a b',
      `${'a'.repeat(64)}.com`,
      `${'a.'.repeat(127)}a`,
    ],
  },
  port: {
    name: 'CAPSTAN_PORT',
    says: 'integer 0 to 65535',
    taken: [
      ['0', 0],
      ['65535', 65_535],
    ],
    refused: [...NOT_INTEGERS, '65536'],
  },
  metricsPort: {
    name: 'CAPSTAN_METRICS_PORT',
    says: 'integer 0 to 65535',
    taken: [
      ['0', 0],
      ['65535', 65_535],
    ],
    refused: [...NOT_INTEGERS, '65536'],
  },
  bootstrapToken: {
    name: 'CAPSTAN_BOOTSTRAP_TOKEN',
    says: '24 to 255 visible ASCII',
    taken: same(['!'.repeat(24), '~'.repeat(255)]),
    refused: ['hunter2', 'a'.repeat(23), 'a'.repeat(256), `${'a'.repeat(24)} `, `${'a'.repeat(24)}\n`, 'ä'.repeat(24)],
  },
  name: {
    name: 'CAPSTAN_NAME',
    says: 'letters, digits and . _ -, up to 63',
    taken: same(['a', '9', 'A.b_c-1', 'a'.repeat(63)]),
    refused: ['hunter2!', '.a', '-a', '_a', 'a b', 'ä', 'a\n', 'a'.repeat(64)],
  },
  slots: {
    name: 'CAPSTAN_SLOTS',
    says: 'integer 0 to 1000',
    taken: [
      ['0', 0],
      ['1000', 1_000],
    ],
    refused: [...NOT_INTEGERS, '1001'],
  },
  queues: {
    name: 'CAPSTAN_QUEUES',
    says: 'or * alone',
    taken: [
      ['*', ['*']],
      ['gpu', ['gpu']],
      ['gpu, default,gpu', ['gpu', 'default']],
      [`0,a.b_c-d,${'a'.repeat(63)}`, ['0', 'a.b_c-d', 'a'.repeat(63)]],
    ],
    refused: ['Hunter2', 'gpu,*', '*,*', ',', 'a,', ',a', 'a,,b', '-a', '.a', 'a b', 'a\n,b!', 'a'.repeat(64)],
  },
  killGraceMs: {
    name: 'CAPSTAN_KILL_GRACE',
    says: `duration 1s to 60s ${DURATION_WORDS}`,
    taken: [
      ['1s', 1_000],
      ['1000ms', 1_000],
      ['60s', 60_000],
      ['1m', 60_000],
    ],
    refused: [...NOT_DURATIONS, '0', '999ms', '60001ms'],
  },
  drainTimeoutMs: {
    name: 'CAPSTAN_DRAIN_TIMEOUT',
    says: `duration 0s to 24h ${DURATION_WORDS}`,
    taken: [
      ['0', 0],
      ['0s', 0],
      ['1d', DAY],
      ['24h', DAY],
    ],
    refused: [...NOT_DURATIONS, '86400001ms', '-0'],
  },
  stallLimitMs: {
    name: 'CAPSTAN_STALL_LIMIT',
    says: `duration 70s to 24h ${DURATION_WORDS}`,
    taken: [
      ['70s', 70_000],
      ['24h', DAY],
    ],
    refused: [...NOT_DURATIONS, '0', '69999ms', '86400001ms'],
  },
  leaseTtlMs: {
    name: 'CAPSTAN_LEASE_TTL',
    says: `duration 15s to 10m ${DURATION_WORDS}`,
    taken: [
      ['15s', 15_000],
      ['10m', 600_000],
    ],
    refused: [...NOT_DURATIONS, '0', '14999ms', '600001ms'],
  },
  leaseRenewMs: {
    name: 'CAPSTAN_LEASE_RENEW',
    says: `duration 1s to 3m ${DURATION_WORDS}`,
    taken: [
      ['1s', 1_000],
      ['3m', 180_000],
    ],
    refused: [...NOT_DURATIONS, '0', '999ms', '180001ms'],
  },
  janitorIntervalMs: {
    name: 'CAPSTAN_JANITOR_INTERVAL',
    says: `duration 1s to 60s ${DURATION_WORDS}`,
    taken: [
      ['1s', 1_000],
      ['60s', 60_000],
    ],
    refused: [...NOT_DURATIONS, '0', '999ms', '60001ms'],
  },
  pollIntervalMs: {
    name: 'CAPSTAN_POLL_INTERVAL',
    says: `duration 100ms to 60s ${DURATION_WORDS}`,
    taken: [
      ['100ms', 100],
      ['60s', 60_000],
    ],
    refused: [...NOT_DURATIONS, '0', '99ms', '60001ms'],
  },
  runTimeoutMs: {
    name: 'CAPSTAN_RUN_TIMEOUT',
    says: `duration 1s to 365d ${DURATION_WORDS}`,
    taken: [
      ['1s', 1_000],
      ['365d', 365 * DAY],
    ],
    refused: [...NOT_DURATIONS, '0', '999ms', '366d'],
  },
  maxRunDurationMs: {
    name: 'CAPSTAN_MAX_RUN_DURATION',
    says: `duration 2h to 365d ${DURATION_WORDS}`,
    taken: [
      ['2h', 7_200_000],
      ['365d', 365 * DAY],
    ],
    refused: [...NOT_DURATIONS, '0', '7199999ms', '366d'],
  },
  idempotencyTtlMs: {
    name: 'CAPSTAN_IDEMPOTENCY_TTL',
    says: `duration 1d to 90d ${DURATION_WORDS}`,
    taken: [
      ['1d', DAY],
      ['90d', 90 * DAY],
    ],
    refused: [...NOT_DURATIONS, '0', '23h', '91d'],
  },
  retentionMs: {
    name: 'CAPSTAN_RETENTION',
    says: `duration 1d to 365d ${DURATION_WORDS}`,
    taken: [
      ['1d', DAY],
      ['365d', 365 * DAY],
    ],
    refused: [...NOT_DURATIONS, '0', '0d', '23h', '366d'],
  },
  outputLimitBytes: {
    name: 'CAPSTAN_OUTPUT_LIMIT',
    says: 'size 1MiB to 1GiB (an integer and KiB, MiB or GiB)',
    taken: [
      ['1MiB', 1024 ** 2],
      ['1024KiB', 1024 ** 2],
      ['1GiB', 1024 ** 3],
    ],
    refused: [
      '64',
      '64 MiB',
      '64MB',
      '64mib',
      '1.5MiB',
      '-1MiB',
      '0MiB',
      '1023KiB',
      '2GiB',
      '1000000000GiB',
      'MiB',
      'hunter2MiB',
    ],
  },
  httpAllow: {
    name: 'CAPSTAN_HTTP_ALLOW',
    says: 'comma list of IP addresses and CIDR ranges, or * alone',
    taken: [
      ['*', ['*']],
      ['127.0.0.1', ['127.0.0.1']],
      ['10.0.0.0/8, fd00::/8,10.0.0.0/8,::1', ['10.0.0.0/8', 'fd00::/8', '::1']],
      ['0.0.0.0/0,::/0', ['0.0.0.0/0', '::/0']],
    ],
    refused: [
      'hunter2',
      'localhost',
      '*,*',
      '10.0.0.0/8,*',
      '10.0.0.0/33',
      '10.0.0.0/',
      '10.0.0.0/-1',
      '10.0.0.0/255.0.0.0',
      '10.1',
      '010.0.0.1',
      '0x7f.0.0.1',
      '2130706433',
      '127.0.0.1,',
      ',',
      '127.0.0.1 ::1',
      '127.0.0.1:80',
      '[::1]',
      'fe80::1%eth0',
      '::/129',
      '::ffff:10.0.0.0/104',
      '::ffff:127.0.0.1',
      'fd00::/8/8',
    ],
  },
  auditKey: {
    name: 'CAPSTAN_AUDIT_KEY',
    says: '32 bytes in base64',
    taken: [
      [Buffer.alloc(32, 0xfb).toString('base64'), Buffer.alloc(32, 0xfb)],
      [Buffer.alloc(32, 0xfb).toString('base64url'), Buffer.alloc(32, 0xfb)],
    ],
    refused: [
      'hunter2',
      Buffer.alloc(31).toString('base64'),
      Buffer.alloc(33).toString('base64'),
      Buffer.alloc(32).toString('hex'),
      ` ${Buffer.alloc(32).toString('base64')}`,
      `${Buffer.alloc(32).toString('base64')}\n`,
      `${Buffer.alloc(32).toString('base64').slice(0, -2)}B=`,
    ],
  },
  tsaUrl: {
    name: 'CAPSTAN_TSA_URL',
    says: 'http:// or https:// URL',
    taken: same(['https://freetsa.org/tsr', 'http://127.0.0.1:3161', 'https://tsa.example.com/a?b=c']),
    refused: [
      'hunter2',
      'ftp://a/b',
      'https://',
      'https://u:hunter2@a/b',
      'https://hunter2@a/',
      'https://a/b c',
      'https://a/#b',
      'https://a/\n',
    ],
  },
  tsaIntervalMs: {
    name: 'CAPSTAN_TSA_INTERVAL',
    says: `1m to 24h ${DURATION_WORDS}`,
    taken: [
      ['1m', 60_000],
      ['24h', DAY],
    ],
    refused: [...NOT_DURATIONS, '59s', '25h', '0'],
  },
  logLevel: {
    name: 'CAPSTAN_LOG_LEVEL',
    says: 'one of fatal, error, warn, info, debug, trace, silent',
    taken: same(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    refused: ['hunter2', 'INFO', 'warning', 'info ', 'toString', '10'],
  },
};

/** Leaves every single setting its whole range: no rule between settings binds. */
const ROOMY: Environment = {
  DATABASE_URL: 'postgres://db/x',
  CAPSTAN_LEASE_TTL: '10m',
  CAPSTAN_LEASE_RENEW: '1s',
  CAPSTAN_KILL_GRACE: '1s',
};

const settings: [string, Setting<unknown>][] = Object.entries<Setting<unknown>>(SETTINGS);
const cases: [Key, Case][] = settings.map(([key]) => [key as Key, CASES[key as Key]]);

describe.each(cases)('%s', (key, { name, says, taken, refused }) => {
  it(`S0-52 ${name} takes the values at the edges of its range`, () => {
    for (const [text, value] of taken) {
      const result = readConfig({ ...ROOMY, [name]: text });
      expect(result, `${name} refused ${text}`).toMatchObject({ ok: true });
      expect(result.ok && result.config[key], `${name} misread ${text}`).toEqual(value);
    }
  });

  it(`S0-52 ${name} refuses what it cannot read, naming itself and what it expects, never the value`, () => {
    expect(SETTINGS[key].expects).toContain(says);
    for (const text of refused) {
      const result = readConfig({ ...ROOMY, [name]: text });
      const fault = { name, message: `${name}: expected ${SETTINGS[key].expects}` };
      expect(result, `${name} took ${JSON.stringify(text)}`).toEqual({ ok: false, faults: [fault] });
      expect(JSON.stringify(result), `the value of ${name} leaked`).not.toMatch(/hunter2/i);
    }
    expect(refused.join(), `${name} needs a text that would be recognised in a fault`).toMatch(/hunter2/i);
  });

  it(`F152 ${name} is taken by its schema wherever the program takes it`, () => {
    const isLegal = new Ajv({ allowUnionTypes: true }).compile(SETTINGS[key].schema);
    for (const [text] of taken) expect(isLegal(text), `the schema of ${name} refuses ${text}`).toBe(true);
    expect(isLegal('')).toBe(false);
  });

  it(`F152 ${name} set to an empty text counts as unset`, () => {
    expect(readConfig({ [name]: '' })).toEqual(readConfig({}));
  });
});

describe('the table', () => {
  it('S0-52 declares every setting once, each with words for people, and cannot be changed', () => {
    expect(settings.map(([, { name }]) => name)).toEqual(cases.map(([, { name }]) => name));
    expect(new Set(settings.map(([, { name }]) => name)).size).toBe(settings.length);
    for (const [key, { name, expects, help, fallback }] of settings) {
      expect(name).toMatch(/^(CAPSTAN|DATABASE)_[A-Z_]+$/);
      expect(`${expects}${help}${fallback.shown}`, `${name} has words that break a table`).not.toMatch(/[\n|]/);
      expect(help).toMatch(/^[A-Z].{10,100}\.$/);
      expect(expects.startsWith('duration'), `${key} must carry its unit`).toBe(key.endsWith('Ms'));
      expect(Object.isFrozen(SETTINGS[key as Key])).toBe(true);
    }
    expect(Object.isFrozen(SETTINGS)).toBe(true);
  });

  it('S0-52 keeps the database URLs, the bootstrap token and the signing key secret, and nothing else', () => {
    const secrets = settings.filter(([, { isSecret }]) => isSecret).map(([, { name }]) => name);
    expect(secrets).toEqual(['DATABASE_URL', 'DATABASE_DIRECT_URL', 'CAPSTAN_BOOTSTRAP_TOKEN', 'CAPSTAN_AUDIT_KEY']);
  });
});
