/** HTML whose every value is escaped: what isn't made by `html` itself is text, whoever wrote it. Pure. */

/** A piece of finished HTML. */
export class Markup {
  constructor(readonly text: string) {}
}

type Piece = Markup | string | number | null | readonly (Markup | string)[];

const ESCAPED: Readonly<Record<string, string>> = Object.freeze({
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
});
/** What no HTML may hold, and the marks that turn the direction of writing. */
const STEERING = /[\p{Cc}\p{Cs}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** A template whose holes are escaped; `null` leaves nothing, a list its items one after the other. */
export function html(texts: TemplateStringsArray, ...holes: readonly Piece[]): Markup {
  return new Markup(texts.map((text, index) => `${text}${filled(holes[index] ?? null)}`).join(''));
}

function filled(piece: Piece): string {
  if (piece === null) return '';
  if (piece instanceof Markup) return piece.text;
  return typeof piece === 'object' ? piece.map(filled).join('') : escaped(String(piece));
}

function escaped(text: string): string {
  return text.replace(STEERING, '\u{FFFD}').replace(/[&<>"']/g, (char) => ESCAPED[char] ?? char);
}
