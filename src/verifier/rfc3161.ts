/**
 * RFC 3161 timestamps, checked offline: that the token is about exactly this link, and that the key of the certificate
 * it carries signed it. Who that is stands in the certificate, which nobody vouches for here: no chain of issuers, no
 * validity and no list of trusted authorities is looked at. The reader judges the signer that is named.
 */
import { constants, createHash, type KeyObject, verify, X509Certificate } from 'node:crypto';
import { constructed, type Der, DerReader, integerHex, oidText, TAG } from './der.js';
import { Refusal } from './refusal.js';
import { type Certificate, HASHES, type Hash, readAlgorithm, readSignedData, type SignerInfo } from './signed-data.js';

export interface TimeStamp {
  /** RFC 3339 in UTC, with the fraction that the token has. */
  readonly genTime: string;
  /** The same in milliseconds of the epoch, cut. */
  readonly genTimeMs: number;
  /** Subject of the signer's certificate, one line, as the certificate names it. */
  readonly signer: string;
  /** Hex; what the request carried. */
  readonly nonce: string | undefined;
  /** Hex; unique to the signer. */
  readonly serial: string;
  /** Object identifier of the policy under which the token was issued. */
  readonly policy: string;
  /** Of a token with several signers only the first is looked at. */
  readonly hasOneSigner: boolean;
  /** From when to when the signer's certificate says that it is valid, in milliseconds of the epoch. Not compared. */
  readonly certificateFromMs: number;
  readonly certificateToMs: number;
}

const TST_INFO = '1.2.840.113549.1.9.16.1.4';
const CONTENT_TYPE = '1.2.840.113549.1.9.3';
const MESSAGE_DIGEST = '1.2.840.113549.1.9.4';
const SIGNING_CERTIFICATE = '1.2.840.113549.1.9.16.2.12';
const SIGNING_CERTIFICATE_V2 = '1.2.840.113549.1.9.16.2.47';
const SUBJECT_KEY_IDENTIFIER = '2.5.29.14';
const EXTENDED_KEY_USAGE = '2.5.29.37';
const TIME_STAMPING = '1.3.6.1.5.5.7.3.8';
const MGF1 = '1.2.840.113549.1.1.8';
/** Bytes; no salt is longer than a key. */
const LONGEST_SALT = 512;

/** How a signature is made. Without `hash`: with the one that the signer's digest algorithm names. */
interface Scheme {
  readonly kind: 'rsa' | 'pss' | 'ecdsa' | 'ed25519';
  readonly hash?: Hash;
}

const SCHEMES: Readonly<Record<string, Scheme>> = Object.freeze({
  '1.2.840.113549.1.1.1': { kind: 'rsa' },
  '1.2.840.113549.1.1.11': { kind: 'rsa', hash: 'sha256' },
  '1.2.840.113549.1.1.12': { kind: 'rsa', hash: 'sha384' },
  '1.2.840.113549.1.1.13': { kind: 'rsa', hash: 'sha512' },
  '1.2.840.113549.1.1.10': { kind: 'pss', hash: 'sha256' },
  '1.2.840.10045.4.3.2': { kind: 'ecdsa', hash: 'sha256' },
  '1.2.840.10045.4.3.3': { kind: 'ecdsa', hash: 'sha384' },
  '1.2.840.10045.4.3.4': { kind: 'ecdsa', hash: 'sha512' },
  '1.3.101.112': { kind: 'ed25519' },
});

/** Which keys, by Node's name, each kind of signature may be made with. */
const KEYS: Readonly<Record<Scheme['kind'], readonly string[]>> = Object.freeze({
  rsa: ['rsa'],
  pss: ['rsa', 'rsa-pss'],
  ecdsa: ['ec'],
  ed25519: ['ed25519'],
});

/**
 * What a TimeStampToken (DER) says about `link` (64 lower-case hex digits): throws a `Refusal` of stage `anchor` unless
 * it is one, is of the SHA-256 of the link's 32 bytes, and is signed by a certificate in it that is for timestamping.
 * The time in it is not compared with anything.
 */
export function readTimeStamp(token: Uint8Array, link: string): TimeStamp {
  if (!/^[0-9a-f]{64}$/.test(link)) throw refused('there is no link to compare the timestamp with');
  const { contentType, content, certificates, signer, hasOneSigner } = readSignedData(token);
  if (contentType !== TST_INFO) throw refused('what is signed is not a timestamp');
  const { imprint, ...info } = readInfo(content);
  if (!isSame(imprint, digest('sha256', Buffer.from(link, 'hex')))) throw refused('the timestamp is of another link');
  const der = certificateOf(signer, certificates);
  checkAttributes(signer, content, der);
  const certificate = openCertificate(der);
  checkSignature(signer, keyOf(certificate));
  return {
    ...info,
    signer: oneLine(certificate.subject),
    hasOneSigner,
    certificateFromMs: Date.parse(certificate.validFrom),
    certificateToMs: Date.parse(certificate.validTo),
  };
}

type Info = Pick<TimeStamp, 'genTime' | 'genTimeMs' | 'nonce' | 'serial' | 'policy'>;

function readInfo(der: Uint8Array): Info & { readonly imprint: Uint8Array } {
  const file = new DerReader(der, 'the timestamp');
  const info = file.open(TAG.sequence);
  file.end();
  if (integerHex(info.take(TAG.integer)) !== '01') throw refused('the timestamp has an unknown version');
  const policy = oidText(info.take(TAG.oid));
  const imprint = info.open(TAG.sequence);
  if (HASHES[readAlgorithm(imprint).oid] !== 'sha256') throw refused('the timestamp is not of a SHA-256 digest');
  const hashed = imprint.take(TAG.octets).content;
  imprint.end();
  const serial = integerHex(info.take(TAG.integer));
  const time = readTime(info.take(TAG.time));
  info.takeIf(TAG.sequence); // accuracy
  info.takeIf(TAG.boolean); // ordering
  const nonce = info.takeIf(TAG.integer);
  info.takeIf(constructed(0)); // the authority's name, which the certificate says too
  info.takeIf(constructed(1)); // extensions
  info.end();
  return { ...time, nonce: nonce && integerHex(nonce), serial, policy, imprint: hashed };
}

/** A GeneralizedTime in UTC to the second, with a fraction of up to nine digits. */
function readTime({ content }: Der): { readonly genTime: string; readonly genTimeMs: number } {
  const text = Buffer.from(content).toString('latin1');
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\.\d{1,9})?Z$/.exec(text);
  if (!match) throw refused('the time in the timestamp is malformed');
  const [, year, month, day, hour, minute, second, fraction = ''] = match;
  const whole = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const wholeMs = Date.parse(`${whole}Z`);
  // Date takes the 31st of February for the 3rd of March.
  const isInCalendar = !Number.isNaN(wholeMs) && new Date(wholeMs).toISOString().startsWith(whole);
  if (!isInCalendar) throw refused('the time in the timestamp is not in the calendar');
  const fractionMs = Number(fraction.slice(1, 4).padEnd(3, '0'));
  return { genTime: `${whole}${fraction}Z`, genTimeMs: wholeMs + fractionMs };
}

/** The certificate that the signer names. */
function certificateOf({ sid }: SignerInfo, certificates: readonly Certificate[]): Uint8Array {
  const named = certificates.filter(({ issuerAndSerial, extensions }) => {
    if (sid.tag === TAG.sequence) return isSame(sid.content, issuerAndSerial);
    const identifier = extensions.get(SUBJECT_KEY_IDENTIFIER);
    return identifier !== undefined && isSame(sid.content, octetsOf(identifier));
  });
  if (named.length === 0) throw refused("the timestamp token carries no certificate of the signer's");
  const fit = named.find(isForTimestamping);
  if (!fit) throw refused("the signer's certificate is not one for timestamping");
  return fit.der;
}

function octetsOf(extension: Uint8Array): Uint8Array {
  return new DerReader(extension, 'the identifier of a key').take(TAG.octets).content;
}

function isForTimestamping({ extensions }: Certificate): boolean {
  const extension = extensions.get(EXTENDED_KEY_USAGE);
  if (!extension) return false;
  const usages = new DerReader(extension, 'the usage of a key').open(TAG.sequence);
  while (!usages.isAtEnd) if (oidText(usages.take(TAG.oid)) === TIME_STAMPING) return true;
  return false;
}

/** The attributes are what is signed: they bind the timestamp and, where it is named there, the certificate. */
function checkAttributes({ attributes, hash }: SignerInfo, content: Uint8Array, certificate: Uint8Array): void {
  const type = attributes.get(CONTENT_TYPE);
  if (type?.tag !== TAG.oid || oidText(type) !== TST_INFO) throw refused('the signer signed something else');
  const signed = attributes.get(MESSAGE_DIGEST);
  if (signed?.tag !== TAG.octets || !isSame(signed.content, digest(hash, content))) {
    throw refused('the timestamp is not the one that was signed');
  }
  const [older, newer] = [attributes.get(SIGNING_CERTIFICATE), attributes.get(SIGNING_CERTIFICATE_V2)];
  const holds =
    (!older || isSame(certificateDigest(older).value, digest('sha1', certificate))) &&
    (!newer || isSame(certificateDigest(newer).value, digest(certificateDigest(newer).hash, certificate)));
  if (!holds) throw refused('the certificate is not the one that the signer named');
}

/** The first digest in a SigningCertificate (RFC 2634) or a SigningCertificateV2 (RFC 5035): the signer's own. */
function certificateDigest(attribute: Der): { readonly hash: Hash; readonly value: Uint8Array } {
  const first = new DerReader(attribute.whole, "the digest of the signer's certificate")
    .open(TAG.sequence)
    .open(TAG.sequence)
    .open(TAG.sequence);
  const value = first.takeIf(TAG.octets);
  if (value) return { hash: 'sha256', value: value.content };
  const hash = HASHES[readAlgorithm(first).oid];
  if (!hash) throw refused("the digest of the signer's certificate is none of SHA-256, SHA-384 or SHA-512");
  return { hash, value: first.take(TAG.octets).content };
}

/** Node also reads PEM, and finds it inside of DER: what was read must be what was given. */
function openCertificate(der: Uint8Array): X509Certificate {
  try {
    const certificate = new X509Certificate(der);
    if (isSame(certificate.raw, der)) return certificate;
  } catch {
    // Refused below.
  }
  throw refused("the signer's certificate is malformed");
}

function keyOf(certificate: X509Certificate): KeyObject {
  try {
    return certificate.publicKey;
  } catch {
    throw refused("the key in the signer's certificate is of no known kind");
  }
}

function checkSignature(
  { scheme: { oid, parameters }, hash, attributesDer, signature }: SignerInfo,
  key: KeyObject,
): void {
  const scheme = SCHEMES[oid];
  if (!scheme) throw refused('the signature is of a kind that is not accepted');
  if ((scheme.hash ?? hash) !== hash) throw refused('the signature uses another digest than its signer');
  const isItsKey = KEYS[scheme.kind].includes(key.asymmetricKeyType ?? '');
  if (!isItsKey) throw refused('the signature is of another kind than the key');
  const how =
    scheme.kind === 'pss'
      ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: pssSaltLength(parameters) }
      : { key };
  let holds = false;
  try {
    holds = verify(scheme.kind === 'ed25519' ? null : hash, attributesDer, how, signature);
  } catch {
    // A key or a signature that can't be computed with holds no more than one that is wrong.
  }
  if (!holds) throw refused('the signature of the timestamp does not hold');
}

/** The salt's length of an RSA-PSS that uses SHA-256 throughout: no other is accepted. */
function pssSaltLength(parameters: DerReader): number {
  const list = parameters.open(TAG.sequence);
  const hash = readAlgorithm(list.open(constructed(0)));
  const mask = readAlgorithm(list.open(constructed(1)));
  const salt = Number.parseInt(integerHex(list.open(constructed(2)).take(TAG.integer)), 16);
  list.end();
  const isFit =
    HASHES[hash.oid] === 'sha256' &&
    mask.oid === MGF1 &&
    HASHES[readAlgorithm(mask.parameters).oid] === 'sha256' &&
    salt <= LONGEST_SALT;
  if (!isFit) throw refused('the signature is of a kind of RSA-PSS that is not accepted');
  return salt;
}

function digest(hash: Hash | 'sha1', bytes: Uint8Array): Uint8Array {
  return createHash(hash).update(bytes).digest();
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** Names come from the file: nothing in them may move a terminal's cursor or turn its text around. */
function oneLine(subject: string): string {
  return subject.replaceAll('\n', ', ').replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}

function refused(reason: string): Refusal {
  return new Refusal('anchor', reason);
}
