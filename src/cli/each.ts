/** The same for each of several runs: what is refused for one is told with its id, and the others go on. */
import { EXIT_CODES } from './exit-codes.js';
import { Failure, interrupted } from './failure.js';
import type { Session } from './session.js';
import { grouped } from './text.js';

export interface Done {
  readonly document: unknown;
  /** For a person. */
  readonly line: string;
}

/** With `--json` one document, `{ items: [{ id, run | problem }] }`. 3 when any was refused. */
export async function forEach(
  session: Session,
  ids: readonly string[],
  act: (id: string) => Promise<Done>,
): Promise<number> {
  const { isJson, printer } = session;
  const items: object[] = [];
  let refused = 0;
  session.leave = () => Promise.reject(interrupted(`${items.length} of ${ids.length} done, or one more`));
  for (const id of ids) {
    await session.progress(`${grouped(items.length)} of ${grouped(ids.length)}`);
    try {
      const { document, line } = await act(id);
      items.push({ id, run: document });
      if (!isJson) await printer.line(line);
    } catch (error) {
      // Where the server is away or the token isn't taken, the others would fare the same.
      const isOwn = error instanceof Failure && [404, 409, 410, 422].includes(error.problem.status ?? 0);
      if (!isOwn) throw error;
      refused += 1;
      items.push({ id, problem: error.problem });
      await session.warn(`${id}: ${error.message}`);
    }
  }
  if (isJson) await printer.document({ items });
  return refused > 0 ? EXIT_CODES.unable.code : EXIT_CODES.done.code;
}
