/**
 * What a timestamp token is made of (CMS, RFC 5652, and the certificates in it, RFC 5280), read as far as its check
 * needs and no further. Nothing is believed here yet: what is read is compared and verified in rfc3161.ts.
 */
import { constructed, type Der, DerReader, oidText, primitive, TAG } from './der.js';
import { Refusal } from './refusal.js';

export type Hash = 'sha256' | 'sha384' | 'sha512';

const SIGNED_DATA = '1.2.840.113549.1.7.2';

/** The digests that are accepted, by object identifier. */
export const HASHES: Readonly<Record<string, Hash>> = Object.freeze({
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
});

export interface AlgorithmId {
  readonly oid: string;
  /** Not read yet; empty or the NULL value when there are none. */
  readonly parameters: DerReader;
}

export interface SignedData {
  readonly contentType: string;
  readonly content: Uint8Array;
  readonly certificates: readonly Certificate[];
  readonly signer: SignerInfo;
  /** Whether nobody else signed it. */
  readonly hasOneSigner: boolean;
}

export interface SignerInfo {
  /** A certificate's issuer and serial number, or its subject key identifier. */
  readonly sid: Der;
  readonly hash: Hash;
  /** As they are signed. */
  readonly attributesDer: Uint8Array;
  readonly attributes: ReadonlyMap<string, Der>;
  readonly scheme: AlgorithmId;
  readonly signature: Uint8Array;
}

export interface Certificate {
  readonly der: Uint8Array;
  /** The DER of the issuer's name and of the serial number, one after the other. */
  readonly issuerAndSerial: Uint8Array;
  readonly extensions: ReadonlyMap<string, Uint8Array>;
}

/** The parts of a ContentInfo (DER) that holds SignedData; of several signers the first. */
export function readSignedData(token: Uint8Array): SignedData {
  const file = new DerReader(token, 'the timestamp token');
  const contentInfo = file.open(TAG.sequence);
  file.end();
  if (oidText(contentInfo.take(TAG.oid)) !== SIGNED_DATA) throw refused('the timestamp token is not signed data');
  const explicit = contentInfo.open(constructed(0));
  contentInfo.end();
  const signed = explicit.open(TAG.sequence);
  explicit.end();
  signed.take(TAG.integer);
  signed.take(TAG.set);
  const { contentType, content } = readContent(signed.open(TAG.sequence));
  const certificates = signed.takeIf(constructed(0));
  signed.takeIf(constructed(1));
  const signers = signed.open(TAG.set);
  signed.end();
  if (!certificates) throw refused('the timestamp token carries no certificate');
  if (signers.isAtEnd) throw refused('the timestamp token is not signed');
  return {
    contentType,
    content,
    certificates: readCertificates(certificates.content),
    signer: readSigner(signers.open(TAG.sequence, 'the signer')),
    hasOneSigner: signers.isAtEnd,
  };
}

function readContent(reader: DerReader): { readonly contentType: string; readonly content: Uint8Array } {
  const contentType = oidText(reader.take(TAG.oid));
  const explicit = reader.open(constructed(0));
  reader.end();
  const { content } = explicit.take(TAG.octets);
  explicit.end();
  return { contentType, content };
}

function readSigner(reader: DerReader): SignerInfo {
  reader.take(TAG.integer);
  const sid = reader.takeIf(primitive(0)) ?? reader.take(TAG.sequence);
  const hash = HASHES[readAlgorithm(reader).oid];
  if (!hash) throw refused('the signer uses another digest than SHA-256, SHA-384 or SHA-512');
  const attributes = reader.takeIf(constructed(0));
  if (!attributes) throw refused('the signer has no signed attributes');
  const scheme = readAlgorithm(reader);
  const signature = reader.take(TAG.octets).content;
  reader.takeIf(constructed(1)); // attributes that nobody signed
  reader.end();
  // What is signed is the attributes as a SET; in the token they stand under a tag of their own (RFC 5652, 5.4).
  const attributesDer = Uint8Array.from(attributes.whole);
  attributesDer[0] = TAG.set;
  return { sid, hash, attributesDer, attributes: readAttributes(attributes.content), scheme, signature };
}

/** Each attribute once and with one value, so that there is no choice which of them counts. */
function readAttributes(der: Uint8Array): Map<string, Der> {
  const reader = new DerReader(der, 'an attribute of the signer');
  const found = new Map<string, Der>();
  while (!reader.isAtEnd) {
    const attribute = reader.open(TAG.sequence);
    const oid = oidText(attribute.take(TAG.oid));
    const values = attribute.open(TAG.set);
    attribute.end();
    if (found.has(oid)) throw refused('the signer says an attribute twice');
    found.set(oid, values.takeAny());
    values.end();
  }
  return found;
}

/** The next value as an algorithm and its parameters. */
export function readAlgorithm(reader: DerReader): AlgorithmId {
  const parameters = reader.open(TAG.sequence, 'an algorithm');
  return { oid: oidText(parameters.take(TAG.oid)), parameters };
}

function readCertificates(der: Uint8Array): Certificate[] {
  const reader = new DerReader(der, 'a certificate');
  const found: Certificate[] = [];
  while (!reader.isAtEnd) {
    const choice = reader.takeAny();
    // The other choices are attribute certificates and older forms, with which nobody signs timestamps.
    if (choice.tag === TAG.sequence) found.push(readCertificate(choice));
  }
  return found;
}

/** As much of a certificate (RFC 5280, 4.1) as it takes to find the signer's. */
function readCertificate({ whole, content }: Der): Certificate {
  const tbs = new DerReader(content, 'a certificate').open(TAG.sequence);
  tbs.takeIf(constructed(0)); // version
  const serial = tbs.take(TAG.integer);
  tbs.take(TAG.sequence); // algorithm
  const issuer = tbs.take(TAG.sequence);
  for (let i = 0; i < 3; i += 1) tbs.take(TAG.sequence); // validity, subject, key
  tbs.takeIf(primitive(1));
  tbs.takeIf(primitive(2));
  const extensions = new Map<string, Uint8Array>();
  const list = tbs.takeIf(constructed(3));
  tbs.end();
  const all = list && new DerReader(list.content, 'a certificate').open(TAG.sequence);
  while (all && !all.isAtEnd) {
    const extension = all.open(TAG.sequence);
    const oid = oidText(extension.take(TAG.oid));
    extension.takeIf(TAG.boolean); // critical
    extensions.set(oid, extension.take(TAG.octets).content);
  }
  return { der: whole, issuerAndSerial: Buffer.concat([issuer.whole, serial.whole]), extensions };
}

function refused(reason: string): Refusal {
  return new Refusal('anchor', reason);
}
