/**
 * A time-stamping authority made of `openssl ts` and `openssl cms` with a scratch CA, and the same behind HTTP: honest,
 * or misbehaving in one way.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readSignedData } from '../../src/verifier/signed-data.js';

const run = promisify(execFile);

const TST_INFO = '1.2.840.113549.1.9.16.1.4';
/** How each signer's key is made, and what its certificate is for. */
const SIGNERS = {
  rsa: { key: ['rsa', '-pkeyopt', 'rsa_keygen_bits:2048'], usage: 'critical,timeStamping' },
  ecdsa: { key: ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256'], usage: 'critical,timeStamping' },
  ed25519: { key: ['ED25519'], usage: 'critical,timeStamping' },
  smuggler: { key: ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256'], usage: 'critical,timeStamping' },
  webServer: { key: ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256'], usage: 'serverAuth' },
} as const;
export type SignerName = keyof typeof SIGNERS;

const CONFIG = `
[tsa]
default_tsa = here
[here]
serial = DIR/serial
default_policy = 1.2.3.4.1
digests = sha1, sha256, sha384, sha512
signer_digest = sha256
ess_cert_id_alg = sha256
accuracy = secs:1
ordering = yes
`;

export class Authority {
  /** Serial numbers are counted in a file. */
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(readonly dir: string) {}

  static async create(): Promise<Authority> {
    const authority = new Authority(await mkdtemp(join(tmpdir(), 'capstan-tsa-')));
    await authority.write('tsa.cnf', CONFIG.replace('DIR', authority.dir));
    await authority.write('serial', '01');
    await authority.openssl('genpkey', '-algorithm', ...SIGNERS.ecdsa.key, '-out', 'ca.key');
    await authority.openssl(
      ...['req', '-x509', '-new', '-key', 'ca.key', '-subj', '/CN=Scratch CA', '-days', '30', '-out', 'ca.pem'],
    );
    for (const [name, { key, usage }] of Object.entries(SIGNERS)) {
      await authority.openssl('genpkey', '-algorithm', ...key, '-out', `${name}.key`);
      await authority.openssl('req', '-new', '-key', `${name}.key`, '-subj', `/O=Scratch/CN=${name}`, '-out', 'csr');
      // The CA's own certificate, as PEM, in an extension that nobody knows.
      const smuggled =
        name === 'smuggler' ? `1.2.3.4 = DER:0a${(await authority.read('ca.pem')).toString('hex')}\n` : '';
      await authority.write('ext', `extendedKeyUsage = ${usage}\nsubjectKeyIdentifier = hash\n${smuggled}`);
      await authority.openssl(
        ...['x509', '-req', '-in', 'csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30'],
        ...['-extfile', 'ext', '-out', `${name}.pem`],
      );
    }
    return authority;
  }

  remove(): Promise<void> {
    return rm(this.dir, { recursive: true, force: true });
  }

  /** The TimeStampResp to a TimeStampReq. */
  reply(request: Uint8Array, signer: SignerName = 'rsa'): Promise<Buffer> {
    return this.inTurn(async () => {
      await this.write('query', request);
      await this.openssl(
        ...['ts', '-reply', '-config', 'tsa.cnf', '-queryfile', 'query', '-signer', `${signer}.pem`],
        ...['-inkey', `${signer}.key`, '-out', 'reply'],
      );
      return this.read('reply');
    });
  }

  /** The token of the answer to a request. */
  token(request: Uint8Array, signer: SignerName = 'rsa'): Promise<Buffer> {
    return this.reply(request, signer).then((reply) => this.tokenOf(reply));
  }

  tokenOf(reply: Uint8Array): Promise<Buffer> {
    return this.inTurn(async () => {
      await this.write('reply', reply);
      await this.openssl('ts', '-reply', '-config', 'tsa.cnf', '-in', 'reply', '-token_out', '-out', 'token');
      return this.read('token');
    });
  }

  /** Signs a TSTInfo the way `openssl cms` is told to: what `openssl ts` itself would never do. */
  sign(tstInfo: Uint8Array, signer: SignerName, ...options: string[]): Promise<Buffer> {
    return this.inTurn(async () => {
      await this.write('info', tstInfo);
      await this.openssl(
        ...['cms', '-sign', '-binary', '-nodetach', '-nosmimecap', '-outform', 'DER'],
        ...(options.includes('-econtent_type') ? [] : ['-econtent_type', TST_INFO]),
        ...['-signer', `${signer}.pem`, '-inkey', `${signer}.key`, '-in', 'info', '-out', 'signed', ...options],
      );
      return this.read('signed');
    });
  }

  /** Whether `openssl ts -verify` accepts the token as one of this digest, by the scratch CA. */
  accepts(token: Uint8Array, digestHex: string): Promise<boolean> {
    return this.inTurn(async () => {
      await this.write('token', token);
      return this.openssl(
        ...['ts', '-verify', '-digest', digestHex, '-in', 'token', '-token_in', '-CAfile', 'ca.pem'],
      ).then(
        () => true,
        () => false,
      );
    });
  }

  async openssl(...args: string[]): Promise<void> {
    await run('openssl', args, { cwd: this.dir });
  }

  async write(name: string, content: string | Uint8Array): Promise<void> {
    await writeFile(join(this.dir, name), content);
  }

  read(name: string): Promise<Buffer> {
    return readFile(join(this.dir, name));
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.turn.then(work);
    this.turn = mine.catch(() => undefined);
    return mine;
  }
}

/** A TimeStampResp that says granted, around a token. */
function granted(token: Uint8Array): Buffer {
  const content = Buffer.concat([Buffer.from('3003020100', 'hex'), token]);
  const header = Buffer.from([0x30, 0x82, content.length >> 8, content.length & 0xff]);
  return Buffer.concat([header, content]);
}

/** The same TSTInfo with another time, which must be as long. */
export function withTime(token: Uint8Array, at: Date): Buffer {
  const info = Buffer.from(readSignedData(token).content);
  const place = info.indexOf(Buffer.from([0x18, 0x0f]));
  info.write(`${at.toISOString().replace(/[-:T]|\.\d+/g, '')}`, place + 2, 'latin1');
  return info;
}

/** A request of `timeStampRequest`, changed in one respect. */
const changed = {
  imprint: (request: Buffer) => Buffer.concat([request.subarray(0, 24), Buffer.alloc(32, 7), request.subarray(56)]),
  nonce: (request: Buffer) => Buffer.concat([request.subarray(0, 58), Buffer.alloc(8, 0x41), request.subarray(66)]),
  certReq: (request: Buffer) => Buffer.concat([Buffer.from([0x30, 0x40]), request.subarray(2, 66)]),
};

type Answer = (authority: Authority, request: Buffer, response: ServerResponse) => Promise<Uint8Array | undefined>;

/** One of these is how the server answers. `undefined`: it has answered already, or never will. */
const MODES = {
  honest: (authority, request) => authority.reply(request),
  ecdsa: (authority, request) => authority.reply(request, 'ecdsa'),
  otherImprint: (authority, request) => authority.reply(changed.imprint(request)),
  otherNonce: (authority, request) => authority.reply(changed.nonce(request)),
  noCertificate: (authority, request) => authority.reply(changed.certReq(request)),
  wrongUsage: async (authority, request) => {
    const info = withTime(await authority.token(request), new Date());
    return granted(await authority.sign(info, 'webServer'));
  },
  clockBehind: async (authority, request) => {
    const info = withTime(await authority.token(request), new Date(Date.now() - 3_600_000));
    return granted(await authority.sign(info, 'rsa'));
  },
  twoSigners: async (authority, request) => {
    const info = withTime(await authority.token(request), new Date());
    return granted(await authority.sign(info, 'rsa', '-signer', 'ecdsa.pem', '-inkey', 'ecdsa.key'));
  },
  /** Thirty days are what its certificate is for. */
  certificateOver: async (authority, request) => {
    const info = withTime(await authority.token(request), new Date(Date.now() + 40 * 86_400_000));
    return granted(await authority.sign(info, 'rsa'));
  },
  rejection: (authority) => authority.reply(Buffer.from('no request at all')),
  garbage: async () => Buffer.from('30820fff0000', 'hex'),
  bitFlipped: async (authority, request) => {
    const reply = await authority.reply(request);
    const place = reply.length - 20; // in the signature
    reply[place] = (reply[place] ?? 0) ^ 1;
    return reply;
  },
  silent: async () => undefined,
  stuck: async (_authority, _request, response) => {
    response.writeHead(200, { 'content-type': 'application/timestamp-reply' });
    response.write(Buffer.from('3082', 'hex'));
    return undefined;
  },
  huge: async () => Buffer.alloc(4_000_000, 0x30),
  redirect: async (_authority, _request, response) => {
    response.writeHead(307, { location: '/elsewhere' }).end();
    return undefined;
  },
  serverError: async (_authority, _request, response) => {
    response.writeHead(500).end('out of order');
    return undefined;
  },
  webPage: async (_authority, _request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>welcome</h1>');
    return undefined;
  },
  hangsUp: async (_authority, _request, response) => {
    response.destroy();
    return undefined;
  },
} as const satisfies Record<string, Answer>;
export type TsaMode = keyof typeof MODES;

export interface TsaServer {
  readonly url: string;
  readonly authority: Authority;
  mode: TsaMode;
  /** The requests that came, in their order. */
  readonly requests: readonly Buffer[];
  /** Paths that were asked for. */
  readonly paths: readonly string[];
  close(): Promise<void>;
}

export async function startTsa(mode: TsaMode = 'honest'): Promise<TsaServer> {
  const authority = await Authority.create();
  const requests: Buffer[] = [];
  const paths: string[] = [];
  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    requests.push(Buffer.concat(chunks));
    paths.push(`${incoming.method} ${incoming.url} ${incoming.headers['content-type']}`);
    const reply = await MODES[tsa.mode](authority, Buffer.concat(chunks), response);
    if (reply) response.writeHead(200, { 'content-type': 'application/timestamp-reply' }).end(reply);
  };
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const tsa: TsaServer = {
    url: `http://127.0.0.1:${port}/tsr?key=secret`,
    authority,
    mode,
    requests,
    paths,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await authority.remove();
    },
  };
  return tsa;
}
