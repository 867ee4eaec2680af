import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type LocalSurface, openLocalSurface } from '../../send.js';

let surface: LocalSurface;
beforeEach(async () => {
  surface = await openLocalSurface();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await surface.close();
});

describe('while the database is away', () => {
  beforeEach(async () => {
    const { access, read, submit } = surface.platform.pools;
    await Promise.all([access, read, submit].map((pool) => pool.close()));
  });

  it.each(['/v1/runs', '/v1/workers', '/v1/audit/verify'])('GET %s is 503 with Retry-After', async (path) => {
    const answer = await surface.send({ path });
    expect(answer.status, answer.text).toBe(503);
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.json.code).toBe('unavailable');
    expect(answer.text).not.toMatch(/CONNECTION|postgres|select /i);
  });

  it('S4-67 /healthz answers as long as the process is up', async () => {
    const answer = await surface.send({ path: '/healthz', token: null });
    expect(answer.status).toBe(200);
  });

  it('what needs no database goes on', async () => {
    expect((await surface.send({ path: '/', token: null })).status).toBe(200);
    expect((await surface.send({ path: '/openapi.json', token: null })).status).toBe(200);
    expect((await surface.send({ path: '/nothing', token: null })).status).toBe(404);
  });
});

it('an error that nobody foresaw is a 500 that tells nothing, and a log line that tells all', async () => {
  const { read } = surface.platform.pools;
  await surface.send({ path: '/v1/version' });
  vi.spyOn(read, 'run').mockRejectedValue(new Error('select secret from tokens at 10.0.0.1'));
  const log = vi.spyOn(surface.platform.log, 'error');
  const answer = await surface.send({ path: '/v1/runs', headers: { 'x-request-id': 'find-me' } });
  expect(answer.status).toBe(500);
  expect(answer.json).toEqual({
    type: 'urn:capstan:problem:internal',
    title: 'Internal error',
    status: 500,
    detail: expect.not.stringContaining('secret'),
    code: 'internal',
    requestId: 'find-me',
  });
  expect(log).toHaveBeenCalledWith(
    expect.objectContaining({ code: 'request_failed', requestId: 'find-me', err: expect.any(Error) }),
    expect.any(String),
  );
});
