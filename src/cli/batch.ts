/**
 * `batch`: many runs out of a file, up to 1,000 with one request. Invariant: the same file under the same key makes no run
 * twice, wherever an earlier try of it ended.
 */
import { type Entry, entriesIn, inParts } from './batch-file.rules.js';
import { addQuietOption, type ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure, interrupted } from './failure.js';
import { idempotencyKey, type ReplayOptions } from './launch-options.js';
import type { Session } from './session.js';
import { counted, grouped, quoted } from './text.js';
import { textIn } from './text-file.js';

const FILE_BYTES = 256 * 1024 * 1024;
/** With what is put behind it for each part, a key still fits. */
const KEY_BYTES = 240;

export function addBatchCommand(commands: ClientCommands): void {
  const batch = commands
    .add('batch', 'submit many runs', submitBatch)
    .usage('FILE [options]')
    .argument('<file>', 'one run a line, as JSON; - reads standard input')
    .option(
      '--idempotency-key <key>',
      'the same file with the same key makes no run twice (default: a new key)',
      idempotencyKey(KEY_BYTES),
    )
    .addHelpText(
      'after',
      '\nA line is what POST /v1/runs takes; it may have an "idempotencyKey" of its own.\n' +
        'The file may also be a JSON list of them. Exit code 1: some were refused.\n\n' +
        'Examples:\n' +
        '  echo \'{"kind":"command","spec":{"argv":["date"]}}\' | capstan batch -\n' +
        '  capstan batch runs.jsonl --quiet > ids.txt',
    );
  addQuietOption(batch);
}

async function submitBatch(session: Session, [file = '']: readonly string[], options: ReplayOptions): Promise<number> {
  const { isJson, printer, shell } = session;
  const source = file === '-' ? 'standard input' : file;
  const entries = entriesIn(await textIn(shell, file, FILE_BYTES), source);
  const key = options.idempotencyKey ?? `cli-${crypto.randomUUID()}`;
  const again = `again, which makes no run twice: the same with --idempotency-key ${quoted(key)}`;
  const tally = { made: 0, refused: 0, items: [] as object[] };
  session.leave = () => Promise.reject(interrupted(`${counted(tally.made, 'run')} submitted so far`, again));
  for (const [index, part] of inParts(entries).entries()) {
    await session.progress(`${grouped(tally.made + tally.refused)} of ${counted(entries.length, 'run')} submitted`);
    try {
      await submitPart(session, part, index === 0 ? key : `${key}/${index + 1}`, tally);
    } catch (error) {
      throw error instanceof Failure ? error.with([`${counted(tally.made, 'run')} submitted before`, again]) : error;
    }
  }
  const { made, refused } = tally;
  if (isJson) await printer.document({ made, refused, items: tally.items });
  await session.note(`${counted(made, 'run')} submitted${refused === 0 ? '' : `, ${grouped(refused)} refused`}`);
  return refused === 0 ? EXIT_CODES.done.code : EXIT_CODES.runFailed.code;
}

interface Tally {
  made: number;
  refused: number;
  readonly items: object[];
}

async function submitPart(session: Session, part: readonly Entry[], key: string, tally: Tally): Promise<void> {
  const { api, isJson, printer } = session;
  const answers = await api.batch(
    part.map(({ submit }) => submit),
    key,
  );
  for (const [index, { document, id, refusal }] of answers.entries()) {
    const place = part[index]?.place ?? '';
    if (isJson) tally.items.push({ place, ...document });
    if (id !== null) {
      tally.made += 1;
      if (!isJson) await printer.line(id);
    } else {
      tally.refused += 1;
      await session.warn(`${place}: ${refusal}`);
    }
  }
}
