/** `audit bundle`, `key`, `keygen`, `rotate-key` as processes: against a server that answers as told, and a real one. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf, signBundle } from '../../src/audit/bundle.js';
import { canonicalJson, sha256Hex } from '../../src/kernel/json.js';
import { SigningKey } from '../../src/kernel/signing-key.js';
import { keyOf, seedOf } from '../audit/signing.fixture.js';
import { dataFolder, type ServerProcess, startServer } from '../server.js';
import { at, type Call, capstan, inFolder, startOnTerminal } from './cli.fixture.js';
import { type Asked, type Reply, standIn } from './stand-in.fixture.js';

const KEY = keyOf(5);
const CHAIN = 'org_01h455vb4pex5vsknk084sn02q';
const NAME = `${CHAIN}-2026-03-02.loomseal.json`;

/** Three entries, signed. */
async function aBundle(from = 1): Promise<Buffer> {
  let prev = from === 1 ? '' : 'ab'.repeat(32);
  const entries = [from, from + 1, from + 2].map((seq) => {
    const claim = canonicalJson({ at: '2026-03-02T09:00:00.000Z', payload: { action: 'a' }, type: 'capstan.audit/1' });
    const D = `sha256:${sha256Hex(claim)}`;
    const link = sha256Hex(canonicalJson({ claim: D, domain: 'loomseal-chain-v1', install_id: CHAIN, prev, seq }));
    const entry = { seq, claim, prev, link };
    prev = link;
    return entry;
  });
  const product = { name: 'capstan', version: '1.0.0' };
  const head = { seq: from + 2, link: prev };
  const rest = { id: 'lsb_1', createdAt: '2026-03-02T10:00:00Z', product, chain: CHAIN, subject: CHAIN, head };
  return signBundle({ ...rest, claims: [claimsOf(entries)], anchors: [] }, KEY);
}

let bytes: Buffer;
beforeAll(async () => {
  bytes = await aBundle();
});

const headersOf = (more: Readonly<Record<string, string>> = {}) => ({
  'content-type': 'application/vnd.kordloom.loomseal+json',
  'content-disposition': `attachment; filename="${NAME}"`,
  'content-length': String(bytes.length),
  'audit-receipt': `${CHAIN}:3:${'ab'.repeat(32)}`,
  ...more,
});

async function against<T>(
  answer: (asked: Asked) => Reply,
  use: (call: Call & { cwd: string }, asked: readonly Asked[]) => Promise<T>,
): Promise<T> {
  const server = await standIn(answer);
  try {
    return await inFolder((cwd) => use({ ...at(server.url), cwd }, server.asked));
  } finally {
    await server.close();
  }
}

const whole = (): Reply => ({ headers: headersOf(), body: bytes });

describe('audit bundle', () => {
  it('writes the file, says what is in it and how it is checked, and asks for what was named', () =>
    against(whole, async (call, asked) => {
      const instant = '2026-03-01T00:00:00Z';
      const { code, stdout, stderr } = await capstan(
        ['audit', 'bundle', '-o', 'out.json', '--from', instant, '--to', '9'],
        call,
      );
      expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
      expect(stderr).toBe(
        `capstan: out.json: 3 entries (1 to 3) of ${CHAIN}, signed by ${KEY.fingerprint}\n` +
          `  check it: capstan verify out.json --fingerprint ${KEY.fingerprint}\n`,
      );
      expect((await readFile(join(call.cwd, 'out.json'))).equals(bytes)).toBe(true);
      expect(await readdir(call.cwd)).toEqual(['out.json']);
      expect(String(asked[0]?.query)).toBe(`from=${encodeURIComponent(instant)}&to=9`);
      await capstan(['audit', 'bundle', '--installation', '--run', 'run_01h455vb4pex5vsknk084sn02q'], call);
      expect(String(asked[1]?.query)).toBe('run=run_01h455vb4pex5vsknk084sn02q&chain=installation');
    }));

  it('names the windows to ask for as this command takes them, and what stands before the newest entries', async () => {
    const windows = Array.from({ length: 12 }, (_, at) => ({ from: at * 10_000 + 1, to: (at + 1) * 10_000 }));
    const detail = 'a bundle holds up to 10000 entries';
    const problem = { title: 'The input is invalid', status: 422, code: 'invalid_input', detail, windows };
    await against(
      () => ({ status: 422, headers: { 'content-type': 'application/problem+json' }, body: problem }),
      async (call) => {
        const { code, stderr } = await capstan(['audit', 'bundle', '--from', '1'], call);
        expect(code).toBe(3);
        expect(stderr).toContain('\n  --from 1 --to 10000\n  --from 10001 --to 20000\n');
        expect(stderr).toContain('\n  --from 90001 --to 100000\n  and so on, 12 in all');
      },
    );
    const late = await aBundle(5);
    await against(
      () => ({ headers: headersOf({ 'content-length': String(late.length) }), body: late }),
      async (call) => {
        const all = await capstan(['audit', 'bundle', '-o', 'out.json'], call);
        expect(all.stderr).toContain('\n  before these: --from 1 --to 4\n');
        const named = await capstan(['audit', 'bundle', '-o', 'out.json', '--from', '5'], call);
        expect(named.stderr).not.toContain('before these');
      },
    );
  });

  it('without a file it goes to standard output, byte for byte; a file of before is replaced, a device is not', () =>
    against(whole, async (call) => {
      const piped = await capstan(['audit', 'bundle'], call);
      expect(piped.bytes.equals(bytes)).toBe(true);
      expect(piped.stderr).toContain(`3 entries (1 to 3) of ${CHAIN}`);
      expect((await capstan(['audit', 'bundle', '-o', '-', '--json'], call)).bytes.equals(bytes)).toBe(true);
      await writeFile(join(call.cwd, 'out.json'), 'of before');
      expect((await capstan(['audit', 'bundle', '-o', 'out.json'], call)).code).toBe(0);
      expect((await readFile(join(call.cwd, 'out.json'))).equals(bytes)).toBe(true);
      expect((await capstan(['audit', 'bundle', '-o', '/dev/null'], call)).code).toBe(0);
      expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
    }));

  it('on a terminal it makes a file of the name that the server gives, and never over one that is there', () =>
    against(whole, async (call) => {
      const first = await (await startOnTerminal('audit bundle', call)).finished();
      expect(first.stdout).toContain(`${NAME}: 3 entries`);
      expect((await readFile(join(call.cwd, NAME))).equals(bytes)).toBe(true);
      await writeFile(join(call.cwd, NAME), 'mine');
      const second = await (await startOnTerminal('audit bundle', call)).finished();
      expect(second.stdout).toContain('it exists already');
      expect(await readFile(join(call.cwd, NAME), 'utf8')).toBe('mine');
    }));

  it.each(['../evil.json', '/tmp/evil.json', '.bashrc', '-rf', 'a\u001b[2Jb', ''])(
    'a name such as %j is not taken from a server',
    (name) =>
      against(
        () => ({
          headers: headersOf({ 'content-disposition': `attachment; filename="${encodeURI(name)}"` }),
          body: bytes,
        }),
        async (call) => {
          await (await startOnTerminal('audit bundle', call)).finished();
          expect(await readdir(call.cwd)).toEqual(['bundle.loomseal.json']);
        },
      ),
  );

  it('--json tells of the file in one document', () =>
    against(whole, async (call) => {
      const { stdout, stderr } = await capstan(['audit', 'bundle', '-o', 'out.json', '--json'], call);
      expect(stderr).toBe('');
      expect(JSON.parse(stdout)).toEqual({
        file: 'out.json',
        bytes: bytes.length,
        bundle: 'lsb_1',
        chain: CHAIN,
        from: 1,
        to: 3,
        entries: 3,
        fingerprint: KEY.fingerprint,
        level: 'signed, chained (full)',
        createdAt: '2026-03-02T10:00:00Z',
        receipt: `${CHAIN}:3:${'ab'.repeat(32)}`,
      });
    }));

  it('an answer that breaks off is asked for again, and never left as the file', () => {
    let tries = 0;
    const breaksOff = (): Reply => {
      tries += 1;
      return { headers: headersOf(), body: bytes, hangUp: { afterBytes: bytes.length - 100 } };
    };
    return against(breaksOff, async (call) => {
      const { code, stderr } = await capstan(['audit', 'bundle', '-o', 'out.json'], call);
      expect(code).toBe(3);
      expect(stderr).toContain('broke off');
      expect(tries).toBeGreaterThan(1);
      expect(await readdir(call.cwd)).toEqual([]);
    });
  });

  it('what a middleman cut short or changed is not written', async () => {
    const cut = { ...headersOf(), 'content-length': String(bytes.length - 50) };
    await against(
      () => ({ headers: cut, body: bytes.subarray(0, -50) }),
      async (call) => {
        const { code, stderr } = await capstan(['audit', 'bundle', '-o', 'out.json'], call);
        expect({ code, files: await readdir(call.cwd) }).toEqual({ code: 3, files: [] });
        expect(stderr).toContain("what came doesn't verify (parse:");
      },
    );
    const other = Buffer.from(bytes.toString().replace('"action":"a"', '"action":"b"'));
    await against(
      () => ({ headers: headersOf(), body: other }),
      async (call) => {
        const { code, stdout, stderr } = await capstan(['audit', 'bundle'], call);
        expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
        expect(stderr).toContain("what came doesn't verify (signature:");
      },
    );
  });

  it('a refusal is told with its words at once, also one that asks to come again in a minute', () => {
    const body = { title: 'There is no signing key', status: 503, detail: 'make one', code: 'signing_key_missing' };
    const reply: Reply = {
      status: 503,
      headers: { 'retry-after': '60', 'content-type': 'application/problem+json' },
      body,
    };
    return against(
      () => reply,
      async (call, asked) => {
        const { code, stderr } = await capstan(['audit', 'bundle', '-o', 'out.json'], call);
        expect({ code, stderr }).toEqual({ code: 3, stderr: 'capstan: There is no signing key: make one\n' });
        expect(asked).toHaveLength(1);
      },
    );
  });

  it.each([
    [['--run', 'run_1']],
    [['--run', 'run_01h455vb4pex5vsknk084sn02q', '--from', '1']],
    [['--from', 'yesterday']],
    [['--to', '0']],
    [['--to', '2026-02-30T00:00:00Z']],
  ])('%j is a slip: nothing is sent', (args) =>
    against(whole, async (call, asked) => {
      expect((await capstan(['audit', 'bundle', ...args], call)).code).toBe(2);
      expect(asked).toHaveLength(0);
    }),
  );

  it('a folder that there is not is said so', () =>
    against(whole, async (call) => {
      const { code, stderr } = await capstan(['audit', 'bundle', '-o', 'no/out.json'], call);
      expect({ code, stderr }).toEqual({ code: 3, stderr: 'capstan: output: cannot write no/out.json: ENOENT\n' });
    }));
});

describe('audit keygen', () => {
  it('prints the seed and a newline alone, its fingerprint beside it, another each time, and asks nobody', async () => {
    const [one, two] = await Promise.all([capstan(['audit', 'keygen']), capstan(['audit', 'keygen'])]);
    expect(one?.stdout).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    expect(one?.stdout).not.toBe(two?.stdout);
    const { fingerprint } = SigningKey.of(Buffer.from(one?.stdout ?? '', 'base64'));
    expect(one).toMatchObject({ code: 0, stderr: `fingerprint ${fingerprint}\n` });
  });
});

describe('audit rotate-key', () => {
  const recorded = {
    fingerprint: KEY.fingerprint,
    publicKey: KEY.publicKey,
    recordedAt: '2026-03-02T09:00:00.000Z',
    receipt: 'r',
  };
  const standing = { ...recorded, past: [{ ...recorded, fingerprint: 'sha256:old' }], signs: false };

  it('sends the public half alone, says what is to be done next, and shows the seed nowhere', () =>
    against(
      () => ({ body: standing }),
      async (call, asked) => {
        await writeFile(join(call.cwd, 'new-key'), `${seedOf(5)}\n`);
        const answers = [
          await capstan(['audit', 'rotate-key', '--key-file', 'new-key'], call),
          await capstan(['audit', 'rotate-key', '--key-file', '-'], { ...call, stdin: seedOf(5) }),
        ];
        for (const { code, stdout, stderr } of answers) {
          expect(code).toBe(0);
          expect(stdout).toContain(`fingerprint\t${KEY.fingerprint}\n`);
          expect(stdout).toContain('before\tsha256:old\n');
          expect(stderr).toContain('set it as CAPSTAN_AUDIT_KEY on every replica and start each again');
          expect(`${stdout}${stderr}`).not.toContain(seedOf(5));
        }
        expect(asked.map(({ method, path, body }) => ({ method, path, body }))).toEqual(
          Array(2).fill({ method: 'POST', path: '/v1/audit/key', body: { publicKey: KEY.publicKey } }),
        );
        expect(JSON.stringify(asked)).not.toContain(seedOf(5));
      },
    ));

  it.each([
    ['no key file', []],
    ['a file that there is not', ['--key-file', 'nowhere']],
    ['a file with something else', ['--key-file', 'other']],
  ])('%s is a slip: nothing is sent, and nothing of a file is shown', (_, args) =>
    against(
      () => ({ body: standing }),
      async (call, asked) => {
        await writeFile(join(call.cwd, 'other'), `${seedOf(5)} and more\n`);
        const { code, stdout, stderr } = await capstan(['audit', 'rotate-key', ...args], call);
        expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
        expect(stderr).not.toContain(seedOf(5).slice(0, 20));
        expect(asked).toHaveLength(0);
      },
    ),
  );
});

describe('against a real server', () => {
  let server: ServerProcess;
  let data: Awaited<ReturnType<typeof dataFolder>>;
  let call: Call;
  beforeAll(async () => {
    data = await dataFolder();
    server = await startServer({ CAPSTAN_DATA_DIR: data.path });
    call = { env: { CAPSTAN_URL: server.url, CAPSTAN_TOKEN_FILE: join(data.path, 'admin-token') } };
  });
  afterAll(async () => {
    server?.child.kill('SIGTERM');
    await server?.finished;
    await data?.remove();
  });

  it('S4-104 what a run did is exported as a file that verifies, and the key is rotated and set', () =>
    inFolder(async (cwd) => {
      const here = { ...call, cwd };
      const made = await capstan(['run', '--wait', '--', 'true'], here);
      const id = /(run_\w+) submitted/.exec(made.stderr)?.[1] ?? '';
      const key = JSON.parse((await capstan(['audit', 'key', '--json'], here)).stdout);
      expect(key).toMatchObject({ fingerprint: expect.stringMatching(/^sha256:/), signs: true, past: [] });
      const out = await capstan(['audit', 'bundle', '--run', id, '-o', 'run.json', '--json'], here);
      expect(JSON.parse(out.stdout)).toMatchObject({
        level: 'signed, chained (full)',
        fingerprint: key.fingerprint,
        entries: 2,
      });
      const claims = JSON.parse(await readFile(join(cwd, 'run.json'), 'utf8')).claims;
      expect(claims.map(({ payload }: { payload: { action: string } }) => payload.action)).toEqual([
        'run.submitted',
        'run.ended',
      ]);

      await writeFile(join(cwd, 'new-key'), (await capstan(['audit', 'keygen'])).stdout);
      const rotated = await capstan(['audit', 'rotate-key', '--key-file', 'new-key', '--json'], here);
      expect(JSON.parse(rotated.stdout)).toMatchObject({ past: [{ fingerprint: key.fingerprint }], signs: false });
      const refused = await capstan(['audit', 'bundle'], here);
      expect(refused).toMatchObject({
        code: 3,
        stdout: '',
        stderr: expect.stringContaining('The signing key was replaced'),
      });
    }));
});
