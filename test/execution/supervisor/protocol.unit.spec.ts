import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeOutput,
  FRAME_JSON,
  FRAME_OUTPUT,
  FrameError,
  FrameReader,
  jsonFrame,
  outputFrame,
} from '../../../src/execution/supervisor/frames.js';
import { decodeExtension, encodeExtension } from '../../../src/execution/supervisor/keeper-frame.js';
import { type Command, decodeCommand, decodeEvent } from '../../../src/execution/supervisor/protocol.js';

const START: Command = {
  type: 'start',
  key: 7,
  incarnation: '0198c0de-0000-7000-8000-000000000001',
  runId: '0198c0de-0000-7000-8000-000000000002',
  fence: 3,
  plan: {
    argv: ['sh', { file: 'script', prefix: '' }],
    env: { PATH: '/bin', ['__proto__']: 'kept' },
    cwd: null,
    stdin: 'text\n',
    files: [{ name: 'script', content: 'true', executable: false }],
    timeoutMs: null,
  },
};

function payload(message: unknown): Buffer {
  return Buffer.from(JSON.stringify(message));
}

describe('frames', () => {
  it('come out as they went in, however the stream was cut', () => {
    const bodies = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 });
    fc.assert(
      fc.property(bodies, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), (parts, cuts) => {
        const frames = parts.map((part) => outputFrame({ key: 1, source: 2, at: 5, bytes: Buffer.from(part) }));
        const stream = Buffer.concat(frames);
        const reader = new FrameReader(1_000);
        const seen: Buffer[] = [];
        for (let offset = 0, turn = 0; offset < stream.length; turn += 1) {
          const size = cuts[turn % cuts.length] ?? 1;
          for (const frame of reader.read(stream.subarray(offset, offset + size))) {
            seen.push(decodeOutput(Buffer.from(frame.payload)).bytes);
          }
          offset += size;
        }
        expect(seen.map((bytes) => bytes.toString('hex'))).toEqual(
          parts.map((part) => Buffer.from(part).toString('hex')),
        );
      }),
    );
  });

  it('with a length beyond the bound are refused on sight of the length', () => {
    const reader = new FrameReader(1_000);
    expect(() => [...reader.read(Buffer.from([0, 0, 3, 233]))]).toThrow(FrameError);
    expect(() => [...new FrameReader(1_000).read(Buffer.from([255, 255, 255, 255, 1]))]).toThrow(FrameError);
    expect(() => [...new FrameReader(1_000).read(Buffer.from([0, 0, 0, 0]))]).toThrow(FrameError);
  });

  it('of output carry key, stream, time and bytes', () => {
    const chunk = { key: 2 ** 40, source: 1 as const, at: 1_800_000_000_123, bytes: Buffer.from([0, 255, 10]) };
    const [frame] = [...new FrameReader(1_000).read(outputFrame(chunk))];
    expect(frame?.type).toBe(FRAME_OUTPUT);
    expect(decodeOutput(frame?.payload ?? Buffer.alloc(0))).toEqual(chunk);
  });
});

describe('messages', () => {
  it('survive the wire', () => {
    const [frame] = [...new FrameReader(10_000).read(jsonFrame(START))];
    expect(frame?.type).toBe(FRAME_JSON);
    expect(decodeCommand(frame?.payload ?? Buffer.alloc(0))).toEqual(START);
  });

  it.each([
    ['no JSON', Buffer.from('{')],
    ['a list', payload([])],
    ['an unknown command', payload({ type: 'reboot' })],
    ['a stop for a cause of the supervisor', payload({ type: 'stop', key: 1, cause: 'deadline' })],
    ['a negative credit', payload({ type: 'credit', key: 1, bytes: -1 })],
    ['a key that is no whole number', payload({ type: 'kill', key: 1.5 })],
    ['a plan without argv', payload({ ...START, plan: { ...START.plan, argv: undefined } })],
    ['an argument that is no text', payload({ ...START, plan: { ...START.plan, argv: ['sh', 1] } })],
    ['a plan of another shape', payload({ ...START, plan: 'sh' })],
  ])('are refused when they are %s', (_name, bytes) => {
    expect(() => decodeCommand(bytes)).toThrow(FrameError);
  });

  it.each([
    ['a source that is no report', { source: 1 }],
    ['an unknown source', { source: 5 }],
    ['an unknown reason', { reason: 'constructor' }],
    ['no time', { at: undefined }],
  ])('that tell of an unread report are refused when they name %s', (_name, wrong) => {
    const unread = { type: 'unread', key: 7, source: 3, reason: 'cut', at: 1_800_000_000_123 };
    expect(decodeEvent(payload(unread))).toEqual(unread);
    expect(() => decodeEvent(payload({ ...unread, ...wrong }))).toThrow(FrameError);
  });

  it.each([0, 1])('never name the process group %i, which would be everyone or ourselves', (pgid) => {
    expect(() => decodeEvent(payload({ type: 'started', key: 1, pgid, at: 1 }))).toThrow(FrameError);
  });
});

describe('extensions', () => {
  it('are 28 bytes and come out as they went in', () => {
    const extension = { incarnation: '0198c0de-1234-7abc-8def-00000000000f', seq: 2 ** 32 - 1, sentAtNs: 2n ** 60n };
    const frame = encodeExtension(extension);
    expect(frame.length).toBe(28);
    expect(decodeExtension(Buffer.concat([frame, frame]), 28)).toEqual(extension);
  });
});
