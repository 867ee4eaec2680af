/** Who isn't known makes nobody collect a large body. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createDatabase } from '../../database.js';
import { dataFolder, startServer, until } from '../../server.js';

const TOKEN = 'cap_unknown-callers-of-a-test';
const LARGE = 16 * 1024 * 1024;

/** Sends the head of a large batch and a piece of its body; resolves with what is answered by then. */
async function begin(url: string, token: string): Promise<{ text: () => string; end: () => void }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (data) => {
    text += data;
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const head = [
    'POST /v1/runs/batch HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${LARGE}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n{"runs": [`);
  return { text: () => text, end: () => socket.destroy() };
}

it('a large body is waited for only of those who are known', async () => {
  const db = await createDatabase();
  onTestFinished(() => db.drop());
  const data = await dataFolder();
  onTestFinished(data.remove);
  const server = await startServer({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_DATA_DIR: data.path,
    CAPSTAN_SLOTS: '0',
  });
  onTestFinished(() => void server.child.kill('SIGKILL'));
  const known = await begin(server.url, TOKEN);
  const unknown = await begin(server.url, 'cap_somebody-else-altogether');
  await until('the unknown one is answered', () => unknown.text().includes('"code":"unauthorized"'), 10_000);
  expect(unknown.text()).toMatch(/^HTTP\/1\.1 401 /);
  expect(unknown.text()).toMatch(/\r\nwww-authenticate: Bearer realm="capstan"\r\n/i);
  expect(known.text()).toBe('');
  known.end();
  unknown.end();
});
