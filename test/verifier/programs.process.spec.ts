/**
 * The two programs that verify: `capstan verify`, and the single file that a build makes, run by plain Node in an empty
 * folder. Whatever they are given, they say the same.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cleanEnv, type Finished, mainFile, startProcess } from '../cli/cli.fixture.js';
import { bytesOf, exampleBundle, KEY, linked, OTHER_KEY, plainClaims, sealed, windowsOf } from './bundles.fixture.js';
import { refusedCases, validCases } from './cases.fixture.js';

const BUILD = resolve(import.meta.dirname, '../../src/build-verifier.mjs');

let folder = '';
/** The command lines of both, by name. */
let programs: [name: string, words: string[]][] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-verify-'));
  await promisify(execFile)(process.execPath, [BUILD, join(folder, 'built')]);
  await mkdir(join(folder, 'empty'));
  programs = [
    ['capstan verify', [await mainFile(), 'verify']],
    ['capstan-verify.mjs', [join(folder, 'built/capstan-verify.mjs')]],
  ];
});
afterAll(() => rm(folder, { recursive: true }));

/** Of each program; `stdin` is what is typed. */
async function ask(args: readonly string[], stdin?: Buffer): Promise<(Finished & { name: string })[]> {
  const call = { cwd: join(folder, 'empty'), ...(stdin && { stdin }) };
  return Promise.all(
    programs.map(async ([name, words]) => {
      const finished = await startProcess(process.execPath, [...words, ...args], call).finished();
      return { name, ...finished };
    }),
  );
}

async function put(name: string, bytes: Buffer): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, bytes);
  return file;
}

const example = () => bytesOf(sealed(exampleBundle()));

describe('both programs', () => {
  it('S4-104 verify a bundle with exit code 0, and print one and the same report', async () => {
    const file = await put('good.json', example());
    const [ours, single] = await ask([file]);
    expect(ours).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^VERIFIED {2}signed, chained/) });
    expect(single).toMatchObject({ code: 0, stderr: '', stdout: ours?.stdout });
    for (const { code, stdout } of await ask([file, '--json'])) {
      expect(code).toBe(0);
      expect(stdout).toMatch(/^[^\n]*\n$/);
      expect(JSON.parse(stdout)).toMatchObject({
        ok: true,
        level: 'signed, chained (full)',
        files: [{ file, ok: true }],
      });
    }
  });

  it('S4-104 refuse a bundle of which one byte was changed with exit code 1, and say where', async () => {
    const bytes = Buffer.from(example().toString().replace('usr_1', 'usr_2'));
    const file = await put('bad.json', bytes);
    for (const { code, stdout, stderr } of await ask([file])) {
      expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
      expect(stdout).toMatch(/^NOT VERIFIED {2}signature: /);
    }
    for (const { code, stdout } of await ask([file, '--json'])) {
      expect({ code, document: JSON.parse(stdout) }).toMatchObject({
        code: 1,
        document: { ok: false, level: 'not verified', failed: { stage: 'signature' } },
      });
    }
  });

  it('take several files, a fingerprint, evidence and standard input', async () => {
    const claims = linked(plainClaims(20));
    const [first, second] = windowsOf(claims, [
      [1, 10],
      [11, 20],
    ]);
    const files = [await put('2.json', bytesOf(second)), await put('1.json', bytesOf(first))];
    for (const { code, stdout } of await ask([...files, '--json', '--fingerprint', KEY.fingerprint])) {
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ facts: { isPinned: true, chain: { from: 1, to: 20 } } });
    }
    for (const { code } of await ask([...files, '--fingerprint', OTHER_KEY.fingerprint])) expect(code).toBe(1);

    const evidence = join(folder, 'evidence');
    await mkdir(evidence);
    await writeFile(join(evidence, 'x'), 'hello evidence\n');
    const options = ['--evidence', evidence, '--require-evidence'];
    for (const { code } of await ask(['-', ...options], example())) expect(code).toBe(0);
    await writeFile(join(evidence, 'x'), 'hello evidence');
    for (const { code, stdout } of await ask(['-', ...options], example())) {
      expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringMatching(/^NOT VERIFIED {2}evidence: /) });
    }
  });

  it('print nothing that steers a terminal, as text or as JSON, and the JSON still says what was there', async () => {
    const id = 'x\u009b2K\u202eVERIFIED\u2028\u{e0001}y';
    const bytes = bytesOf(sealed({ ...exampleBundle(), subject: { type: 'fleet', id } }));
    for (const options of [[], ['--json']]) {
      for (const { name, code, stdout } of await ask(['-', ...options], bytes)) {
        expect({ name, code }).toEqual({ name, code: 0 });
        for (const char of ['\u009b', '\u202e', '\u2028']) expect(stdout).not.toContain(char);
        if (options.length > 0) expect(JSON.parse(stdout).facts.subject.id).toBe(id);
      }
    }
  });

  it('end with exit code 2 and say nothing on standard output when the question is wrong', async () => {
    const file = await put('good.json', example());
    for (const args of [
      [],
      ['nowhere.json'],
      [folder],
      [file, '--fingerprint', 'abc'],
      [file, '--fingerprint'],
      [file, '--fingerprint', KEY.fingerprint, `--fingerprint=${KEY.fingerprint}`],
      [file, '--evidence', folder, '--evidence', folder],
      [file, '--un\u001bknown\nVERIFIED'],
      [file, '--evidence', 'nowhere'],
      [file, '--unknown'],
      ['-', '-'],
    ]) {
      for (const { name, code, stdout, stderr } of await ask(args)) {
        expect({ name, args, code, stdout }).toEqual({ name, args, code: 2, stdout: '' });
        expect(stderr).toMatch(/^capstan(-verify)?: /);
        for (const steering of ['\u001b', '\nVERIFIED']) expect(stderr).not.toContain(steering);
      }
    }
    const [ours] = await ask(['nowhere.json', '--json']);
    expect(JSON.parse(ours?.stderr ?? '')).toMatchObject({ code: 'usage', detail: 'nowhere.json does not exist' });
  });

  it('end with the exit code of a broken pipe when nobody reads', async () => {
    const ranges = Array.from({ length: 400 }, (_, at): [number, number] => [at + 1, at + 1]);
    const many = join(folder, 'many');
    await mkdir(many);
    // Long names make an answer longer than what a pipe holds.
    for (const [index, bundle] of windowsOf(linked(plainClaims(400)), ranges).entries()) {
      await writeFile(join(many, `${index}-${'long'.repeat(40)}.json`), bytesOf(bundle));
    }
    for (const [, words] of programs) {
      const line = `{ '${process.execPath}' ${words.join(' ')} ${many}/*.json --json; echo "exit $?" >&3; } 3>&2 | true`;
      const ended = await startProcess('sh', ['-c', line], { env: cleanEnv() }).finished();
      expect(ended).toMatchObject({ stdout: '', stderr: 'exit 141\n' });
    }
  });
});

describe('the single file', () => {
  it('is one file that anybody may start, imports nothing but Node, and is fit to be read', async () => {
    const built = join(folder, 'built');
    expect(await readdir(built)).toEqual(['capstan-verify.mjs']);
    expect((await stat(join(built, 'capstan-verify.mjs'))).mode & 0o777).toBe(0o755);
    const text = await readFile(join(built, 'capstan-verify.mjs'), 'utf8');
    expect(text).toMatch(/^#!\/usr\/bin\/env node\n/);
    const imported = [...text.matchAll(/^import .* from "(.*)";$/gm)].map(([, name]) => name);
    expect(imported.length).toBeGreaterThan(0);
    for (const name of imported) expect(name).toMatch(/^node:/);
    expect(text).not.toMatch(/\b(require|import)\(/);
    expect(text).toContain('RFC 8785');
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThan(300);
  });

  it('takes a file of nothing but escapes for what it is, in little memory', async () => {
    const file = await put('escapes.json', Buffer.from(`{"loomseal":"${'\\n'.repeat(12_000_000)}"}`));
    const words = ['--max-old-space-size=150', join(folder, 'built/capstan-verify.mjs'), file];
    const { code, signal, stdout } = await startProcess(process.execPath, words, {}).finished();
    expect({ code, signal }).toEqual({ code: 1, signal: null });
    expect(stdout).toMatch(/^NOT VERIFIED {2}parse: /);
  });

  it('S4-104 gives the verdict of capstan verify on every vector', async () => {
    const own = [...validCases(), ...refusedCases()];
    // Larger ones are in the unit tests.
    for (const [index, { bytes }] of own.entries()) {
      if (bytes.length < 100_000) await put(`vector-${String(index).padStart(3, '0')}.json`, bytes);
    }
    const names = (await readdir(folder)).filter((name) => name.startsWith('vector-'));
    expect(names.length).toBeGreaterThan(150);
    const conformance = process.env.LOOMSEAL_VECTORS;
    const theirs = conformance ? (await readdir(conformance)).filter((name) => name.endsWith('.loomseal.json')) : [];
    const files = [...names.map((name) => join(folder, name)), ...theirs.map((name) => join(conformance ?? '', name))];
    const [ours, single] = await ask([...files, '--json']);
    expect(ours?.code).toBe(1);
    expect(JSON.parse(ours?.stdout ?? '').files).toHaveLength(files.length);
    expect(single?.stdout).toBe(ours?.stdout);
  });
});
