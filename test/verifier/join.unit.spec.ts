/** Several bundles as one range, and what people get to read of it. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Outcome, runVerify, type VerifyCommand } from '../../src/verifier/command.js';
import {
  bundleOf,
  bytesOf,
  exampleBundle,
  KEY,
  type Loose,
  linked,
  OTHER_KEY,
  plainClaims,
  sealed,
  windowsOf,
} from './bundles.fixture.js';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-verify-'));
});
afterAll(() => rm(folder, { recursive: true }));

const noStdin = () => Promise.reject(new Error('nobody asked for standard input'));

/** Written as `0.json`, `1.json`, … and verified together. */
async function verify(bundles: readonly Loose[], more: Omit<VerifyCommand, 'files'> = {}): Promise<Outcome> {
  const files = bundles.map((_, index) => join(folder, `${index}.json`));
  for (const [index, bundle] of bundles.entries()) await writeFile(files[index] ?? '', bytesOf(bundle));
  return runVerify({ files, ...more }, noStdin);
}

const claims = linked(plainClaims(30));
const windows = (...ranges: [number, number][]) => windowsOf(claims, ranges);
const rehead = (bundle: Loose, head: Loose) => sealed({ ...bundle, chain: { ...bundle.chain, head } });

describe('windows of one chain', () => {
  it('S4-104 are joined in whatever order they are named, and the range is told', async () => {
    const { exitCode, document, text } = await verify(windows([11, 20], [21, 30], [1, 10]));
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({
      ok: true,
      level: 'signed, chained (full)',
      facts: {
        claims: { count: 30, firstAt: claims[0].at, lastAt: claims[29].at },
        chain: { from: 1, to: 30, head: { seq: 30 }, headMatched: true },
      },
      files: [
        { ok: true, from: 11, to: 20 },
        { ok: true, from: 21, to: 30 },
        { ok: true, from: 1, to: 10 },
      ],
    });
    expect(text).toContain('Entries 1 to 30: each is as it was');
    expect(text).toContain('entries     1 to 30 (30)');
  });

  it('may overlap, hold one another, or be the same file twice', async () => {
    for (const bundles of [
      windows([1, 12], [8, 30]),
      windows([5, 30], [10, 12]),
      windows([1, 30], [1, 30]),
      windows([1, 10], [1, 30]),
    ]) {
      const { exitCode, document } = await verify(bundles);
      expect({ exitCode, to: document.facts?.chain?.to }).toEqual({ exitCode: 0, to: 30 });
      expect(document.facts?.claims.count).toBe(30 - (document.facts?.chain?.from ?? 0) + 1);
    }
  });

  it('that leave a gap are not verified, and the gap is named', async () => {
    const { exitCode, document, text } = await verify(windows([1, 10], [14, 30]));
    expect(exitCode).toBe(1);
    expect(document.failed).toEqual({
      stage: 'chain',
      reason: expect.stringContaining('entries 11 to 13 are in none of the files'),
      seq: 11,
    });
    expect(text).toMatch(/^NOT VERIFIED {2}chain: entry 11: /);
    expect(document.files).toMatchObject([{ ok: true }, { ok: true }]);
  });

  it('of two histories do not join, whether they meet, overlap or agree until the head', async () => {
    const other = linked(plainClaims(30).with(7, { ...plainClaims(1)[0], payload: { action: 'another' } }));
    const [late] = windowsOf(other, [[11, 20]]);
    const [early] = windows([1, 10]);
    expect((await verify([early, late])).document.failed).toMatchObject({ stage: 'chain', seq: 11 });
    const [overlapping] = windowsOf(other, [[6, 20]]);
    expect((await verify([early, overlapping])).document.failed).toMatchObject({
      reason: expect.stringContaining('another entry'),
      seq: 8,
    });
    const [inside] = windowsOf(other, [[9, 9]]);
    expect((await verify([early, inside])).document.failed).toMatchObject({ stage: 'chain', seq: 9 });
    const [same] = windowsOf(other, [[1, 7]]);
    expect((await verify([same, ...windows([8, 30])])).document.failed).toMatchObject({
      reason: expect.stringContaining('a head that another file contradicts'),
      seq: 30,
    });
    const beyond = windows([1, 10], [11, 20]).map((bundle, index) =>
      rehead(bundle, { seq: 40, link: String(index).repeat(64) }),
    );
    expect((await verify(beyond)).document.failed).toMatchObject({ stage: 'chain', seq: 40 });
  });

  it('of two chains, keys or profiles do not join', async () => {
    const [first] = windows([1, 10]);
    const rest = claims.slice(10);
    const others: [Loose, string][] = [
      [sealed(bundleOf(linked(plainClaims(30), 1, '', 'in_other').slice(10), KEY, 'in_other')), 'the installation'],
      [sealed({ ...bundleOf(rest), subject: { type: 'fleet', id: 'org_2' } }), 'the subject'],
      [sealed({ ...bundleOf(rest), chain: { ...bundleOf(rest).chain, keyed: true } }), 'the profile'],
      [sealed({ ...bundleOf(rest), producer: { ...bundleOf(rest).producer, install_id: 'in_x' } }), 'the producer'],
    ];
    for (const [other, what] of others) {
      const { exitCode, document } = await verify([first, other]);
      expect({ exitCode, reason: document.failed?.reason }).toEqual({
        exitCode: 1,
        reason: expect.stringContaining(`are of two chains: ${what} differs`),
      });
    }
    const replaced = sealed(bundleOf(rest, OTHER_KEY), OTHER_KEY);
    expect((await verify([first, replaced])).document.failed?.reason).toContain('are signed under two keys');
    const chainless = bundleOf(rest);
    delete chainless.chain;
    expect((await verify([first, sealed(chainless)])).document.failed?.reason).toContain('1.json has no chain');
  });

  it('of which one does not verify fail with its reason', async () => {
    const [first, second] = windows([1, 10], [11, 20]);
    second.bundle_id = 'lsb_changed';
    const { exitCode, document, text } = await verify([first, second]);
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({
      ok: false,
      failed: { stage: 'signature' },
      files: [{ ok: true }, { ok: false, failed: { stage: 'signature' } }],
    });
    expect(text).toContain('1.json');
    expect(text).not.toContain('0.json');
  });

  it('are anchored when one of them is, and beats are counted across them', async () => {
    const beat = (seconds: number, number: number, count: number) => ({
      type: 'loomseal.span/1',
      at: new Date(Date.parse('2026-03-02T10:00:00Z') + seconds * 1_000).toISOString(),
      payload: { stream: 'chain', cadence_s: 60, beat: number, count },
    });
    const beating = (second: Loose) => linked([...plainClaims(2), beat(0, 1, 2), ...plainClaims(2), second]);
    const parts = (all: readonly Loose[]) => {
      const [first, last] = windowsOf(all, [
        [1, 4],
        [5, 6],
      ]);
      const { seq, link } = all[5].chain;
      const anchor = { type: 'git', seq, link, at: '2026-03-02T11:00:00Z', ref: 'https://x/1' };
      return [first, sealed({ ...last, signatures: [], anchors: [anchor] })];
    };
    const good = await verify(parts(beating(beat(60, 2, 2))));
    expect(good.document).toMatchObject({
      level: 'signed, chained (full), anchored by reference, spanned',
      facts: { spans: { beats: 2, coverage: '2/2 windows attested' }, anchors: [{ seq: 6, binds: 'reference' }] },
    });
    // Each window holds by itself: its one beat is taken as it is.
    const bad = await verify(parts(beating(beat(60, 3, 2))));
    expect(bad.document).toMatchObject({
      ok: false,
      failed: { stage: 'span', seq: 6 },
      files: [{ ok: true }, { ok: true }],
    });
  });
});

describe('the report for people', () => {
  it('names what is proven, by which key, for which range, and what is not', async () => {
    const { text } = await verify([sealed(exampleBundle())], { fingerprint: KEY.fingerprint });
    expect(text.replaceAll(folder, 'DIR')).toBe(`VERIFIED  signed, chained (full)

  file        DIR/0.json
  signed by   ${KEY.fingerprint} (the pinned key)
  producer    acme 1.0.0, in_demo
  subject     fleet org_1
  bundle      lsb_demo, made 2026-03-02T10:00:00Z
  entries     1 to 3 (3)
  times       2026-03-02T09:00:00Z to 2026-03-02T09:00:02Z
  types       acme.audit/1
  chain       in_demo, loomseal-chain-v1
  head        3:9159ad3212881e6c378b8e3c66f6855ae1a8383c4029f4e537654cef9ec5e8ab
  evidence    0 verified, 1 referenced, 0 missing or changed

Proven
  - Who holds the key ${KEY.fingerprint} signed exactly this, and it was not changed since.
  - Entries 1 to 3: each is as it was when it was linked. All of them are there, in order, and none was added between them.

Not proven
  - That entry 3 was the newest: ask for receipts or a later bundle to see that none was cut off.
  - When it was: no anchor covers these entries; who holds the chain and the key could have made them all anew until 2026-03-02T10:00:00Z.
  - 1 artifact is named and not given (--evidence).
  - That the entries tell the truth: only that they are the ones that were recorded.

Noted
  - Types of entries outside the registry of LoomSeal: acme.audit/1.
`);
  });

  it('prints no character of a file that steers a terminal, and no text without end', async () => {
    const evil = `\u001b]8;;javascript:alert(1)\u0007\u009b2J\u202e\u2066\u200b\r\nVERIFIED\t\u0000${'x'.repeat(5_000)}`;
    const bundle = exampleBundle();
    Object.assign(bundle, { bundle_id: evil });
    Object.assign(bundle.producer, { product: evil, product_version: evil, install_id: evil });
    Object.assign(bundle.subject, { id: evil });
    const { seq, link } = bundle.chain.head;
    const at = '2026-03-02T11:00:00Z';
    bundle.anchors = Array.from({ length: 500 }, () => ({ type: 'https', seq, link, at, ref: evil }));
    const named = structuredClone(bundle);
    named.claims[0][evil] = 1;
    for (const each of [bundle, named]) {
      const { text } = await verify([sealed(each)]);
      expect(text.replaceAll('\n', '')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
      expect(text).not.toMatch(/^VERIFIED\t/m);
      expect(text.length).toBeLessThan(10_000);
    }
  });
});

describe('what is given to the command', () => {
  const refusal = (command: VerifyCommand) =>
    runVerify(command, noStdin).then(
      () => 'none',
      (error: Error) => `${error.constructor.name}: ${error.message}`,
    );

  it('that can’t be understood or read is no verdict', async () => {
    const good = join(folder, 'good.json');
    await writeFile(good, bytesOf(sealed(exampleBundle())));
    for (const [command, says] of [
      [{ files: [] }, 'no bundle is named'],
      [{ files: ['-', '-'] }, 'standard input is read once'],
      [{ files: [join(folder, 'nowhere')] }, 'does not exist'],
      [{ files: [folder] }, 'cannot be read: EISDIR'],
      [{ files: ['/dev/zero'] }, '/dev/zero holds more than 67108864 bytes'],
      [{ files: [good], fingerprint: KEY.fingerprint.slice(7) }, '--fingerprint: expected sha256:'],
      [{ files: [good], fingerprint: KEY.fingerprint.toUpperCase() }, '--fingerprint: expected sha256:'],
      [{ files: [good], evidence: join(folder, 'nowhere') }, 'does not exist'],
      [{ files: [good], evidence: good }, 'cannot be read: ENOTDIR'],
    ] as const) {
      expect(await refusal(command)).toMatch(new RegExp(`^UsageError: .*${says}`));
    }
  });

  it('as a folder of evidence is looked through by content, at any depth', async () => {
    const evidence = join(folder, 'evidence');
    await mkdir(join(evidence, 'a/b'), { recursive: true });
    await symlink('.', join(evidence, 'loop'));
    const check = async (content: string) => {
      await writeFile(join(evidence, 'a/b/any name'), content);
      const { exitCode, document } = await verify([sealed(exampleBundle())], { evidence, requireEvidence: true });
      return [exitCode, document.failed?.stage, document.facts?.evidence.verified];
    };
    expect(await check('hello evidence\n')).toEqual([0, undefined, 1]);
    expect(await check('hello evidence')).toEqual([1, 'evidence', 0]);
  });
});
