/** `run` and `script`: submit a run, and with --wait follow it to its end. */
import { readFile, stat } from 'node:fs/promises';
import { Option } from 'commander';
import type { Submitted } from './api.js';
import type { ClientCommands } from './commands.js';
import { EXIT_CODES, exitCodeOf } from './exit-codes.js';
import { Failure, interrupted, wrongUsage } from './failure.js';
import { follow, leftBehind } from './follow.js';
import { addLaunchOptions, type LaunchOptions, submissionOf } from './launch-options.js';
import { span } from './print.js';
import type { Run } from './resources.js';
import { INTERPRETERS, interpreterOf } from './script.rules.js';
import type { Session } from './session.js';
import { quoted } from './text.js';

/** A submit with more than this in its body is refused by every server. */
const SCRIPT_LIMIT_BYTES = 1024 * 1024;

export function addLaunchCommands(commands: ClientCommands): void {
  const run = commands
    .add('run', 'run a command', (session, args, options: LaunchOptions) => {
      return launch(session, submissionOf('command', { argv: args }, options), options);
    })
    .usage('[options] -- ARGV...')
    .argument('<argv...>', 'the command; nothing behind its first word is taken as an option of ours')
    .passThroughOptions()
    .addHelpText(
      'after',
      '\nExample:\n  capstan run --wait --timeout 15m --label env=prod -- ansible-playbook site.yml',
    );
  addLaunchOptions(run);

  const script = commands
    .add('script', 'run a script', async (session, args, options: LaunchOptions & { interpreter?: string }) => {
      const [file = '-', ...scriptArgs] = args;
      const content = await contentOf(session, file);
      const interpreter = options.interpreter ?? interpreterOf(content, file);
      const spec = { interpreter, content, args: scriptArgs };
      return launch(session, submissionOf('script', spec, options), options);
    })
    .usage('FILE [options] [-- ARGS...]')
    .argument('<file>', 'the script; - reads standard input')
    .argument('[args...]', 'arguments of the script')
    .addHelpText('after', '\nExample:\n  capstan script --wait train.py -- --epochs 3');
  script.addOption(
    new Option('--interpreter <name>', 'what runs it (default: by its #! line or ending, else bash)').choices(
      INTERPRETERS,
    ),
  );
  addLaunchOptions(script);
}

/** The text of a script, which travels in JSON. */
async function contentOf({ shell }: Session, file: string): Promise<string> {
  const bytes = file === '-' ? await shell.readStdin(SCRIPT_LIMIT_BYTES) : await bytesOf(file);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw wrongUsage(`${file === '-' ? 'standard input' : file} is not UTF-8 text`);
  }
}

async function bytesOf(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size > SCRIPT_LIMIT_BYTES) throw wrongUsage(`${file} is larger than ${SCRIPT_LIMIT_BYTES} bytes`);
    return await readFile(file);
  } catch (error) {
    if (error instanceof Failure) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw wrongUsage(code === 'ENOENT' ? `${file} does not exist` : `${file} cannot be read: ${code}`);
  }
}

async function launch(session: Session, submission: unknown, options: LaunchOptions): Promise<number> {
  const key = options.idempotencyKey ?? `cli-${crypto.randomUUID()}`;
  session.interruption = interrupted(
    'the run may have been submitted',
    'look: capstan runs',
    `or send it again, which makes no second run: --idempotency-key ${quoted(key)}`,
  );
  const submitted = await session.api.submit(submission, key);
  if (submitted.isReplay && options.idempotencyKey !== undefined) {
    await session.note(`this key was used before: it made ${submitted.value.id}`);
  }
  const isAwaited = options.wait === true || options.waitLimit !== undefined;
  return isAwaited ? await awaitEnd(session, submitted.value, options.waitLimit) : await report(session, submitted);
}

async function report({ isJson, printer, shell }: Session, { document, value }: Submitted): Promise<number> {
  if (isJson) await printer.document(document);
  else await printer.line(value.id);
  if (!isJson && shell.stdout.isTerminal) await shell.stderr.write(`see it: capstan show ${value.id}\n`);
  return EXIT_CODES.done.code;
}

async function awaitEnd(session: Session, { id }: Run, limitMs: number | undefined): Promise<number> {
  const { isJson, printer, shell } = session;
  await session.note(`${id} submitted`);
  session.interruption = interrupted(`${id} goes on`).of(id, leftBehind(id));
  const copies = isJson
    ? []
    : ([
        { stream: 'stdout', to: shell.stdout },
        { stream: 'stderr', to: shell.stderr },
      ] as const);
  try {
    const { document, value } = await follow(session, id, { copies, ...(limitMs === undefined ? {} : { limitMs }) });
    if (isJson) await printer.document(document);
    await session.note(endLine(value));
    return exitCodeOf(value);
  } catch (error) {
    throw error instanceof Failure && error.exit !== 'readerGone' ? error.of(id, leftBehind(id)) : error;
  }
}

/** `run_… failed: exit code 7 (tool_failed) after 3.20s`. */
export function endLine({ id, state, end, startedAt, endedAt }: Run): string {
  const took = span(startedAt, endedAt);
  const why = end === null || end.code === 'ok' ? '' : `: ${end.detail || 'no detail'} (${end.code})`;
  return `${id} ${state}${why}${took === null ? '' : ` after ${took}`}`;
}
