/** `logs`: what a run wrote, once or as it comes; as bytes, or as JSON. */

import { Option } from 'commander';
import type { StreamName, StreamPick } from '../client/stream.js';
import type { ClientCommands } from './commands.js';
import { CutLines, lineBehind } from './cut.rules.js';
import type { Fields } from './decode.js';
import { EXIT_CODES } from './exit-codes.js';
import { interrupted } from './failure.js';
import { follow, leftBehind } from './follow.js';
import { idIn } from './ids.js';
import { integer } from './launch-options.js';
import { copyOutput } from './output.js';
import type { Session } from './session.js';
import type { StreamMessage } from './stream.js';
import { printableJson } from './text.js';
import { endLine } from './wait.js';

interface LogsOptions {
  readonly stream?: StreamName;
  readonly follow?: boolean;
  readonly tail?: number;
}

export function addLogsCommand(commands: ClientCommands): void {
  commands
    .add('logs', "print a run's output", (session, args, options: LogsOptions) => {
      const { stream, tail } = options;
      const id = idIn(args);
      return options.follow ? followLogs(session, id, { stream, tail }) : printLogs(session, id, { stream, tail });
    })
    .argument('<id>', 'the run')
    .option('-f, --follow', 'go on until the run ends; with --json one document a line')
    .addOption(
      new Option(
        '--tail <n>',
        'the last N lines, up to 100000 (default: all); with -f and 0 only what comes',
      ).argParser(integer(0, 100_000)),
    )
    .addOption(new Option('--stream <name>', 'one stream (default: both as they came)').choices(['stdout', 'stderr']))
    .addHelpText(
      'after',
      '\nExamples:\n  capstan logs -f --tail 20 RUN_ID\n  capstan logs --stream stdout RUN_ID > out.txt',
    );
}

async function printLogs(session: Session, id: string, pick: StreamPick): Promise<number> {
  const { api, isJson, printer, shell } = session;
  const chunks: Uint8Array[] = [];
  const collect = async (data: Uint8Array) => void chunks.push(data);
  await copyOutput(api.http, id, pick, isJson ? collect : (data) => shell.stdout.write(data));
  if (isJson) await printer.document({ run: id, stream: pick.stream ?? null, ...encoded(Buffer.concat(chunks)) });
  return EXIT_CODES.done.code;
}

async function followLogs(session: Session, id: string, pick: StreamPick): Promise<number> {
  const { api, isJson, shell } = session;
  const { value: run } = await api.run(id);
  const [, cancel] = leftBehind(id);
  if (run.endedAt === null) session.leave = () => Promise.reject(interrupted(`${id} goes on`).of(id, [cancel]));
  const cuts = new CutLines(id, session.program);
  const take = (message: StreamMessage) => (isJson ? printMessage(session, message) : copy(session, cuts, message));
  const { document, value } = await follow(session, run, { ...pick, take });
  if (isJson) await shell.stdout.write(`${printableJson({ end: document })}\n`);
  else await session.note(endLine(value));
  return EXIT_CODES.done.code;
}

async function copy({ shell: { stdout } }: Session, cuts: CutLines, message: StreamMessage): Promise<void> {
  if (message.type === 'output') await stdout.write(message.data);
  if (message.type === 'cut') await stdout.write(lineBehind(stdout.isLineOpen, cuts.next(message)));
}

/** One line: an object with one member, named for what it is. */
async function printMessage({ shell }: Session, message: StreamMessage): Promise<void> {
  const { type, document } = message;
  const shown: Fields = type === 'output' ? { ...document, ...encoded(message.data) } : document;
  await shell.stdout.write(`${printableJson({ [type]: shown })}\n`);
}

/** JSON holds text: bytes that are none travel as base64. */
function encoded(data: Buffer): { encoding: 'utf8' | 'base64'; data: string } {
  const text = data.toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(data);
  return isText ? { encoding: 'utf8', data: text } : { encoding: 'base64', data: data.toString('base64') };
}
