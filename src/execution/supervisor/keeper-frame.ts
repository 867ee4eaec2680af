/**
 * The frame the lease keeper writes after each renewal, 28 bytes, one write (below PIPE_BUF, so whole or not at all):
 *
 *   0  incarnation  16 bytes of the UUID
 *  16  seq          u32 big endian, acknowledged by the supervisor
 *  20  sentAt       u64 big endian, `process.hrtime.bigint()` when the renewal was *sent* (CLOCK_MONOTONIC)
 */

export const KEEPER_FRAME_BYTES = 28;

/** A renewal as the supervisor sees it. */
export interface Extension {
  /** A UUID in lower case. */
  readonly incarnation: string;
  readonly seq: number;
  readonly sentAtNs: bigint;
}

/** `seq` wraps at 2^32. */
export function encodeExtension(extension: Extension): Buffer {
  const frame = Buffer.alloc(KEEPER_FRAME_BYTES);
  frame.write(extension.incarnation.replaceAll('-', ''), 0, 16, 'hex');
  frame.writeUInt32BE(extension.seq >>> 0, 16);
  frame.writeBigUInt64BE(extension.sentAtNs, 20);
  return frame;
}

/** The extension at `offset`; every 28 bytes are one. */
export function decodeExtension(bytes: Buffer, offset: number): Extension {
  const hex = bytes.toString('hex', offset, offset + 16);
  const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return {
    incarnation: groups.join('-'),
    seq: bytes.readUInt32BE(offset + 16),
    sentAtNs: bytes.readBigUInt64BE(offset + 20),
  };
}
