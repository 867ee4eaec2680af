/** The requester's pure decisions: which addresses, what a next hop carries, what is kept of an answer. */
import { describe, expect, it } from 'vitest';
import { addressRule } from '../../../src/execution/requester/addresses.js';
import { firstHop, type Hop, nextHop } from '../../../src/execution/requester/hops.rules.js';
import {
  headersOf,
  judgeDenied,
  judgeFault,
  MAX_KEPT_BODY_BYTES,
  resultOf,
} from '../../../src/execution/requester/result.rules.js';
import { findPrototypeAccess } from '../../../src/platform/http/json-body.js';
import { requestOf } from '../supervisor/rig.js';

describe('the addresses that requests may go to', () => {
  const isPublic = addressRule([]);

  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '93.184.216.34',
    '172.15.255.255',
    '172.32.0.0',
    '168.63.129.15',
    '168.63.129.17',
    '100.128.0.0',
    '2606:4700:4700::1111',
    '2a00:1450:4001::1',
    '::ffff:8.8.8.8',
    '::ffff:808:808',
  ])('are public ones: %s', (address) => {
    expect(isPublic(address)).toBe(true);
  });

  it.each([
    ['loopback', '127.0.0.1'],
    ['loopback', '127.255.255.254'],
    ['this host', '0.0.0.0'],
    ['this network', '0.1.2.3'],
    ['private', '10.0.0.1'],
    ['private', '172.16.0.1'],
    ['private', '172.31.255.255'],
    ['private', '192.168.1.1'],
    ['carrier NAT', '100.64.0.1'],
    ['metadata', '169.254.169.254'],
    ['metadata of Alibaba', '100.100.100.200'],
    ['metadata of Oracle', '192.0.0.192'],
    ['platform service of Azure', '168.63.129.16'],
    ['mapped platform service', '::ffff:168.63.129.16'],
    ['mapped platform service in hex', '::ffff:a83f:8110'],
    ['benchmarking', '198.18.0.1'],
    ['documentation', '192.0.2.1'],
    ['multicast', '224.0.0.1'],
    ['reserved', '240.0.0.1'],
    ['broadcast', '255.255.255.255'],
    ['loopback', '::1'],
    ['this host', '::'],
    ['unique local', 'fd00::1'],
    ['metadata', 'fd00:ec2::254'],
    ['metadata of Google', 'fd20:ce::254'],
    ['link-local', 'fe80::1'],
    ['link-local with a zone', 'fe80::1%eth0'],
    ['site-local', 'fec0::1'],
    ['multicast', 'ff02::1'],
    ['mapped loopback', '::ffff:127.0.0.1'],
    ['mapped loopback in hex', '::ffff:7f00:1'],
    ['mapped metadata', '::ffff:a9fe:a9fe'],
    ['compatible loopback', '::127.0.0.1'],
    ['compatible loopback in hex', '::7f00:1'],
    ['translated', '::ffff:0:127.0.0.1'],
    ['NAT64', '64:ff9b::7f00:1'],
    ['local NAT64', '64:ff9b:1::7f00:1'],
    ['6to4', '2002:7f00:1::'],
    ['Teredo', '2001:0:7f00:1::'],
    ['documentation', '2001:db8::1'],
    ['given out to nobody', '4000::1'],
    ['no address', ''],
    ['no address', 'localhost'],
    ['no address', 'unknown'],
  ])('are not: %s, %s', (_what, address) => {
    expect(isPublic(address)).toBe(false);
  });

  it('are, with a setting, also those it names and no others', () => {
    const rule = addressRule(['10.1.0.0/16', '127.0.0.1', 'fd00::/8']);
    for (const address of ['10.1.255.1', '127.0.0.1', '::ffff:127.0.0.1', '::ffff:a01:1', 'fd12::1', '8.8.8.8']) {
      expect(rule(address), address).toBe(true);
    }
    for (const address of ['10.2.0.1', '127.0.0.2', '::1', 'fe80::1', '169.254.169.254']) {
      expect(rule(address), address).toBe(false);
    }
  });

  it('are a platform’s own services where the setting names them', () => {
    for (const allow of ['168.63.129.16', '168.63.129.0/24', '*']) {
      expect(addressRule([allow])('168.63.129.16'), allow).toBe(true);
    }
    expect(addressRule(['10.0.0.0/8'])('168.63.129.16')).toBe(false);
  });

  it('are all with the star, and never what is no address', () => {
    const rule = addressRule(['*']);
    expect(rule('169.254.169.254')).toBe(true);
    expect(rule('unknown')).toBe(false);
  });
});

describe('the next hop', () => {
  const hop = (change: Partial<Hop> = {}): Hop => ({
    url: new URL('https://a.example/one?x=1'),
    method: 'POST',
    headers: [
      ['Authorization', 's3cret'],
      ['Content-Type', 'text/plain'],
      ['X-Api-Key', 's3cret'],
      ['Accept', '*/*'],
    ],
    body: 'body',
    ...change,
  });
  const next = (status: number, location: string | undefined, from = hop()): Hop => {
    const found = nextHop(from, status, location);
    if (found === null || found === 'unfit') throw new Error(`no hop: ${found}`);
    return found;
  };

  it('is there for redirects that say where to', () => {
    for (const status of [200, 300, 304, 305, 400]) expect(nextHop(hop(), status, '/two')).toBeNull();
    expect(nextHop(hop(), 302, undefined)).toBeNull();
    expect(next(308, '../two#part').url.href).toBe('https://a.example/two');
  });

  it.each(['file:///etc/passwd', 'gopher://a/', 'javascript:1', 'http://[', `/${'x'.repeat(8_200)}`])(
    'is none to what is no place to go: %s',
    (location) => {
      expect(nextHop(hop(), 302, location)).toBe('unfit');
    },
  );

  it('keeps method and body, or becomes a GET without them, as HTTP says', () => {
    expect(next(307, '/')).toMatchObject({ method: 'POST', body: 'body' });
    expect(next(308, '/')).toMatchObject({ method: 'POST', body: 'body' });
    for (const status of [301, 302, 303]) {
      expect(next(status, '/')).toMatchObject({ method: 'GET', body: null });
      expect(next(status, '/').headers.map(([name]) => name)).not.toContain('Content-Type');
    }
    expect(next(302, '/', hop({ method: 'PUT' }))).toMatchObject({ method: 'PUT', body: 'body' });
    expect(next(303, '/', hop({ method: 'PUT' }))).toMatchObject({ method: 'GET', body: null });
    expect(next(303, '/', hop({ method: 'HEAD', body: null }))).toMatchObject({ method: 'HEAD' });
  });

  it('carries the caller’s headers within the origin, and only harmless ones beyond it, also on the way back', () => {
    const names = (of: Hop) => of.headers.map(([name]) => name);
    expect(names(next(307, '/two'))).toEqual(['Authorization', 'Content-Type', 'X-Api-Key', 'Accept']);
    const elsewhere = ['https://b.example/', 'http://a.example/', 'https://a.example:8443/', '//b.example/'];
    for (const location of elsewhere) expect(names(next(307, location))).toEqual(['Content-Type', 'Accept']);
    const back = next(307, 'https://a.example/', next(307, 'https://b.example/'));
    expect(names(back)).toEqual(['Content-Type', 'Accept']);
  });

  it('takes no credentials from the URL it was sent to', () => {
    expect(next(302, 'https://user:word@b.example/').url.href).toBe('https://b.example/');
  });

  it('begins with the run’s own headers', () => {
    const request = { type: 'request', key: 1, runId: 'run_1', fence: 7 } as const;
    expect(firstHop({ ...request, http: requestOf({ headers: { A: '1' } }) }, 'capstan/1').headers).toEqual([
      ['Capstan-Run-Id', 'run_1'],
      ['Capstan-Fence', '7'],
      ['User-Agent', 'capstan/1'],
      ['A', '1'],
    ]);
    const named = firstHop({ ...request, http: requestOf({ headers: { 'USER-AGENT': 'me' } }) }, 'capstan/1');
    expect(named.headers.filter(([name]) => /user-agent/i.test(name))).toEqual([['USER-AGENT', 'me']]);
  });
});

describe('what is kept of an answer', () => {
  const answer = { status: 200, headers: {}, url: 'http://a/', isComplete: true };
  const kept = (bytes: Buffer, bodyBytes = bytes.length) => JSON.parse(resultOf({ ...answer, kept: bytes, bodyBytes }));

  it('is text where it is text, to the last whole character', () => {
    expect(kept(Buffer.from('\ufeffgröße\r\n'))).toMatchObject({ body: '\ufeffgröße\r\n', bodyTruncated: false });
    const cut = Buffer.from('größe').subarray(0, 3);
    expect(kept(cut, 7)).toMatchObject({ body: 'gr', bodyBytes: 7, bodyTruncated: true });
    expect(kept(cut)).toMatchObject({ bodyBase64: cut.toString('base64'), bodyTruncated: false });
    expect(kept(cut)).not.toHaveProperty('body');
    expect(kept(Buffer.from('a\0b'))).toMatchObject({ bodyBase64: 'YQBi', bodyTruncated: false });
  });

  it('is always below what a run’s output may have', () => {
    const headers = headersOf(['x', '"'.repeat(8_000), 'y', '\\'.repeat(8_000)]);
    const url = `http://a/${'x'.repeat(8_000)}`;
    for (const fill of [0, 1, 0x22, 0x78, 0xff]) {
      const body = Buffer.alloc(MAX_KEPT_BODY_BYTES, fill);
      const json = resultOf({ ...answer, headers, url, kept: body, bodyBytes: 1e9 });
      expect(Buffer.byteLength(json), `filled with ${fill}`).toBeLessThan(256 * 1024);
      expect(json).not.toContain('\\u0000');
    }
  });

  it('has headers by lower-case name, joined, cookies as a list, whatever they are called', () => {
    const raw = [
      'A',
      '1',
      'a',
      '2',
      'Set-Cookie',
      'x=1',
      'constructor',
      'c',
      'U',
      'gr\u00c3\u00b6\u00c3\u009fe',
      'L',
      'gr\u00f6',
    ];
    const headers = headersOf(raw);
    expect(Object.entries(headers)).toEqual([
      ['a', '1, 2'],
      ['set-cookie', ['x=1']],
      ['constructor', 'c'],
      ['u', 'größe'],
      ['l', 'grö'],
    ]);
  });

  it('lacks a header that would have the rest of it refused, and nothing else', () => {
    const headers = headersOf(['__proto__', 'p', '__PROTO__', 'p', 'A', '1', 'prototype', 'q']);
    expect(Object.entries(headers)).toEqual([
      ['a', '1'],
      ['prototype', 'q'],
    ]);
    const result = JSON.parse(resultOf({ ...answer, headers, kept: Buffer.alloc(0), bodyBytes: 0 }));
    expect(findPrototypeAccess(result)).toBeUndefined();
  });

  it('never shows an error’s own words', () => {
    expect(judgeFault('E_MADE_UP', true).detail).toBe(
      'the request failed (E_MADE_UP); the request may have been carried out',
    );
    expect(judgeFault('HPE_INVALID_VERSION', true).detail).toMatch(/^the answer is not valid HTTP/);
  });

  it('names what was denied, and not a list without end', () => {
    expect(judgeDenied({ host: '10.0.0.1', addresses: ['10.0.0.1'] }).detail).toMatch(
      /^requests to 10\.0\.0\.1 are not/,
    );
    const many = Array.from({ length: 9 }, (_, i) => `10.0.0.${i}`);
    expect(judgeDenied({ host: 'in.example', addresses: many }).detail).toContain(
      'in.example (10.0.0.0, 10.0.0.1, 10.0.0.2, 10.0.0.3 and 5 more)',
    );
  });
});
