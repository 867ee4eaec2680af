/** Timestamp tokens made by openssl: what it makes is accepted, what it would not accept isn't, whatever the bytes. */
import { createHash, sign, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { timeStampRequest } from '../../src/audit/tsa.js';
import { constructed, DerReader, TAG } from '../../src/verifier/der.js';
import { Refusal } from '../../src/verifier/refusal.js';
import { readTimeStamp } from '../../src/verifier/rfc3161.js';
import { readSignedData } from '../../src/verifier/signed-data.js';
import { Authority, type SignerName, withTime } from '../audit/tsa.fixture.js';

const LINK = createHash('sha256').update('an entry').digest('hex');
const OTHER = createHash('sha256').update('another entry').digest('hex');
const vectors = process.env.LOOMSEAL_VECTORS;
const NONCE = Buffer.from('4011223344556677', 'hex');
const imprintOf = (link: string) => createHash('sha256').update(Buffer.from(link, 'hex')).digest('hex');

let authority: Authority;
let token: Buffer;
let info: Uint8Array;
beforeAll(async () => {
  authority = await Authority.create();
  token = await authority.token(timeStampRequest(LINK, NONCE));
  info = readSignedData(token).content;
});
afterAll(() => authority.remove());

/** The reason of the refusal; anything else thrown fails the test. */
function refusalOf(bytes: Uint8Array, link = LINK): string | undefined {
  try {
    readTimeStamp(bytes, link);
    return undefined;
  } catch (error) {
    if (!(error instanceof Refusal) || error.stage !== 'anchor') throw error;
    return error.reason;
  }
}

describe('what is accepted', () => {
  it.each(['rsa', 'ecdsa'] as const)(
    'a token of openssl ts, signed by %s, as openssl ts accepts it',
    async (signer) => {
      const made = await authority.token(timeStampRequest(LINK, NONCE), signer);
      const stamp = readTimeStamp(made, LINK);
      expect(stamp).toMatchObject({
        signer: `O=Scratch, CN=${signer}`,
        nonce: NONCE.toString('hex'),
        policy: '1.2.3.4.1',
        serial: expect.stringMatching(/^[0-9a-f]{2}$/),
        genTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      });
      expect(stamp.genTimeMs).toBe(Date.parse(stamp.genTime));
      expect(Math.abs(Date.now() - stamp.genTimeMs)).toBeLessThan(60_000);
      expect(await authority.accepts(made, imprintOf(LINK))).toBe(true);
      expect(await authority.accepts(made, imprintOf(OTHER))).toBe(false);
      expect(refusalOf(made, OTHER)).toBe('the timestamp is of another link');
    },
  );

  it.each<readonly [string, SignerName, readonly string[]]>([
    ['RSA-PSS', 'rsa', ['-keyopt', 'rsa_padding_mode:pss', '-md', 'sha256']],
    ['RSA with SHA-384', 'rsa', ['-md', 'sha384']],
    ['ECDSA with SHA-512', 'ecdsa', ['-md', 'sha512']],
    ['a signer that is named by the identifier of its key', 'ecdsa', ['-keyid']],
    ['more certificates beside', 'ecdsa', ['-certfile', 'ca.pem']],
    ['the certificate named in the attributes', 'ecdsa', ['-cades']],
  ])('%s', async (_what, signer, options) => {
    expect(readTimeStamp(await authority.sign(info, signer, ...options), LINK).signer).toBe(`O=Scratch, CN=${signer}`);
  });

  it('Ed25519', async () => {
    const made = await ed25519Token();
    expect(readTimeStamp(made, LINK).signer).toBe('O=Scratch, CN=ed25519');
    const forged = Buffer.from(made);
    forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1;
    expect(refusalOf(forged)).toBe('the signature of the timestamp does not hold');
  });

  it('a time with a fraction, kept as it stands', async () => {
    const content = Buffer.from(new DerReader(info, 'info').take(TAG.sequence).content);
    const place = content.indexOf(Buffer.from([0x18, 0x0f]));
    const time = der(TAG.time, Buffer.from('20260228235959.987654Z', 'latin1'));
    const made = await authority.sign(
      der(TAG.sequence, content.subarray(0, place), time, content.subarray(place + 17)),
      'rsa',
    );
    expect(readTimeStamp(made, LINK)).toMatchObject({
      genTime: '2026-02-28T23:59:59.987654Z',
      genTimeMs: Date.parse('2026-02-28T23:59:59.987Z'),
    });
  });
});

/** A value of up to 64 KiB. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

/** What openssl 3.0 can't make: the attributes of another signer's token, changed, and signed with Ed25519. */
async function ed25519Token(change = (attributes: Buffer) => attributes): Promise<Buffer> {
  const like = readSignedData(await authority.sign(info, 'ecdsa', '-md', 'sha512', '-certfile', 'ed25519.pem'));
  const own = new X509Certificate(await authority.read('ed25519.pem')).raw;
  const certificate = like.certificates.find((candidate) => own.equals(candidate.der));
  const oid = (hex: string) => der(TAG.oid, Buffer.from(hex, 'hex'));
  const version = Buffer.from('020103', 'hex');
  const [tstInfo, sha512, ed25519] = [oid('2a864886f70d0109100104'), oid('608648016503040203'), oid('2b6570')];
  const attributes = change(Buffer.from(like.signer.attributesDer));
  const signature = sign(null, attributes, await authority.read('ed25519.key'));
  attributes[0] = constructed(0);
  const signer = der(
    TAG.sequence,
    version,
    der(TAG.sequence, certificate!.issuerAndSerial),
    der(TAG.sequence, sha512),
    attributes,
    der(TAG.sequence, ed25519),
    der(TAG.octets, signature),
  );
  const signed = der(
    TAG.sequence,
    version,
    der(TAG.set, der(TAG.sequence, sha512)),
    der(TAG.sequence, tstInfo, der(constructed(0), der(TAG.octets, info))),
    der(constructed(0), own),
    der(TAG.set, signer),
  );
  return der(TAG.sequence, oid('2a864886f70d010702'), der(constructed(0), signed));
}

describe('what is refused', () => {
  it.each<readonly [string, SignerName, readonly string[], string]>([
    ['a digest by SHA-1', 'rsa', ['-md', 'sha1'], 'another digest than SHA-256, SHA-384 or SHA-512'],
    [
      'RSA-PSS with SHA-512',
      'rsa',
      ['-keyopt', 'rsa_padding_mode:pss', '-md', 'sha512'],
      'another digest than its signer',
    ],
    ["a web server's certificate", 'webServer', [], 'not one for timestamping'],
    ['no certificate', 'rsa', ['-nocerts'], 'carries no certificate'],
    [
      "somebody else's certificate only, though it is one for timestamping",
      'rsa',
      ['-nocerts', '-certfile', 'ecdsa.pem'],
      "carries no certificate of the signer's",
    ],
    ['no signed attributes', 'rsa', ['-noattr'], 'no signed attributes'],
  ])('%s', async (_what, signer, options, reason) => {
    expect(refusalOf(await authority.sign(info, signer, ...options))).toContain(reason);
  });

  it('an imprint by SHA-1', async () => {
    const request = Buffer.concat([
      Buffer.from('302f0201013021300906052b0e03021a05000414', 'hex'),
      createHash('sha1').update(Buffer.from(LINK, 'hex')).digest(),
      Buffer.from('0204401122330101ff', 'hex'),
    ]);
    expect(refusalOf(await authority.token(request))).toBe('the timestamp is not of a SHA-256 digest');
  });

  it.each([
    ['20260231120000Z', 'not in the calendar'],
    ['20261301120000Z', 'not in the calendar'],
    ['20260228240000Z', 'not in the calendar'],
    ['20260228235960Z', 'not in the calendar'],
    ['202602281200000', 'malformed'],
    ['2026022812000.Z', 'malformed'],
    ['202602281200+01', 'malformed'],
  ])('the time %s', async (time, reason) => {
    const changed = Buffer.from(info);
    changed.write(time, changed.indexOf(Buffer.from([0x18, 0x0f])) + 2, 'latin1');
    expect(refusalOf(await authority.sign(changed, 'rsa'))).toContain(reason);
  });

  it('what is signed but no timestamp, and what is no signed data', async () => {
    expect(refusalOf(await authority.sign(Buffer.from('hello'), 'rsa'))).toBeDefined();
    const plain = await authority.sign(info, 'rsa', '-econtent_type', '1.2.840.113549.1.7.1');
    expect(refusalOf(plain)).toBe('what is signed is not a timestamp');
    const data = Buffer.concat([Buffer.from('06092a864886f70d010701', 'hex'), Buffer.from('a0020500', 'hex')]);
    expect(refusalOf(der(TAG.sequence, data))).toBe('the timestamp token is not signed data');
  });

  it('a token with a byte behind its end, and every token cut short', () => {
    expect(refusalOf(Buffer.concat([token, Buffer.from([0])]))).toBe('the timestamp token holds more than it should');
    for (let length = 0; length < token.length; length += 1) expect(refusalOf(token.subarray(0, length))).toBeDefined();
  });

  it('attributes that say of what kind it is otherwise than the token does', async () => {
    const otherKind = '1.2.840.113549.1.9.16.1.5';
    const made = await authority.sign(info, 'rsa', '-econtent_type', otherKind);
    const place = made.indexOf(Buffer.from('2a864886f70d0109100105', 'hex'));
    made[place + 10] = 4; // in front, where nobody signed it
    expect(refusalOf(made)).toBe('the signer signed something else');
  });

  it('an attribute that is said twice, or with two values, though the signature holds', async () => {
    const all = (attributes: Buffer) => new DerReader(attributes, 'them').take(TAG.set).content;
    const twice = await ed25519Token((attributes) => der(TAG.set, all(attributes), all(attributes)));
    expect(refusalOf(twice)).toBe('the signer says an attribute twice');
    const twoValues = await ed25519Token((attributes) => {
      const reader = new DerReader(all(attributes), 'them');
      const first = new DerReader(reader.take(TAG.sequence).content, 'it');
      const [oid, { content }] = [first.take(TAG.oid).whole, first.take(TAG.set)];
      return der(
        TAG.set,
        der(TAG.sequence, oid, der(TAG.set, content, content)),
        reader.takeAny().whole,
        reader.takeAny().whole,
      );
    });
    expect(refusalOf(twoValues)).toBe('an attribute of the signer holds more than it should');
  });

  it('a certificate that holds another one as PEM, which Node would read instead', async () => {
    expect(refusalOf(await authority.sign(info, 'smuggler'))).toBe("the signer's certificate is malformed");
  });

  it('a link that is none', () => {
    for (const link of ['', 'abc', LINK.toUpperCase(), `${LINK}00`])
      expect(refusalOf(token, link)).toContain('no link');
  });
});

describe('whatever the bytes', () => {
  it('every flipped bit is refused, or changes nothing of what is told', () => {
    const told = readTimeStamp(token, LINK);
    const harmless = new Set<number>();
    for (let at = 0; at < token.length; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const flipped = Buffer.from(token);
        flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
        if (refusalOf(flipped) !== undefined) continue;
        expect(readTimeStamp(flipped, LINK)).toEqual(told);
        harmless.add(at);
      }
    }
    // Two version numbers, the list of digests in front, and the empty parameters of two algorithms.
    expect(harmless.size).toBeLessThanOrEqual(1 + 15 + 1 + 2 + 2);
  });

  it('bytes of any kind are refused, and nothing else is thrown', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        expect(refusalOf(bytes)).toBeDefined();
      }),
      { numRuns: 2_000 },
    );
  });

  it('pieces of a token in any order, doubled or overwritten, are refused or tell the same', () => {
    const told = readTimeStamp(token, LINK);
    const piece = fc.record({
      from: fc.nat(token.length - 1),
      length: fc.nat(64),
      to: fc.nat(token.length - 1),
    });
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 4 }), (pieces) => {
        const mixed = Buffer.from(token);
        for (const { from, length, to } of pieces) token.copy(mixed, to, from, Math.min(from + length, token.length));
        if (refusalOf(mixed) === undefined) expect(readTimeStamp(mixed, LINK)).toEqual(told);
      }),
      { numRuns: 2_000 },
    );
  });
});

it('a token whose certificate was replaced by another of the same key and name is refused', () => {
  const subject = Buffer.from('Scratch CA');
  const place = token.indexOf(subject);
  expect(place).toBeGreaterThan(0);
  const forged = Buffer.from(token);
  for (let at = forged.indexOf(subject); at >= 0; at = forged.indexOf(subject, at + 1)) forged.write('Famous CAs', at);
  expect(refusalOf(forged)).toBe('the certificate is not the one that the signer named');
});

it('a token of an hour ago is one all the same: whoever knows the entry compares the times', async () => {
  const at = new Date(Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000);
  const made = await authority.sign(withTime(token, at), 'rsa');
  expect(readTimeStamp(made, LINK).genTimeMs).toBe(at.getTime());
});

if (vectors !== undefined) {
  describe('a token of a public authority', () => {
    it('S4x-02 is accepted for its link, and for no other', async () => {
      const base64 = await readFile(join(vectors, 'rfc3161-token.b64'), 'utf8');
      const link = '77c95e0459eef7970de647dfd263004d23b2c9a44b7feb10a24940bd695a05d3';
      expect(readTimeStamp(Buffer.from(base64, 'base64'), link)).toMatchObject({
        genTime: '2026-07-31T13:01:45Z',
        nonce: 'be75d5cb57c0c662',
        serial: '06a83b16',
        policy: '1.2.3.4.1',
        signer: expect.stringContaining('CN=www.freetsa.org'),
      });
      expect(refusalOf(Buffer.from(base64, 'base64'), OTHER)).toBe('the timestamp is of another link');
    });
  });
}
