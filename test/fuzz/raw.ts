/** Bytes that are hardly HTTP: broken heads, lengths that lie, chunks that don't add up, requests one behind the other. */
import fc from 'fast-check';

const LINES = [
  'GET / HTTP/1.1',
  'GET /v1/runs HTTP/1.1',
  'POST /v1/runs HTTP/1.1',
  'GET /v1/runs HTTP/1.0',
  'GET /v1/runs HTTP/2.0',
  'GET /v1/runs HTTP/9.9',
  'GET /v1/runs',
  'GET  /v1/runs  HTTP/1.1',
  'get /v1/runs HTTP/1.1',
  'FOO / HTTP/1.1',
  'CONNECT example.com:443 HTTP/1.1',
  'OPTIONS * HTTP/1.1',
  'PRI * HTTP/2.0',
  'GET \u0000 HTTP/1.1',
  'GET /\u00ff HTTP/1.1',
  '',
  ' ',
  '\u0016\u0003\u0001',
  '{}',
  'GET http://x/v1/runs HTTP/1.1',
  `GET /${'x'.repeat(20_000)} HTTP/1.1`,
  'POST /v1/runs/cancel HTTP/1.1',
  'HTTP/1.1 200 OK',
  'PUT /v1/queues/q HTTP/1.1',
  'SOURCE / ICE/1.0',
];
const HEADS = [
  'Host: x',
  'Host: x\r\nHost: y',
  'Content-Length: 0',
  'Content-Length: 5',
  'Content-Length: 1000',
  'Content-Length: -1',
  'Content-Length: 1e3',
  'Content-Length: 99999999999999999999',
  'Content-Length: 5\r\nContent-Length: 6',
  'Content-Length: 5, 5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 5',
  'Transfer-Encoding : chunked',
  'Content-Type: application/json',
  'Expect: 100-continue',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: upgrade\r\nUpgrade: websocket',
  'Upgrade: h2c',
  'X: a\u0000b',
  'X: a\rb',
  'X',
  ': x',
  ' folded: x',
  'X: y\r\n folded',
  'X:',
  '\u00ff: x',
  `X: ${'y'.repeat(20_000)}`,
  'X(: y',
  'Trailer: X',
];
const BODIES = [
  '',
  '{}',
  '{"kind":"noop","queue":"q"}',
  '0\r\n\r\n',
  '5\r\n{"a":\r\n0\r\n\r\n',
  '2\r\n{}\r\n0\r\n\r\n',
  'zz\r\n{}\r\n',
  '-1\r\n{}\r\n',
  'ffffffffffffffff\r\n{}',
  '2;x=y\r\n{}\r\n0\r\nX: y\r\n\r\n',
  '2\n{}\n0\n\n',
  '1\r\n{}\r\n0\r\n\r\n',
  `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
  'x'.repeat(3_000),
  '\u0000'.repeat(100),
  `0\r\n${'X: y\r\n'.repeat(500)}\r\n`,
];
const ENDS = ['\r\n', '\n', '\r', '\r\n\r\n'];

/** With `token` where the bytes may get as far as a handler. */
export function rawBytes(token: string): fc.Arbitrary<Buffer> {
  const heads = [...HEADS, ...Array<string>(12).fill(`Authorization: Bearer ${token}`)];
  const request = fc
    .record({
      line: fc.constantFrom(...LINES),
      heads: fc.array(fc.constantFrom(...heads), { maxLength: 6 }),
      end: fc.oneof({ weight: 6, arbitrary: fc.constant('\r\n') }, fc.constantFrom(...ENDS)),
      body: fc.constantFrom(...BODIES),
    })
    .map(({ line, heads: given, end, body }) => `${[line, ...given].join(end)}${end}${end}${body}`);
  const text = fc.array(request, { minLength: 1, maxLength: 3 }).map((all) => all.join(''));
  const whole = text.map((one) => Buffer.from(one, 'latin1'));
  const cut = fc
    .tuple(whole, fc.nat({ max: 100 }))
    .map(([bytes, keep]) => bytes.subarray(0, (keep * bytes.length) / 100));
  const flipped = fc
    .tuple(whole, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 5 }))
    .map(([bytes, places]) => {
      const copy = Buffer.from(bytes);
      for (const [at, byte] of places) copy[at % copy.length] = byte;
      return copy;
    });
  const noise = fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  return fc.oneof(
    { weight: 5, arbitrary: whole },
    { weight: 2, arbitrary: cut },
    { weight: 2, arbitrary: flipped },
    noise,
  );
}
