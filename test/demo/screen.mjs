/**
 * What a person sees: lines that stay, and below them a picture that is drawn anew in its place. In a pipe there are
 * lines only, and the picture is one of them now and then.
 */
import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';

const PIPE_EVERY_MS = 4_000;
const WIDEST = 110;
const UP_AND_CLEAR = (lines) => `\u001b[${lines}A\u001b[0J`;

export class Screen {
  #out;
  #isTerminal;
  #drawn = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #isOpen = true;
  paint;

  /** @param {NodeJS.WriteStream} out */
  constructor(out, env) {
    this.#out = out;
    this.#isTerminal = out.isTTY === true;
    this.paint = pc.createColors(this.#isTerminal && !env.NO_COLOR);
  }

  /** Lines that stay. The picture is gone until it is drawn again. */
  say(...lines) {
    this.#write(this.#erase() + lines.map((line) => `${line}\n`).join(''));
  }

  /** A paragraph, as wide as the terminal and at most `WIDEST`. */
  tell(text, first = '   ') {
    const width = Math.min(this.#out.columns || WIDEST, WIDEST) - 1;
    const indent = ' '.repeat(lengthOf(first));
    const lines = [];
    let line = first;
    for (const word of text.split(' ')) {
      const isBegun = line !== first && line !== indent;
      if (isBegun && lengthOf(line) + 1 + lengthOf(word) > width) {
        lines.push(line);
        line = indent;
      }
      line += line === first || line === indent ? word : ` ${word}`;
    }
    this.say(...lines, line);
  }

  title(text) {
    this.say('', this.paint.bold(text));
  }

  /** What would be typed at a shell. */
  command(text, why) {
    this.tell(`${this.paint.yellow(`$ ${text}`)}   ${this.paint.dim(`# ${why}`)}`);
  }

  /** `picture` for a terminal; `line` for a pipe, at most every few seconds. */
  draw(picture, line) {
    if (this.#isTerminal) {
      const width = (this.#out.columns || 80) - 1;
      const lines = ['', ...picture].map((text) => (lengthOf(text) > width ? stripped(text).slice(0, width) : text));
      this.#write(`${this.#erase()}${lines.join('\n')}\n`);
      this.#drawn = lines.length;
    } else if (performance.now() - this.#lastMs > PIPE_EVERY_MS) {
      this.#lastMs = performance.now();
      this.#write(`${line}\n`);
    }
  }

  /** Rows under their titles, each column as wide as it must be. */
  table(titles, rows) {
    const all = [titles.map((title) => this.paint.dim(title)), ...rows];
    const widths = titles.map((_, column) => Math.max(...all.map((row) => lengthOf(row[column]))));
    this.say(...all.map((row) => `   ${row.map((cell, column) => padded(cell, widths[column])).join('  ')}`.trimEnd()));
  }

  /** From here on nothing is written: whoever read it is gone. */
  close() {
    this.#isOpen = false;
  }

  #erase() {
    const code = this.#drawn > 0 ? UP_AND_CLEAR(this.#drawn) : '';
    this.#drawn = 0;
    return code;
  }

  #write(text) {
    if (this.#isOpen) this.#out.write(text);
  }
}

export function padded(text, width) {
  return text + ' '.repeat(Math.max(0, width - lengthOf(text)));
}

const stripped = stripVTControlCharacters;
const lengthOf = (text) => stripped(text).length;
