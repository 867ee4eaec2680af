/** `audit report` as a process: files in, one page out, and nothing of what didn't verify. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bytesOf, KEY, type Loose, linked, plainClaims, sealed, windowsOf } from '../verifier/bundles.fixture.js';
import { capstan, inFolder } from './cli.fixture.js';

const claims = linked(
  plainClaims(6).map((claim, index) => ({
    ...claim,
    payload: { ...claim.payload, principalName: `<b>ann ${index}</b>` },
  })),
);
const [first, second] = windowsOf(claims, [
  [1, 3],
  [4, 6],
]);

it('S4-106 windows of a chain become one page that names the key, the range and the head, with every entry', () =>
  inFolder(async (cwd) => {
    await writeFile(join(cwd, 'a.json'), bytesOf(first));
    const args = ['audit', 'report', '-', 'a.json', '-o', 'r.html', '--fingerprint', KEY.fingerprint];
    const { code, stdout, stderr } = await capstan(args, { cwd, stdin: bytesOf(second) });
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).toBe('capstan: r.html: Verified: signed, chained (full)\n');
    expect(await readdir(cwd)).toEqual(['a.json', 'r.html']);
    const page = await readFile(join(cwd, 'r.html'), 'utf8');
    for (const { chain, payload } of claims) {
      expect(page).toContain(chain.link);
      expect(page).toContain(payload.object);
      expect(page).not.toContain(payload.principalName);
      expect(page).toContain(payload.principalName.replaceAll('<', '&lt;').replaceAll('>', '&gt;'));
    }
    expect(page).toContain(`${KEY.fingerprint} (the key that was asked for)`);
    expect(page).toContain(`6:${claims[5].chain.link}`);
    expect(page).toContain('1 to 6 (6)');
  }));

it('S4-106 says of what does not verify why, and shows nothing that it holds', () =>
  inFolder(async (cwd) => {
    const forged: Loose = structuredClone(first);
    forged.claims[1].payload.object = 'thing_forged';
    await writeFile(join(cwd, 'forged.json'), bytesOf(sealed(forged)));
    const { code, stdout, stderr } = await capstan(['audit', 'report', 'forged.json'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('Not verified (chain: entry 2:');
    expect(stdout).toContain('Not verified (chain: entry 2:');
    for (const hidden of ['thing_', 'ann', 'tok_1', 'org_1', KEY.fingerprint]) expect(stdout).not.toContain(hidden);
    const noise = await capstan(['audit', 'report', '-'], { cwd, stdin: 'no bundle' });
    expect(noise.code).toBe(1);
    expect(noise.stdout).toContain('Not verified (parse: ');
    const json = await capstan(['audit', 'report', 'forged.json', '--json', '-o', 'r.html'], { cwd });
    expect([json.code, json.stderr]).toEqual([1, '']);
    expect(JSON.parse(json.stdout)).toMatchObject({ file: 'r.html', ok: false, failed: { stage: 'chain', seq: 2 } });
  }));

it('refuses what it can not read, to write over what it reads, and JSON without a file for the page', () =>
  inFolder(async (cwd) => {
    const missing = await capstan(['audit', 'report', 'none.json'], { cwd });
    expect([missing.code, missing.stdout]).toEqual([2, '']);
    expect(missing.stderr).toContain('none.json does not exist');
    await writeFile(join(cwd, 'a.json'), bytesOf(first));
    const itself = await capstan(['audit', 'report', 'a.json', '-o', './a.json'], { cwd });
    expect([itself.code, itself.stdout]).toEqual([2, '']);
    expect(await readFile(join(cwd, 'a.json'))).toEqual(bytesOf(first));
    const twice = await capstan(['audit', 'report', 'a.json', '--fingerprint', 'a', '--fingerprint', 'b'], { cwd });
    expect([twice.code, twice.stdout]).toEqual([2, '']);
    expect(twice.stderr).toContain('--fingerprint is there twice');
    const json = await capstan(['audit', 'report', '-', '--json'], { cwd, stdin: bytesOf(first) });
    expect([json.code, json.stdout]).toEqual([2, '']);
    expect(await readdir(cwd)).toEqual(['a.json']);
  }));
