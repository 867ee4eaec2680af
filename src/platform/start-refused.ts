/** Why a start is given up: one line for the person. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused';
}
