/** Requests as bytes, over connections of their own, so that nothing on the way mends or refuses what is broken. */
import { connect, type Socket } from 'node:net';

/** What is put on the wire. Texts are bytes written as Latin-1. */
export interface WireRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: Buffer;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Whether all that was announced has come. */
  readonly isWhole: boolean;
}

/** Longer than any documented answer takes: a cancel by filter works for up to 25 s. */
const HANG_MS = 40_000;
/** What is streamed without end is left after this much. */
const STREAM_MS = 50;
/** Of a body, in what a person is told. */
const SHOWN_BYTES = 4_000;
/** Twice the largest body that is taken. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

function bytesOf({ method, target, headers, body }: WireRequest): Buffer {
  const lines = [`${method} ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  if (body !== undefined) lines.push(`Content-Length: ${body.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`, 'latin1');
  return body === undefined ? head : Buffer.concat([head, body]);
}

/** The answer to a request. Rejects when there is none, when it doesn't end, and when it is without bound. */
export async function send(port: number, request: WireRequest): Promise<WireAnswer> {
  const bytes = await exchange(port, bytesOf(request));
  const [answer] = answersIn(bytes, request.method === 'HEAD');
  if (!answer) throw new Error('the connection was closed without an answer');
  return answer;
}

/**
 * All that is answered to these bytes until the connection is closed, or for as long as a stream is looked at.
 * `isOver` ends the sending side with them, as a caller that hangs up does.
 */
export function exchange(port: number, bytes: Buffer, isOver = false): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const received: Buffer[] = [];
    let total = 0;
    const fail = (what: string) => {
      socket.destroy();
      reject(new Error(what));
    };
    const hang = setTimeout(() => fail(`no end of the answer within ${HANG_MS} ms`), HANG_MS);
    socket.on('data', (part: Buffer) => {
      if (total === 0) leaveStream(socket, part);
      received.push(part);
      total += part.length;
      if (total > MAX_ANSWER_BYTES) fail(`the answer goes on after ${total} bytes`);
    });
    socket.on('close', () => {
      clearTimeout(hang);
      resolve(Buffer.concat(received));
    });
    // Who closes while something is still sent resets the connection; what was answered before counts.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') fail(error.message);
    });
    if (isOver) socket.end(bytes);
    else socket.write(bytes);
  });
}

function leaveStream(socket: Socket, first: Buffer): void {
  if (/^HTTP\/1\.1 200 [\s\S]*?\r\ncontent-type: text\/event-stream/i.test(first.toString('latin1'))) {
    setTimeout(() => socket.destroy(), STREAM_MS);
  }
}

/** The answers one after the other in what a connection gave. Throws when it isn't HTTP. */
export function answersIn(bytes: Buffer, isHead = false): WireAnswer[] {
  const answers: WireAnswer[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n');
    const head = rest.subarray(0, Math.max(end, 0)).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head[0] ?? '')?.[1]);
    if (!status) throw new Error(`no HTTP: ${JSON.stringify(rest.subarray(0, 200).toString('latin1'))}`);
    const headers = headersIn(head.slice(1));
    rest = rest.subarray(end + 4);
    if (status < 200) continue;
    // Of a head that is too large nobody has read the method.
    const isBare = isHead && !(status === 400 && rest.length > 0);
    const { body, isWhole, length } = isBare
      ? { body: Buffer.alloc(0), isWhole: true, length: 0 }
      : bodyIn(headers, rest);
    answers.push({ status, headers, body, isWhole });
    rest = rest.subarray(length);
  }
  return answers;
}

function headersIn(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
    }),
  );
}

interface Body {
  readonly body: Buffer;
  readonly isWhole: boolean;
  /** How much of the bytes it takes up. */
  readonly length: number;
}

function bodyIn(headers: Readonly<Record<string, string>>, bytes: Buffer): Body {
  if (headers['transfer-encoding'] === 'chunked') return chunksIn(bytes);
  const length = Number(headers['content-length'] ?? bytes.length);
  return { body: bytes.subarray(0, length), isWhole: bytes.length >= length, length };
}

function chunksIn(bytes: Buffer): Body {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const end = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.subarray(at, Math.max(end, at)).toString('latin1'), 16);
    const next = end + 2 + size + 2;
    if (end < 0 || !(size >= 0) || next > bytes.length) {
      return { body: Buffer.concat(chunks), isWhole: false, length: bytes.length };
    }
    chunks.push(bytes.subarray(end + 2, end + 2 + size));
    at = next;
    if (size === 0) return { body: Buffer.concat(chunks), isWhole: true, length: at };
  }
}

/** How a person sends it again; the token stands in a variable. */
export function curlOf(base: string, { method, target, headers, body }: WireRequest): string {
  const way = method === 'HEAD' ? '--head' : `-X ${quoted(method)}`;
  const words = [`curl -sS -i ${way} --path-as-is --request-target ${quoted(target)}`];
  for (const [name, value] of headers) {
    // curl leaves out a header without a value unless it ends in a semicolon.
    const isToken = name.toLowerCase() === 'authorization' && value.startsWith('Bearer cap_');
    if (isToken) words.push('-H "Authorization: Bearer $CAPSTAN_TOKEN"');
    else words.push(`-H ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`);
  }
  if (body !== undefined) {
    const names = headers.map(([name]) => name.toLowerCase());
    if (!names.includes('content-type')) words.push("-H 'Content-Type:'");
    const shown = body.subarray(0, SHOWN_BYTES);
    if (shown.length < body.length) words.push(`$(: the first of ${body.length} bytes)`);
    words.push(`--data-binary @<(printf %b ${quoted(escaped(shown.toString('latin1')))})`);
  }
  return [...words, base].join(' ');
}

function quoted(text: string): string {
  const isPlain = /^[\x20-\x7e]*$/.test(text);
  return isPlain ? `'${text.replaceAll("'", "'\\''")}'` : `$'${escaped(text).replaceAll("'", "\\'")}'`;
}

function escaped(text: string): string {
  return text.replace(/[^\x20-\x5b\x5d-\x7e]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
