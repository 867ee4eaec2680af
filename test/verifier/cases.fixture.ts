/** Vectors of our own: bundles that hold, and at least one for every reason for which one does not. */
import { canonicalJson, sha256Hex } from '../../src/kernel/json.js';
import {
  bundleOf,
  bytesOf,
  exampleBundle,
  exampleClaims,
  KEY,
  type Loose,
  linked,
  linkOf,
  OTHER_KEY,
  plainClaims,
  sealed,
  signatureOf,
} from './bundles.fixture.js';

export interface Valid {
  readonly name: string;
  readonly bytes: Buffer;
  readonly level: string;
}

export interface Refused {
  readonly name: string;
  readonly bytes: Buffer;
  readonly stage: string;
  /** Part of the reason. */
  readonly says: string;
  readonly seq?: number;
}

const HEX = 'ab'.repeat(32);
const FULL = 'signed, chained (full)';
const REF = { ref: 'https://example.org/commit/1', at: '2026-03-02T11:00:00Z' };

/** The example after an edit, signed as it is then: a lie of the key's holder. */
function lie(edit: (bundle: Loose) => unknown): Buffer {
  const bundle = structuredClone(exampleBundle());
  edit(bundle);
  return bytesOf(sealed(bundle));
}

/** The text of the example after an edit. */
function typo(find: string | RegExp, text: string): Buffer {
  const whole = bytesOf(sealed(exampleBundle())).toString();
  const edited = whole.replace(find, () => text);
  if (edited === whole) throw new Error(`nothing to replace: ${find}`);
  return Buffer.from(edited);
}

function raw(find: string, bytes: readonly number[]): Buffer {
  const [before = '', after = ''] = bytesOf(sealed(exampleBundle())).toString().split(find);
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
}

/** A bundle of one entry with this payload, written as text so that it may be spelled in any way. */
function withPayload(payload: string, meant: Loose): Buffer {
  const [claim] = linked([{ type: 'acme.audit/1', at: '2026-03-02T09:00:00Z', payload: meant }]);
  const text = bytesOf(sealed(bundleOf([claim]))).toString();
  const written = canonicalJson(meant);
  if (!text.includes(`"payload":${written}`)) throw new Error('the payload is written in another way');
  return Buffer.from(text.replace(`"payload":${written}`, () => `"payload":${payload}`));
}

function beat(seconds: number, payload: Loose): Loose {
  const at = new Date(Date.parse('2026-03-02T09:00:00Z') + seconds * 1_000).toISOString();
  return { type: 'loomseal.span/1', at, payload: { stream: 'chain', cadence_s: 60, beat: 1, count: 0, ...payload } };
}

function anchored(bundle: Loose, more: Loose = {}): Loose {
  const { seq, link } = bundle.claims.at(-1).chain;
  return { ...bundle, anchors: [{ type: 'git', seq, link, ...REF, ...more }] };
}

/** Of claims, anchored and sealed. */
function beating(claims: readonly Loose[], from = 1, before = ''): Buffer {
  return bytesOf(sealed(anchored(bundleOf(linked(claims, from, before)))));
}

/** Linked over `payload`; `instead` is what it says then. */
function switchtender(payload: Loose, at = '2026-03-02T09:00:00Z', keyed = false, instead = payload): Buffer {
  const { actor = '', method = '', path = '' } = payload;
  const chain = { seq: 1, prev: '', link: sha256Hex(JSON.stringify(['1', at, actor, method, path, ''])) };
  const bundle = bundleOf([{ type: 'switchtender.audit/1', at, payload: instead, chain }]);
  bundle.chain = { profile: 'switchtender-audit-v1', keyed, head: { seq: 1, link: chain.link } };
  return bytesOf(sealed(bundle));
}

function keyed(bundle: Loose): Loose {
  for (const [index, claim] of bundle.claims.entries()) {
    const link = String(index + 1).repeat(64);
    claim.chain = { seq: index + 1, prev: index === 0 ? '' : String(index).repeat(64), link };
    bundle.chain.head = { seq: index + 1, link };
  }
  bundle.chain.keyed = true;
  return bundle;
}

function windowAfter([first, ...rest]: readonly Loose[], prev: string): Buffer {
  return bytesOf(sealed(bundleOf([{ ...first, chain: { ...first.chain, prev } }, ...rest])));
}

/** Member order reversed at every depth. */
function reversed(value: Loose): Loose {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, each]) => [name, reversed(each)]),
  );
}

/** Every text spelled with escapes. */
function escaped(text: string): string {
  return text.replace(/"((?:[^"\\]|\\.)*)"/g, (whole) => {
    const meant: string = JSON.parse(whole);
    return `"${[...Array(meant.length).keys()].map((at) => `\\u${meant.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
  });
}

export function validCases(): Valid[] {
  const example = sealed(exampleBundle());
  const claims = linked(plainClaims(9));
  const head = claims[8].chain;
  const windowed = bundleOf(claims.slice(3, 6));
  windowed.chain.head = { seq: head.seq, link: head.link };
  const chainless = exampleBundle();
  delete chainless.chain;
  const matched = { type: 'git', seq: 5, link: claims[4].chain.link, ...REF };
  return [
    ['the worked example', bytesOf(example), FULL],
    ['pretty-printed', Buffer.from(`\r\n\t ${JSON.stringify(example, undefined, 4)} \n\n`), FULL],
    ['members in another order', Buffer.from(JSON.stringify(reversed(example))), FULL],
    ['every text spelled with escapes', Buffer.from(escaped(JSON.stringify(example))), FULL],
    [
      'escapes of all kinds',
      withPayload('{"a":"\\/\\b\\f\\n\\r\\t\\"\\\\\\u0000\\u00e9"}', { a: '/\b\f\n\r\t"\\\0é' }),
      FULL,
    ],
    [
      '2^53 and -2^53',
      withPayload('{"a":9007199254740992,"b":-9007199254740992}', { a: 2 ** 53, b: -(2 ** 53) }),
      FULL,
    ],
    ['minus zero', withPayload('{"a":-0}', { a: 0 }), FULL],
    ['a surrogate pair', withPayload('{"a":"\\ud83d\\ude00"}', { a: '😀' }), FULL],
    [
      'DEL, C1 and line separators as they are',
      withPayload('{"a":"\u007f\u0085\u2028"}', { a: '\u007f\u0085\u2028' }),
      FULL,
    ],
    ['a member named __proto__', withPayload('{"__proto__":{"a":1}}', JSON.parse('{"__proto__":{"a":1}}')), FULL],
    ['members named like numbers', withPayload('{"10":1,"9":2}', JSON.parse('{"10":1,"9":2}')), FULL],
    ['a window', bytesOf(sealed(windowed)), FULL],
    [
      'an anchor of an entry in a window',
      bytesOf(sealed({ ...windowed, anchors: [matched] })),
      `${FULL}, anchored by reference`,
    ],
    ['an anchor of the declared head', bytesOf(sealed(anchored(windowed, { seq: head.seq, link: head.link }))), FULL],
    [
      'an anchor with an empty proof',
      bytesOf(sealed(anchored(exampleBundle(), { type: 'rfc3161', proof: '' }))),
      `${FULL}, anchored by reference`,
    ],
    [
      'a proof that is not opened',
      bytesOf(sealed(anchored(exampleBundle(), { type: 'rekor', proof: 'AAAA' }))),
      `${FULL}, anchored by reference`,
    ],
    ['an empty list of anchors', bytesOf(sealed({ ...exampleBundle(), anchors: [] })), FULL],
    ['no chain', bytesOf(sealed(chainless)), 'signed'],
    ['a keyed chain', bytesOf(sealed(keyed(exampleBundle()))), 'signed, chained (structural)'],
    ['the switchtender profile', switchtender({ actor: 'a<b', method: 'POST', path: '/é' }), FULL],
    ['the switchtender profile without a payload', switchtender({}, '2026-03-02T09:00:00.123456789Z'), FULL],
    ['a verdict and evidence', lie(withExtras), FULL],
    ['two signatures, the second of the producer', twoSignatures(), FULL],
    [
      'beats',
      beating([...plainClaims(2), beat(60, { count: 2 }), ...plainClaims(1), beat(120, { beat: 2, count: 1 })]),
      `${FULL}, anchored by reference, spanned`,
    ],
    ['beats that are not anchored', bytesOf(sealed(bundleOf(linked([beat(60, {})])))), FULL],
    [
      'a first beat in the midst of a chain',
      beating([...plainClaims(2), beat(60, { count: 6 })], 5, HEX),
      `${FULL}, anchored by reference, spanned`,
    ],
    [
      'a later beat carried into a window',
      beating([beat(60, { beat: 7, count: 99 })], 5, HEX),
      `${FULL}, anchored by reference, spanned`,
    ],
  ].map(([name, bytes, level]) => ({ name, bytes, level }) as Valid);
}

function withExtras(bundle: Loose): void {
  const digest = `sha256:${HEX}`;
  const [first, ...rest] = exampleClaims();
  const verdict = { policy: 'p', decision: 'allow', policy_digest: digest, inputs_digest: digest, detail: '' };
  const evidence = [{ role: 'r', digest, media_type: '', present: false, location: '' }];
  bundle.claims = linked([{ ...first, verdict, evidence }, ...rest]);
  bundle.chain.head.link = bundle.claims[2].chain.link;
}

function twoSignatures(): Buffer {
  const bundle = exampleBundle();
  return bytesOf({ ...bundle, signatures: [signatureOf(bundle, OTHER_KEY), signatureOf(bundle)] });
}

type Row = readonly [name: string, bytes: Buffer, says: string, seq?: number];

function of(stage: string, rows: readonly Row[]): Refused[] {
  return rows.map(([name, bytes, says, seq]) => ({ name, bytes, stage, says, ...(seq !== undefined && { seq }) }));
}

export function refusedCases(): Refused[] {
  return [
    ...of('parse', [...jsonCases(), ...schemaCases()]),
    ...of('signature', signatureCases()),
    ...of('chain', chainCases()),
    ...of('anchor', anchorCases()),
    ...of('span', spanCases()),
  ];
}

function jsonCases(): Row[] {
  const number = (literal: string) => withPayload(`{"a":${literal}}`, { a: 0 });
  const text = (inside: string) => withPayload(`{"a":"${inside}"}`, { a: '' });
  return [
    ['nothing', Buffer.alloc(0), 'ends too early'],
    ['white space', Buffer.from(' \n'), 'ends too early'],
    ['a byte order mark', Buffer.from(`\uFEFF${bytesOf(sealed(exampleBundle()))}`), 'byte order mark'],
    ['a byte that is no UTF-8', raw('usr_1', [0xff]), 'UTF-8'],
    ['an overlong NUL', raw('usr_1', [0xc0, 0x80]), 'UTF-8'],
    ['a surrogate in UTF-8', raw('usr_1', [0xed, 0xa0, 0x80]), 'UTF-8'],
    [
      'half a character at the end',
      Buffer.concat([bytesOf(sealed(exampleBundle())), Buffer.from([0xe2, 0x82])]),
      'UTF-8',
    ],
    ['UTF-16', Buffer.from(bytesOf(sealed(exampleBundle())).toString(), 'utf16le'), 'UTF-8'],
    ['two documents', Buffer.concat([bytesOf(sealed(exampleBundle())), Buffer.from('{}')]), 'follows the document'],
    ['a NUL behind it', Buffer.concat([bytesOf(sealed(exampleBundle())), Buffer.from([0])]), 'follows the document'],
    ['the first half', bytesOf(sealed(exampleBundle())).subarray(0, 700), 'does not end'],
    ['a comma before the end of an object', typo('"ok":true,', '"ok":true,,'), 'no name'],
    ['a comma before the end of an array', typo('[1,{}]', '[1,{},]'), 'no JSON value'],
    ['a member without colon', typo('"ok":true', '"ok" true'), 'no ":"'],
    ['a member without quotes', typo('"ok":true', 'ok:true'), 'no name'],
    ['another word', typo('"ok":true', '"ok":True'), 'no JSON value'],
    ['a comment', typo('"ok":true', '"ok":/**/true'), 'no JSON value'],
    ['a repeated member', typo('"ok":true', '"ok":true,"ok":true'), '"ok" stands there twice'],
    ['a repeated member spelled otherwise', typo('"ok":true', '"ok":true,"\\u006fk":true'), '"ok" stands there twice'],
    ['a repeated __proto__', typo('"ok":true', '"__proto__":1,"__proto__":1'), '"__proto__" stands there twice'],
    ['a lone high surrogate', text('\\ud800'), 'lone surrogate'],
    ['a high surrogate before a letter', text('\\ud800a'), 'lone surrogate'],
    ['two high surrogates', text('\\ud800\\ud800'), 'lone surrogate'],
    ['a lone low surrogate', text('\\udc00'), 'lone surrogate'],
    ['surrogates in the wrong order', text('\\ude00\\ud83d'), 'lone surrogate'],
    ['a high surrogate before another escape', text('\\ud800\\n'), 'lone surrogate'],
    ['an escape with other digits', text('\\u00g0'), 'four hexadecimal digits'],
    ['an escape with too few digits', text('\\u12'), 'four hexadecimal digits'],
    ['an escape that there is not', text('\\x41'), 'an escape that there is not'],
    ['a raw newline in a text', text('\n'), 'control character'],
    ['a raw NUL in a text', text('\0'), 'control character'],
    ['a fraction', number('1.5'), 'fraction'],
    ['a fraction of zero', number('1.0'), 'fraction'],
    ['an exponent', number('1e3'), 'exponent'],
    ['a negative exponent', number('10E-1'), 'exponent'],
    ['2^53 + 1', number('9007199254740993'), 'beyond 2^53'],
    ['-2^53 - 1', number('-9007199254740993'), 'beyond 2^53'],
    ['a number of a million digits', number('1'.repeat(1_000_000)), 'beyond 2^53'],
    ['a leading zero', number('01'), 'not a JSON number'],
    ['a plus sign', number('+1'), 'no JSON value'],
    ['a lone minus', number('-'), 'not a JSON number'],
    ['two minus signs', number('--1'), 'not a JSON number'],
    ['a number in hexadecimal', number('0x1'), 'does not end'],
    ['NaN', number('NaN'), 'no JSON value'],
    ['Infinity', number('-Infinity'), 'not a JSON number'],
    ['arrays in arrays without end', Buffer.from('['.repeat(1_000_000)), 'nested more than 256 deep'],
    ['objects in objects without end', Buffer.from('{"a":'.repeat(1_000_000)), 'nested more than 256 deep'],
    ['more values than anybody has memory for', Buffer.from(`[${'0,'.repeat(2_000_001)}`), 'more than 2000000 values'],
    ['no object', Buffer.from('[]'), 'bundle: no object'],
    ['null', Buffer.from('null'), 'bundle: no object'],
  ];
}

function schemaCases(): Row[] {
  const without = (find: RegExp) => typo(find, '');
  const claim = (edit: (claim: Loose) => unknown) => lie(({ claims }) => edit(claims[1]));
  const evidence = (more: Loose) =>
    claim((each) => Object.assign(each, { evidence: [{ role: 'r', digest: `sha256:${HEX}`, ...more }] }));
  const verdict = (more: Loose) =>
    claim((each) => Object.assign(each, { verdict: { policy: 'p', decision: 'd', ...more } }));
  const anchor = (more: Loose) => lie((bundle) => Object.assign(bundle, anchored(bundle, more)));
  const producer = (more: Loose) => lie((bundle) => Object.assign(bundle.producer, more));
  const signature = (more: Loose) => {
    const bundle = sealed(exampleBundle());
    Object.assign(bundle.signatures[0], more);
    return bytesOf(bundle);
  };
  const time = (at: string) => claim((each) => Object.assign(each, { at }));
  return [
    ['another version', lie((bundle) => Object.assign(bundle, { loomseal: '0.2', more: 1 })), 'LoomSeal 0.2'],
    ['a version that is no text', lie((bundle) => Object.assign(bundle, { loomseal: 0 })), 'bundle.loomseal: no text'],
    ['no version', without(/"loomseal":"0.1",/), 'bundle: without "loomseal"'],
    ['no bundle_id', without(/"bundle_id":"lsb_demo",/), 'without "bundle_id"'],
    ['no keyed', without(/"keyed":false,/), 'bundle.chain: without "keyed"'],
    ['no subject', without(/,"subject":\{[^}]*\}/), 'without "subject"'],
    ['an unknown member', lie((bundle) => Object.assign(bundle, { more: 1 })), 'bundle: "more" is unknown'],
    ['an unknown member of the producer', producer({ more: 1 }), 'bundle.producer: "more" is unknown'],
    [
      'an unknown member of the subject',
      lie(({ subject }) => Object.assign(subject, { more: 1 })),
      '"more" is unknown',
    ],
    ['an unknown member of the chain', lie(({ chain }) => Object.assign(chain, { more: 1 })), '"more" is unknown'],
    ['an unknown member of the head', lie(({ chain }) => Object.assign(chain.head, { more: 1 })), '"more" is unknown'],
    [
      'an unknown member of an entry',
      claim((each) => Object.assign(each, { more: 1 })),
      'bundle.claims[1]: "more" is unknown',
    ],
    ['an unknown member of coordinates', claim(({ chain }) => Object.assign(chain, { more: 1 })), '"more" is unknown'],
    ['an unknown member of evidence', evidence({ more: 1 }), 'evidence[0]: "more" is unknown'],
    ['an unknown member of a verdict', verdict({ more: 1 }), '"more" is unknown'],
    ['an unknown member of an anchor', anchor({ more: 1 }), '"more" is unknown'],
    ['an unknown member of a signature', signature({ more: 1 }), '"more" is unknown'],
    [
      'an unknown member that steers a terminal',
      lie((bundle) => Object.assign(bundle, { '\u001b[2J\u202e': 1 })),
      '"\\u{1b}[2J\\u{202e}" is unknown',
    ],
    [
      'a member of every object',
      lie((bundle) => Object.assign(bundle, { constructor: 1 })),
      '"constructor" is unknown',
    ],
    ['an empty bundle_id', lie((bundle) => Object.assign(bundle, { bundle_id: '' })), 'bundle.bundle_id: empty'],
    ['an empty product', producer({ product: '' }), 'product: empty'],
    ['an empty product_version', producer({ product_version: '' }), 'product_version: empty'],
    ['an empty install_id', producer({ install_id: '' }), 'install_id: empty'],
    ['an empty id of the subject', lie(({ subject }) => Object.assign(subject, { id: '' })), 'subject.id: empty'],
    ['an empty ref', anchor({ ref: '' }), 'anchors[0].ref: empty'],
    ['an empty role', evidence({ role: '' }), 'role: empty'],
    ['an empty policy', verdict({ policy: '' }), 'policy: empty'],
    ['an empty decision', verdict({ decision: '' }), 'decision: empty'],
    ['no claims', lie((bundle) => Object.assign(bundle, { claims: [] })), 'bundle.claims: empty'],
    ['claims that are no array', lie((bundle) => Object.assign(bundle, { claims: {} })), 'bundle.claims: no array'],
    [
      'a subject of another type',
      lie(({ subject }) => Object.assign(subject, { type: 'host' })),
      'none of url, fleet, repo',
    ],
    ['another profile', lie(({ chain }) => Object.assign(chain, { profile: 'loomseal-chain-v2' })), 'chain.profile'],
    ['keyed that is no boolean', lie(({ chain }) => Object.assign(chain, { keyed: 0 })), 'neither true nor false'],
    ['params that are no texts', lie(({ chain }) => Object.assign(chain.params, { n: 1 })), 'chain.params.n: no text'],
    ['a sequence number of 0', claim(({ chain }) => Object.assign(chain, { seq: 0 })), 'no integer of 1 or more'],
    ['a sequence number that is a text', claim(({ chain }) => Object.assign(chain, { seq: '2' })), 'no integer'],
    [
      'a link in capitals',
      claim(({ chain }) => Object.assign(chain, { link: HEX.toUpperCase() })),
      '64 hexadecimal digits',
    ],
    ['a short link', claim(({ chain }) => Object.assign(chain, { link: 'ab' })), '64 hexadecimal digits'],
    [
      'a link with a newline',
      claim(({ chain }) => Object.assign(chain, { link: `${HEX}\n` })),
      '64 hexadecimal digits',
    ],
    ['a short prev', claim(({ chain }) => Object.assign(chain, { prev: 'ab' })), 'nothing or 64'],
    ['a type without version', claim((each) => Object.assign(each, { type: 'acme.audit' })), 'a type such as'],
    ['a type in capitals', claim((each) => Object.assign(each, { type: 'Acme.audit/1' })), 'a type such as'],
    ['a payload that is an array', claim((each) => Object.assign(each, { payload: [] })), 'payload: no object'],
    ['a payload that is null', claim((each) => Object.assign(each, { payload: null })), 'payload: no object'],
    ['an entry without payload', claim((each) => delete each.payload), 'without "payload"'],
    ['a digest of another kind', evidence({ digest: `sha512:${HEX}` }), 'sha256: and 64'],
    ['a digest in capitals', evidence({ digest: `sha256:${HEX.toUpperCase()}` }), 'sha256: and 64'],
    ['a digest of a policy that is none', verdict({ policy_digest: '' }), 'sha256: and 64'],
    ['present that is no boolean', evidence({ present: 1 }), 'neither true nor false'],
    ['an anchor of another type', anchor({ type: 'blockchain' }), 'none of rfc3161'],
    ['an anchor of entry 0', anchor({ seq: 0 }), 'no integer of 1 or more'],
    ['an anchor with half a link', anchor({ link: 'ab' }), '64 hexadecimal digits'],
    ['a proof in base64url', anchor({ type: 'rfc3161', proof: '-_-_' }), 'no standard base64'],
    ['a proof without padding', anchor({ type: 'rfc3161', proof: 'AA' }), 'no standard base64'],
    ['a proof with unused bits', anchor({ type: 'rfc3161', proof: 'AB==' }), 'no standard base64'],
    ['a proof with a newline', anchor({ type: 'rfc3161', proof: 'AAAA\n' }), 'no standard base64'],
    ['a key that is too short', producer({ public_key: 'AAAA' }), 'public_key: not 32 bytes'],
    ['a key that is no base64', producer({ public_key: '!' }), 'no standard base64'],
    ['a key_id that is no digest', producer({ key_id: 'k' }), 'sha256: and 64'],
    ['no signatures', bytesOf(exampleBundle()), 'bundle.signatures: empty'],
    ['a signature that is too short', signature({ sig: 'AAAA' }), 'sig: not 64 bytes'],
    ['a signature without algorithm', without(/"alg":"ed25519",/), 'without "alg"'],
    ['an offset for Z', time('2026-03-02T09:00:01+00:00'), 'a time such as'],
    ['a comma for the dot', time('2026-03-02T09:00:01,5Z'), 'a time such as'],
    ['a dot and no fraction', time('2026-03-02T09:00:01.Z'), 'a time such as'],
    ['a blank for T', time('2026-03-02 09:00:01Z'), 'a time such as'],
    ['small letters', time('2026-03-02t09:00:01z'), 'a time such as'],
    ['a day that no month has', time('2026-02-30T09:00:01Z'), 'a time such as'],
    ['a leap second', time('2026-12-31T23:59:60Z'), 'a time such as'],
    ['hour 24', time('2026-03-02T24:00:00Z'), 'a time such as'],
    ['a time with a newline', time('2026-03-02T09:00:01Z\n'), 'a time such as'],
    ['a created_at that is none', lie((bundle) => Object.assign(bundle, { created_at: 'now' })), 'created_at'],
  ];
}

function signatureCases(): Row[] {
  const example = exampleBundle();
  const own = signatureOf(example);
  const zeros = { ...own, sig: Buffer.alloc(64).toString('base64') };
  const foreign = { ...signatureOf(example, OTHER_KEY), alg: 'rsa' };
  return [
    ['a payload changed after signing', typo('usr_1', 'usr_2'), 'has not signed this'],
    ['a bundle_id changed after signing', typo('lsb_demo', 'lsb_dema'), 'has not signed this'],
    ['a signature of zeros', bytesOf({ ...example, signatures: [zeros] }), 'has not signed this'],
    [
      'the key of another producer',
      lie(({ producer }) => Object.assign(producer, { public_key: OTHER_KEY.publicKey.toString('base64') })),
      'key_id is not the digest',
    ],
    [
      'the key_id of another key',
      lie(({ producer }) => Object.assign(producer, { key_id: OTHER_KEY.fingerprint })),
      'key_id is not the digest',
    ],
    ["another key's signature", bytesOf(sealed(example, OTHER_KEY)), "no signature of the producer's key"],
    [
      "another key's signature under this key's name",
      bytesOf({ ...example, signatures: [{ ...signatureOf(example, OTHER_KEY), key_id: KEY.fingerprint }] }),
      'has not signed this',
    ],
    ['a foreign algorithm', bytesOf({ ...example, signatures: [{ ...own, alg: 'none' }] }), 'other than ed25519'],
    [
      'a foreign algorithm beside a good signature',
      bytesOf({ ...example, signatures: [own, foreign] }),
      'other than ed25519',
    ],
  ];
}

function chainCases(): Row[] {
  const skipping = linked(plainClaims(4)).filter((_, index) => index !== 2);
  const doubled = linked(plainClaims(3)).flatMap((claim, index) => (index === 1 ? [claim, claim] : [claim]));
  const [a, b, c] = linked(plainClaims(3));
  const forked = { ...plainClaims(2)[1], chain: { seq: 2, prev: HEX, link: linkOf(plainClaims(2)[1], 2, HEX).link } };
  const last = 2 ** 53;
  const beyond = linked(plainClaims(1), last, HEX)[0];
  const [same] = linked(plainClaims(1), last, beyond.chain.link);
  const keyedBut = (edit: (bundle: Loose) => unknown) => {
    const bundle = keyed(exampleBundle());
    edit(bundle);
    return bytesOf(sealed(bundle));
  };
  const [, ...behind] = linked(plainClaims(5));
  return [
    ['an entry without coordinates', lie(({ claims }) => delete claims[1].chain), 'without coordinates', 2],
    ['a first entry without coordinates', lie(({ claims }) => delete claims[0].chain), 'without coordinates', 1],
    ['a dropped entry', bytesOf(sealed(bundleOf(skipping))), 'entry 2 is followed by entry 4', 4],
    ['an entry twice', bytesOf(sealed(bundleOf(doubled))), 'entry 2 is followed by entry 2', 2],
    ['two entries swapped', bytesOf(sealed(bundleOf([b, a, c]))), 'entry 2 is followed by entry 1', 1],
    ['2^53 twice, which is 2^53 + 1 to a double', bytesOf(sealed(bundleOf([beyond, same]))), 'is followed by', last],
    ['an entry of another branch', bytesOf(sealed(bundleOf([a, forked]))), 'prev is another link', 2],
    [
      'a first entry that follows one',
      bytesOf(sealed(bundleOf(linked(plainClaims(1), 1, HEX)))),
      'prev must be empty',
      1,
    ],
    ['a changed payload', lie(({ claims }) => Object.assign(claims[1].payload, { n: -6 })), 'it was changed', 2],
    [
      'a changed time',
      lie(({ claims }) => Object.assign(claims[0], { at: '2026-03-02T09:00:00.0Z' })),
      'it was changed',
      1,
    ],
    ['a changed type', lie(({ claims }) => Object.assign(claims[2], { type: 'acme.audit/2' })), 'it was changed', 3],
    [
      'changed evidence',
      lie(({ claims }) => Object.assign(claims[2].evidence[0], { present: true })),
      'it was changed',
      3,
    ],
    ['dropped evidence', lie(({ claims }) => delete claims[2].evidence), 'it was changed', 3],
    ['a member given empty', lie(({ claims }) => Object.assign(claims[0], { evidence: [] })), 'it was changed', 1],
    [
      'another install_id',
      lie(({ chain }) => Object.assign(chain.params, { install_id: 'in_demx' })),
      'it was changed',
      1,
    ],
    ['no install_id', lie(({ chain }) => delete chain.params.install_id), 'install_id is missing'],
    ['no params', lie(({ chain }) => delete chain.params), 'install_id is missing'],
    [
      'an empty install_id',
      lie(({ chain }) => Object.assign(chain.params, { install_id: '' })),
      'install_id is missing',
    ],
    [
      'a head before the last entry',
      lie(({ chain, claims }) => Object.assign(chain.head, { seq: 2, link: claims[1].chain.link })),
      'before the last one',
      3,
    ],
    ['a head with another link', lie(({ chain }) => Object.assign(chain.head, { link: HEX })), 'another link', 3],
    [
      'a keyed chain with a gap',
      keyedBut(({ claims }) => Object.assign(claims[2].chain, { seq: 4 })),
      'is followed by',
      4,
    ],
    [
      'a keyed chain that does not follow',
      keyedBut(({ claims }) => Object.assign(claims[1].chain, { prev: HEX })),
      'prev is another link',
      2,
    ],
    ['a keyed chain of switchtender', switchtender({}, '2026-03-02T09:00:00Z', true), 'knows no key'],
    ['switchtender with a number for a text', switchtender({ actor: 1 }), 'payload.actor is no text', 1],
    [
      'switchtender with another path',
      switchtender({ path: '/a' }, undefined, false, { path: '/b' }),
      'it was changed',
      1,
    ],
    ['a window whose first prev was changed', windowAfter(behind, HEX), 'it was changed', 2],
    ['a window whose first prev was emptied', windowAfter(behind, ''), 'it was changed', 2],
  ];
}

function anchorCases(): Row[] {
  const anchor = (more: Loose) => bytesOf(sealed(anchored(exampleBundle(), more)));
  const chainless = anchored(exampleBundle());
  delete chainless.chain;
  const rfc3161 = (bytes: string) => anchor({ type: 'rfc3161', proof: Buffer.from(bytes, 'hex').toString('base64') });
  return [
    ['an anchor without a chain', bytesOf(sealed(chainless)), 'no chain'],
    ['an anchor of an entry that is not there', anchor({ seq: 4, link: HEX }), 'names no entry', 4],
    ['an anchor with another link', anchor({ link: HEX }), 'names no entry', 3],
    ['an anchor with the link of another entry', anchor({ seq: 2 }), 'names no entry', 2],
    ['a proof that is no DER', rfc3161('00'), '', 3],
    ['a proof that is something else', rfc3161('300506032a0304'), '', 3],
  ];
}

function spanCases(): Row[] {
  const two = (first: Loose, second: Loose, seconds = 120) => beating([beat(60, first), beat(seconds, second)]);
  const chainless = bundleOf(linked([beat(60, {})]));
  delete chainless.chain;
  return [
    ['a beat without a chain', bytesOf(sealed(chainless)), 'no chain'],
    ['a beat of another stream', beating([beat(60, { stream: 'runs' })]), 'another stream', 1],
    ['beat 0', beating([beat(60, { beat: 0 })]), 'beat of a beat is no integer', 1],
    ['a cadence of 0', beating([beat(60, { cadence_s: 0 })]), 'cadence_s of a beat is no integer', 1],
    ['a negative count', beating([beat(60, { count: -1 })]), 'count of a beat is no integer', 1],
    ['a count that is a text', beating([beat(60, { count: '0' })]), 'count of a beat is no integer', 1],
    ['a first beat that miscounts', beating([...plainClaims(2), beat(60, { count: 1 })]), 'counts 1 entries', 3],
    ['a beat left out', two({}, { beat: 3 }), 'beat 1 is followed by beat 3', 2],
    ['a beat twice', two({}, {}), 'beat 1 is followed by beat 1', 2],
    ['a later beat that miscounts', two({}, { beat: 2, count: 1 }), 'counts 1 entries', 2],
    ['a beat at the same time', two({}, { beat: 2 }, 60), 'not later', 2],
    ['a beat back in time', two({}, { beat: 2 }, 59), 'not later', 2],
  ];
}
