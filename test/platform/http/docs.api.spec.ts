import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSurface, type Surface } from '../../send.js';
import { expectProblem } from './routes.fixture.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

const open = (path: string) => surface.send({ path, token: null });

/** Whatever the page asks its own address for. */
async function linked(): Promise<string[]> {
  const { text } = await open('/docs');
  return [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, target = '']) => target);
}

describe('/docs', () => {
  it('is a page without a script of its own, which may talk to its own origin alone', async () => {
    const { status, headers, text } = await open('/docs');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = headers['content-security-policy'] ?? '';
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; /);
    expect(policy).toContain("connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(text).not.toMatch(/<script(?! src=)|<style|\son\w+=/);
  });

  it('has everything it names, from here, as what it is, and for as long as its version is named', async () => {
    const targets = await linked();
    expect(targets.filter((target) => !target.startsWith('/docs/') && target !== '/openapi.json')).toEqual([]);
    const types: Record<string, string> = {
      css: 'text/css; charset=utf-8',
      js: 'text/javascript; charset=utf-8',
      png: 'image/png',
    };
    const assets = targets.filter((target) => target.startsWith('/docs/'));
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets) {
      const [, ending = '', version] = /\.(\w+)\?v=([0-9a-f]{12})$/.exec(asset) ?? [];
      expect(version, asset).toBeDefined();
      const { status, headers, bytes } = await open(asset);
      expect([status, headers['content-type']], asset).toEqual([200, types[ending]]);
      expect(headers['cache-control'], asset).toBe('public, max-age=31536000, immutable');
      expect(headers['x-content-type-options'], asset).toBe('nosniff');
      expect(bytes.length, asset).toBeGreaterThan(0);
      const other = await open(asset.replace(/[0-9a-f]{12}$/, '000000000000'));
      expect([other.status, other.headers['cache-control']], asset).toEqual([200, 'no-cache']);
    }
  });

  it('hands out what was installed, unchanged', async () => {
    const file = createRequire(import.meta.url).resolve('swagger-ui-dist/swagger-ui-bundle.js');
    const { bytes } = await open('/docs/swagger-ui-bundle.js');
    expect(bytes.equals(await readFile(file))).toBe(true);
  });

  it.each([
    'package.json',
    'index.html',
    'swagger-ui-bundle.js.map',
    'oauth2-redirect.html',
    '..%2fpackage.json',
    '%2e%2e%2f%2e%2e%2fpackage.json',
    '..%5cpackage.json',
    'docs.js%00.css',
    'constructor',
    '__proto__',
    '',
    'docs.js/',
    'x/docs.js',
  ])('knows no other file: %s is 404', async (name) => {
    expectProblem(await open(`/docs/${name}`), name, 404);
  });

  it('is in no document: it is for people', async () => {
    const { json } = await open('/openapi.json');
    expect(Object.keys(json.paths).filter((path) => path.startsWith('/docs'))).toEqual([]);
  });
});
