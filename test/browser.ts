/** A headless Chromium with one page, driven through its DevTools protocol. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'undici';
import { until } from './server.js';

const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--remote-debugging-port=0',
];

// biome-ignore lint/suspicious/noExplicitAny: messages of a protocol that isn't ours
type Json = any;

export interface Page {
  goto(url: string): Promise<void>;
  /** The value of an expression in the page. */
  evaluate(expression: string): Promise<Json>;
  /** Clicks what a selector finds, once it is there. */
  click(selector: string): Promise<void>;
  /** Types into what a selector finds, once it is there. */
  type(selector: string, text: string): Promise<void>;
  /** What the page complained of: errors, warnings, what its policy forbade. */
  readonly complaints: readonly string[];
  /** Every address that it asked. */
  readonly requested: readonly string[];
  close(): Promise<void>;
}

export async function openPage(): Promise<Page> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-browser-'));
  const child = spawn('chromium', [...FLAGS, `--user-data-dir=${folder}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  let said = '';
  child.stderr.on('data', (data) => {
    said += data;
  });
  const address = await until('Chromium listens', () => /DevTools listening on ws:\/\/([^/]+)\//.exec(said)?.[1]);
  const targets = (await (await fetch(`http://${address}/json/list`)).json()) as {
    type: string;
    webSocketDebuggerUrl: string;
  }[];
  const socket = new WebSocket(targets.find(({ type }) => type === 'page')?.webSocketDebuggerUrl ?? '');
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));

  const waiting = new Map<number, (result: Json) => void>();
  const [complaints, requested]: [string[], string[]] = [[], []];
  socket.addEventListener('message', ({ data }) => {
    const { id, result, method, params }: Json = JSON.parse(String(data));
    if (id !== undefined) waiting.get(id)?.(result);
    else if (method === 'Network.requestWillBeSent') requested.push(params.request.url);
    else if (method === 'Log.entryAdded') complaints.push(`${params.entry.source}: ${params.entry.text}`);
    else if (method === 'Runtime.exceptionThrown') complaints.push(JSON.stringify(params.exceptionDetails));
    else if (method === 'Runtime.consoleAPICalled') complaints.push(JSON.stringify(params.args));
  });
  const send = (method: string, params: object = {}): Promise<Json> => {
    const id = waiting.size + 1;
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await send(`${domain}.enable`);

  const evaluate = async (expression: string) =>
    (await send('Runtime.evaluate', { expression, returnByValue: true })).result.value;
  const whenThere = (selector: string, act: string) =>
    until(selector, () =>
      evaluate(`{ const it = document.querySelector(${JSON.stringify(selector)}); it?.${act}; !!it }`),
    );
  return {
    complaints,
    requested,
    evaluate,
    goto: (url) => send('Page.navigate', { url }),
    click: async (selector) => {
      await whenThere(selector, 'click()');
    },
    type: async (selector, text) => {
      await whenThere(selector, 'focus()');
      await send('Input.insertText', { text });
    },
    close: async () => {
      child.kill();
      await exited;
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
