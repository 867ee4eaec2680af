/** The keeper's reading of a database URL: TLS as the application's own driver understands the same words. */
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { allowsPlain, sessionUrl } from '../../../src/platform/db/session-url.js';

const base = 'postgres://ann:s3cret@db.example/capstan';
/** What the driver makes of the URL. */
const tlsOf = (url: string): unknown => new pg.Client(url).ssl;

describe('sslmode', () => {
  it('a URL without one is taken as it is', () => {
    for (const url of [base, `${base}?host=/run/postgresql`]) expect(sessionUrl(url)).toBe(url);
    expect(tlsOf(sessionUrl(base))).toBe(false);
  });

  it.each([
    ['disable', false],
    ['allow', { rejectUnauthorized: false }],
    ['prefer', { rejectUnauthorized: false }],
    ['require', { rejectUnauthorized: false }],
    ['no-verify', { rejectUnauthorized: false }],
    ['verify-ca', {}],
    ['verify-full', {}],
  ])('%s makes TLS of the same strength as the pool has', (mode, expected) => {
    expect(tlsOf(sessionUrl(`${base}?sslmode=${mode}&connect_timeout=3`))).toEqual(expected);
  });

  it('only prefer may go on without TLS', () => {
    expect(
      ['disable', 'allow', 'prefer', 'require', 'verify-full'].filter((m) => allowsPlain(`${base}?sslmode=${m}`)),
    ).toEqual(['prefer']);
    expect(allowsPlain(base)).toBe(false);
    expect(tlsOf(sessionUrl(`${base}?sslmode=prefer`, true))).toBe(false);
  });

  it('user, password, host and database stay what they were', () => {
    const client = new pg.Client(
      sessionUrl('postgres://a%40b:p%3Fq%26r@h:6543/d?sslmode=require&options=-c%20geqo%3Doff'),
    );
    expect([client.user, client.password, client.host, client.port, client.database]).toEqual([
      'a@b',
      'p?q&r',
      'h',
      6543,
      'd',
    ]);
  });
});
