import { describe, expect, it } from 'vitest';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';

describe('ids', () => {
  it('a new id is a lower-case UUIDv7, and later ones do not sort before earlier ones', () => {
    const ids = Array.from({ length: 1_000 }, () => newId());
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('the outside form goes there and back, and names what it identifies', () => {
    const id = newId();
    const text = encodeId('run', id);
    expect(text).toMatch(/^run_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
    expect(decodeId('run', text)).toBe(id);
  });

  it('a plain UUID is taken in either case and becomes lower case', () => {
    expect(decodeId('run', '018F3A5C-8C1B-7C3D-9E4F-5A6B7C8D9E0F')).toBe('018f3a5c-8c1b-7c3d-9e4f-5a6b7c8d9e0f');
  });

  it('the id of one kind of thing is not taken for another kind', () => {
    expect(decodeId('run', encodeId('org', newId()))).toBeUndefined();
  });

  it.each([
    '',
    'run_',
    'run',
    'nonsense',
    'run_01h455vb4pex5vsknk084sn02',
    'run_8zzzzzzzzzzzzzzzzzzzzzzzzz',
    'run_01H455VB4PEX5VSKNK084SN02Q',
  ])('what is no id is refused: %j', (text) => expect(decodeId('run', text)).toBeUndefined());
});
