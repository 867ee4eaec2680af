/** What a screen does to the terminal that it is on. */
import { getEventListeners } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { FullScreen } from '../../src/cli/full-screen.js';

const LEAVE = '\u001b[?1049l';

function screenOn(setRawMode: (isRaw: boolean) => void) {
  const [input, output] = [Object.assign(new PassThrough(), { setRawMode }), new PassThrough()];
  const screen = new FullScreen(input as unknown as NodeJS.ReadStream, output as unknown as NodeJS.WriteStream);
  return { screen, input, shown: () => String(output.read() ?? '') };
}

describe('a full screen', () => {
  it('is given back also when the mode of the terminal cannot be set, and nothing is drawn on it any more', () => {
    const { screen, shown } = screenOn((isRaw) => {
      if (!isRaw) throw new Error('setRawMode EIO');
    });
    const before = process.listenerCount('exit');
    screen.enter();
    expect(() => screen.leave()).toThrow('EIO');
    screen.draw(['late']);
    expect(shown().endsWith(LEAVE)).toBe(true);
    expect(process.listenerCount('exit')).toBe(before);
    expect(process.listenerCount('SIGQUIT')).toBe(0);
  });

  it('waits for keys, one by one, and leaves nothing with the signal that it waited with', async () => {
    const { screen, input } = screenOn(() => undefined);
    screen.enter();
    const { signal } = new AbortController();
    const key = screen.key(signal);
    input.write('ab');
    expect([await key, await screen.key(signal)]).toEqual(['a', 'b']);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const over = new AbortController();
    const none = screen.key(over.signal);
    over.abort();
    expect(await none).toBeUndefined();
    screen.leave();
  });
});
