/** HTTP/1.1 with as little as it takes: the load generator shares two cores with what it measures. */
import { connect } from 'node:net';

const HEAD_END = '\r\n\r\n';

/** One kept connection; one request at a time. */
export class Wire {
  #socket;
  #host;
  #text = '';
  #waiting;
  #headers;

  static async open(url, token) {
    const { hostname, port, host } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new Wire(socket, host, token);
  }

  constructor(socket, host, token) {
    this.#socket = socket;
    this.#host = host;
    this.#headers = `authorization: Bearer ${token}\r\ncontent-type: application/json\r\n`;
    socket.setEncoding('latin1');
    socket.on('data', (part) => this.#take(part));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the server closed the connection')));
  }

  /** The body of the answer, as bytes in a string; rejects unless its status is 2xx. `more` is whole header lines. */
  post(path, body, more = '') {
    const length = Buffer.byteLength(body);
    const head = `POST ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${this.#headers}${more}content-length: ${length}`;
    return this.#ask(head + HEAD_END + body);
  }

  get(path) {
    return this.#ask(`GET ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${this.#headers}${HEAD_END.slice(2)}`);
  }

  close() {
    this.#socket.destroy();
  }

  #ask(request) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  #take(part) {
    this.#text += part;
    const end = this.#text.indexOf(HEAD_END);
    if (end < 0) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#text.slice(0, end))?.[1];
    if (length === undefined) return this.#fail(new Error(`an answer without length: ${this.#text.slice(0, end)}`));
    const from = end + HEAD_END.length;
    if (this.#text.length < from + Number(length)) return;
    const body = this.#text.slice(from, from + Number(length));
    const isGood = this.#text.startsWith('HTTP/1.1 2');
    this.#text = '';
    if (isGood) this.#waiting?.resolve(body);
    else this.#waiting?.reject(new Error(`refused: ${body.slice(0, 300)}`));
    this.#waiting = undefined;
  }

  #fail(error) {
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}
