/** `audit verify` and `audit list` as processes, against a server that answers as told. */
import { describe, expect, it } from 'vitest';
import { at, type Call, capstan, inFolder, startOnTerminal } from './cli.fixture.js';
import { type Answer, type Asked, problem, type Reply, RUN_ID, standIn } from './stand-in.fixture.js';

async function against<T>(
  answer: Answer,
  use: (call: Call & { cwd: string }, asked: readonly Asked[]) => Promise<T>,
): Promise<T> {
  const server = await standIn(answer);
  try {
    return await inFolder((cwd) => use({ ...at(server.url), cwd }, server.asked));
  } finally {
    await server.close();
  }
}

const WHOLE = { ok: true, chain: 'org_1', entries: 9, head: { seq: 9, link: 'ab' }, anchors: 2, tookMs: 3 };
const EVENTS = { 'content-type': 'text/event-stream' };
const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

describe('audit verify', () => {
  it('takes the result out of the events, and asks for the window that was named', () =>
    against(
      () => ({
        headers: EVENTS,
        live: (body) => body.end(`: \n\n${event('progress', { verified: 4, of: 9 })}${event('result', WHOLE)}`),
      }),
      async (call, asked) => {
        const args = ['audit', 'verify', '--from', '3', '--to', '9', '--installation'];
        const { code, stdout, stderr } = await capstan(args, call);
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        expect(stdout).toContain('verdict\tok\n');
        expect(stdout).toContain('anchors that hold\t2\n');
        expect(String(asked[0]?.query)).toBe('from=3&to=9&chain=installation');
        expect(asked[0]?.headers.accept).toContain('text/event-stream');
        const json = await capstan(['audit', 'verify', '--json'], call);
        expect(JSON.parse(json.stdout)).toEqual(WHOLE);
        expect(String(asked[1]?.query)).toBe('');
      },
    ));

  it('on a terminal a long one shows how far it is, on a line that is gone afterwards', () => {
    const broken = { ...WHOLE, ok: false, brokenAt: 5, check: 'link' };
    const live: Reply['live'] = (body) => {
      // Until it is long.
      let told = 0;
      const timer = setInterval(() => {
        told += 1;
        body.write(event('progress', { verified: told * 1_000, of: 2_000_000 }));
        if (told < 40) return;
        clearInterval(timer);
        body.end(event('result', broken));
      }, 50);
    };
    return against(
      () => ({ headers: EVENTS, live }),
      async (call) => {
        const plain = { ...call, env: { ...call.env, NO_COLOR: '1' } };
        const { code, stdout } = await (await startOnTerminal('audit verify', plain)).finished();
        expect(code).toBe(1);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what clears a line
        expect(stdout).toMatch(/\r\u001b\[Kverified \d+,000 of 2,000,000 entries\r\u001b\[K/);
        expect(stdout.slice(stdout.lastIndexOf('\u001b[K'))).toMatch(/broken at\s+5\r\nfailed check\s+link\r\n/);
        expect(stdout).toContain(
          'entry 5: its content was changed after it was linked; nothing of this chain is signed',
        );
        expect((await capstan(['audit', 'verify', '--json'], call)).stderr).toBe('');
      },
    );
  });

  it('that breaks off has no verdict, nor has one that is refused', async () => {
    const live: Reply['live'] = (body) => {
      body.write(event('progress', { verified: 1, of: 9 }), () => body.destroy());
    };
    await against(
      () => ({ headers: EVENTS, live }),
      async (call) => {
        const { code, stdout, stderr } = await capstan(['audit', 'verify'], call);
        expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
        expect(stderr).toContain('the verification broke off before its end');
      },
    );
    await against(
      () => problem(403, 'forbidden'),
      async (call) => {
        expect((await capstan(['audit', 'verify', '--installation'], call)).code).toBe(3);
      },
    );
  });

  it.each([
    ['--from', '0'],
    ['--to', 'x'],
    ['--from', '5', '--to', '4'],
  ])('%s %s is wrong usage', async (...args) => {
    const { code, stderr } = await capstan(['audit', 'verify', ...args], at('http://127.0.0.1:1'));
    expect(code).toBe(2);
    expect(stderr).toContain('--');
  });
});

describe('audit list', () => {
  const entry = (seq: number, members: Record<string, unknown> = {}) => ({
    seq,
    at: `2026-03-02T10:00:0${seq}.000Z`,
    action: 'run.ended',
    principal: 'wrk_1',
    principalName: 'r1',
    object: RUN_ID,
    run: RUN_ID,
    payload: {},
    receipt: `org_1:${seq}:ab`,
    ...members,
  });
  const THREE = [
    entry(3, { principalName: 'evil\n\u001b[2J' }),
    entry(2, { principal: 'system', principalName: null }),
    entry(1, { at: null, action: null, principal: null, principalName: null, object: null, payload: null }),
  ];
  /** A page after the second is empty, and leads on all the same. */
  const pages: Answer = ({ query }) => {
    const index = Number(query.get('cursor') ?? 0);
    const items = [THREE.slice(0, 2), [], THREE.slice(2)][index] ?? [];
    return { body: { items: items.slice(0, Number(query.get('limit'))), next: index < 2 ? String(index + 1) : null } };
  };

  it('in a pipe is one line an entry, over as many pages as it takes', () =>
    against(pages, async (call) => {
      const { code, stdout, stderr } = await capstan(['audit', 'list'], call);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout.split('\n')).toEqual([
        `3\t2026-03-02T10:00:03.000Z\trun.ended\tevil \u{FFFD}[2J\t${RUN_ID}`,
        `2\t2026-03-02T10:00:02.000Z\trun.ended\tsystem\t${RUN_ID}`,
        '1\t\t\t\t',
        '',
      ]);
      const json = await capstan(['audit', 'list', '--all', '--json'], call);
      expect(JSON.parse(json.stdout)).toEqual({ items: THREE, next: null });
      const two = await capstan(['audit', 'list', '--limit', '2'], call);
      expect(two.stderr).toBe('capstan: these are the newest 2; more: --limit N or --all\n');
    }));

  it('hands its filters to the server', () =>
    against(pages, async (call, asked) => {
      const instants = ['--after', '2026-03-01T00:00:00Z', '--before', '2026-04-01T00:00:00+02:00'];
      const who = ['--action', 'run.ended', '--principal', 'system', '--object', RUN_ID, '--run', RUN_ID];
      await capstan(['audit', 'list', ...who, ...instants, '--installation', '--limit', '1'], call);
      expect(Object.fromEntries(asked[0]?.query ?? [])).toEqual({
        action: 'run.ended',
        principal: 'system',
        object: RUN_ID,
        run: RUN_ID,
        after: '2026-03-01T00:00:00Z',
        before: '2026-04-01T00:00:00+02:00',
        chain: 'installation',
        limit: '1',
      });
    }));

  it('says that there are none', () =>
    against(
      () => ({ body: { items: [], next: null } }),
      async (call) => {
        expect(await capstan(['audit', 'list'], call)).toMatchObject({
          code: 0,
          stdout: '',
          stderr: 'capstan: no such entries\n',
        });
      },
    ));

  it.each([
    ['--run', 'x'],
    ['--after', 'yesterday'],
    ['--before', '2026-02-30T00:00:00Z'],
    ['--limit', '0'],
    ['--limit', '1', '--all'],
  ])('%s %s is wrong usage', async (...args) => {
    expect((await capstan(['audit', 'list', ...args], at('http://127.0.0.1:1'))).code).toBe(2);
  });
});
