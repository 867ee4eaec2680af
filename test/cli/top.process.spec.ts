/** `top` against a server that answers as the test says: on a terminal in place, otherwise once. */
import { describe, expect, it } from 'vitest';
import { at, capstan, mainFile, startOnTerminal, startProcess, until } from './cli.fixture.js';
import { type Answer, problem, type Reply, runJson, runningJson, standIn } from './stand-in.fixture.js';

const WORKER = {
  id: 'wrk_01h455vb4pex5vsknk084sn02q',
  name: 'r1',
  kind: 'replica',
  state: 'live',
  connected: true,
  running: 1,
  slots: 4,
  queues: ['default'],
  version: '0.1.0',
  seenAt: '2026-03-02T10:00:00.000Z',
  leaseUntil: null,
};
const QUEUE = {
  name: 'deploys\u001b[2J',
  paused: { at: '2026-03-02T09:00:00.000Z', byName: 'ops', reason: 'freeze' },
  depth: 3,
  depthIsEstimate: false,
  oldestPendingAt: null,
  running: 0,
  workers: 1,
};
const ENTER = '\u001b[?1049h';
const LEAVE = '\u001b[?1049l';

const page = (items: readonly unknown[]): Reply => ({ body: { items, next: null } });
const RUN = runningJson({ name: 'nightly', progress: { percent: 40, step: 'restore' } });
const ANSWER: Answer = ({ path }) =>
  page(path.endsWith('/workers') ? [WORKER] : path.endsWith('/queues') ? [QUEUE] : [RUN]);

async function onTerminal(
  answer: Answer,
  args: string,
  use: (top: Awaited<ReturnType<typeof startOnTerminal>>) => Promise<void>,
) {
  const server = await standIn(answer);
  const top = await startOnTerminal(`top ${args}`, { ...at(server.url, { NO_COLOR: '1' }), isTyping: true });
  try {
    await use(top);
    return { ...(await top.finished()), asked: server.asked };
  } finally {
    top.child.kill();
    await server.close();
  }
}

describe('top', () => {
  it('without a terminal, and with --once, prints it once: a line each, with what it is', async () => {
    const server = await standIn(ANSWER);
    const plain = await capstan(['top'], at(server.url));
    const json = await capstan(['top', '--json'], at(server.url));
    await server.close();
    expect(plain).toMatchObject({ code: 0, stderr: '' });
    const lines = plain.stdout.split('\n').map((line) => line.split('\t'));
    expect(lines[0]).toEqual(['worker', 'r1', 'live', '1/4', '', 'default']);
    expect(lines[1]?.slice(0, 4)).toEqual(['queue', 'deploys\u{FFFD}[2J', 'paused', '3']);
    expect(lines[2]?.[0]).toBe('run');
    expect(lines[2]?.slice(4)).toEqual(['r1', 'default', '40% restore', 'nightly']);
    expect(server.asked.find(({ path }) => path.endsWith('/runs'))?.query.getAll('state')).toEqual([
      'claimed',
      'running',
    ]);
    expect(JSON.parse(json.stdout)).toEqual({ workers: [WORKER], queues: [QUEUE], runs: [RUN] });
  });

  it('on a terminal looks again and again on a screen of its own, which q gives back', async () => {
    let looks = 0;
    const answer: Answer = (asked) => {
      if (!asked.path.endsWith('/runs')) return ANSWER(asked);
      looks += 1;
      return page([runJson({ ...RUN, name: `look-${looks}` })]);
    };
    const { code, stdout } = await onTerminal(answer, '--interval 500ms', async (top) => {
      await until('it has looked three times', () => top.stdout().includes('look-3'));
      top.child.stdin.write('q');
    });
    expect(code).toBe(0);
    expect(stdout.startsWith(ENTER)).toBe(true);
    expect(stdout.endsWith(LEAVE)).toBe(true);
    expect(stdout).toContain('WORKERS  1, slots 1/4');
    expect(stdout).toContain('40% restore');
    expect(stdout).not.toContain('\u001b[2J');
    expect(stdout, 'NO_COLOR').not.toContain('\u001b[36m');
  });

  it('tells a look that failed in a line, keeps what it saw, and goes on', async () => {
    let looks = 0;
    const answer: Answer = (asked) => {
      if (asked.path.endsWith('/runs')) looks += 1;
      if (looks === 2 && asked.path.endsWith('/runs')) return problem(403, 'forbidden', { detail: 'not now' });
      return ANSWER(asked);
    };
    const { code, stdout } = await onTerminal(answer, '--interval 500ms', async (top) => {
      await until('the trouble is told', () => top.stdout().includes('not now; what follows is from before'));
      await until('it has looked again', () => looks >= 3);
      top.child.stdin.write('\u0003');
    });
    expect(code).toBe(0);
    expect(stdout.endsWith(LEAVE)).toBe(true);
  });

  it('is left by q and by Ctrl-C while a look takes its time, and tells on its own screen that it tries again', async () => {
    for (const key of ['q', '\u0003']) {
      let looks = 0;
      // Breaks off, and is silent when it is asked again.
      const answer: Answer = (asked) => {
        if (!asked.path.endsWith('/runs')) return ANSWER(asked);
        looks += 1;
        if (looks === 1) return ANSWER(asked);
        return looks === 2 ? { hangUp: true } : { live: () => undefined };
      };
      const { code, stdout } = await onTerminal(answer, '--interval 500ms', async (top) => {
        await until('it asks again', () => looks >= 3);
        await until('it says so', () => top.stdout().includes('trying again; what follows is from before'));
        top.child.stdin.write(key);
      });
      expect(code).toBe(0);
      expect(stdout.endsWith(LEAVE)).toBe(true);
      expect(stdout).not.toContain('capstan: ');
    }
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGQUIT', 131],
  ] as const)('follows the size of its screen, and gives it back when %s ends it', async (signal, exit) => {
    const many: Answer = (asked) =>
      asked.path.endsWith('/workers')
        ? page(Array.from({ length: 60 }, (_, i) => ({ ...WORKER, name: `w${i}` })))
        : ANSWER(asked);
    const server = await standIn(many);
    const command =
      `echo "at $(tty) $$"; stty cols 100 rows 40; ` +
      `exec "${process.execPath}" "${await mainFile()}" top --interval 1h`;
    const env = { ...at(server.url).env, SHELL: '/bin/sh', TERM: 'xterm' };
    const top = startProcess('script', ['-qec', command, '/dev/null'], { env, isTyping: true });
    try {
      await until('all of it is there', () => /w\d+ .*… \d+ more/s.test(top.stdout()));
      const [, terminal = '', pid = ''] = /at (\S+) (\d+)/.exec(top.stdout()) ?? [];
      const shown = (text: string) => new Set(text.match(/\bw\d+\b/g)).size;
      const before = shown(top.stdout());
      const from = top.stdout().length;
      await startProcess('stty', ['-F', terminal, 'rows', '24'], {}).finished();
      await until('it is drawn anew', () => /… \d+ more/.test(top.stdout().slice(from)));
      expect(shown(top.stdout().slice(from))).toBeLessThan(before);
      process.kill(Number(pid), signal);
      const { code, stdout } = await top.finished();
      expect(code).toBe(exit);
      expect(stdout.endsWith(LEAVE)).toBe(true);
    } finally {
      top.child.kill();
      await server.close();
    }
  });

  it('fails as any other command when the first look does, and leaves the screen alone', async () => {
    const { code, stdout } = await onTerminal(
      () => problem(401, 'unauthorized'),
      '',
      async () => undefined,
    );
    expect(code).toBe(3);
    expect(stdout).not.toContain(ENTER);
    expect(stdout).toContain('token used: CAPSTAN_TOKEN');
  });

  it('is not asked more often than it may be', async () => {
    for (const interval of ['10ms', '2', 'x']) {
      expect(await capstan(['top', '--interval', interval])).toMatchObject({ code: 2, stdout: '' });
    }
  });
});
