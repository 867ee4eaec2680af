import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSurface, type Surface } from '../../send.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

const json = { 'content-type': 'application/json' };

/** A submit whose body has exactly this many bytes. */
function bodyOf(bytes: number, rest: object = {}): Buffer {
  const empty = JSON.stringify({ kind: 'noop', queue: surface.queue, name: '', ...rest });
  return Buffer.from(empty.replace('"name":""', `"name":"${'x'.repeat(bytes - empty.length)}"`));
}

describe('F083 the size of a body', () => {
  it.each([900_000, 1_048_576])('%i bytes are read, and refused for what they hold', async (bytes) => {
    const body = bodyOf(bytes);
    expect(body).toHaveLength(bytes);
    const answer = await surface.send({ method: 'POST', path: '/v1/runs', body, headers: json, overTheWire: true });
    expect(answer.status).toBe(422);
    expect(answer.json.errors[0].pointer).toBe('/name');
  });

  it.each([1_048_577, 1_100_000])('%i bytes are 413', async (bytes) => {
    const request = { method: 'POST', path: '/v1/runs', headers: json };
    const answer = await surface.send({ ...request, body: bodyOf(bytes) });
    expect(answer.status).toBe(413);
    expect(answer.json.code).toBe('body_too_large');
    const chunks = [bodyOf(bytes).subarray(0, 500_000), bodyOf(bytes).subarray(500_000)];
    const chunked = await surface.send({ ...request, body: chunks });
    expect(chunked.status, 'sent in chunks, without a length').toBe(413);
    expect(chunked.json.code).toBe('body_too_large');
  });

  it('a small submit in chunks is taken', async () => {
    const body = [Buffer.from('{"kind":"no'), Buffer.from(`op","queue":"${surface.queue}"}`)];
    expect((await surface.send({ method: 'POST', path: '/v1/runs', headers: json, body })).status).toBe(201);
  });
});
