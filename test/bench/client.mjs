/** The API as a program speaks it: kept connections, nothing between the measured request and the wire. */
import { createParser } from 'eventsource-parser';
import { Pool } from 'undici';

export class Client {
  #pool;
  #headers;

  /** At most `connections` requests are on their way at once. */
  constructor(url, token, connections) {
    this.#pool = new Pool(url, { connections, pipelining: 1, headersTimeout: 120_000, bodyTimeout: 120_000 });
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  }

  /** The decoded answer to a request; rejects unless its status is 2xx. */
  async call(method, path, body, headers = {}) {
    return JSON.parse(await this.text(method, path, body, headers));
  }

  async text(method, path, body, headers = {}) {
    const answer = await this.#pool.request({
      method,
      path,
      headers: { ...this.#headers, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 300)}`);
    return text;
  }

  submit(run, headers) {
    return this.call('POST', '/v1/runs', run, headers);
  }

  /** Submits, waits for the end, and insists on its being a good one. */
  async runToEnd(run) {
    let made = await this.submit(run, { prefer: 'wait=60' });
    while (made.endedAt === null) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      made = await this.call('GET', `/v1/runs/${made.id}`);
    }
    if (made.state !== 'succeeded') throw new Error(`a run ended ${made.state}: ${made.end.code} ${made.end.detail}`);
    return made;
  }

  /** The events of a run's stream as they come, until it ends or `signal` aborts. */
  async *stream(id, signal) {
    const { accept, ...rest } = { ...this.#headers, accept: 'text/event-stream' };
    const answer = await this.#pool.request({
      method: 'GET',
      path: `/v1/runs/${id}/stream`,
      headers: { ...rest, accept },
      signal,
    });
    if (answer.statusCode !== 200) throw new Error(`the stream: ${answer.statusCode} ${await answer.body.text()}`);
    const events = [];
    const parser = createParser({ onEvent: (event) => events.push(event) });
    const text = new TextDecoder();
    for await (const part of answer.body) {
      parser.feed(text.decode(part, { stream: true }));
      yield* events.splice(0);
    }
  }

  /** Cuts off what is on its way. */
  close() {
    return this.#pool.destroy();
  }
}
