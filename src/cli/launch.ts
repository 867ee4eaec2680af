/** `run` and `script`: make a run, and with --wait follow it to its end. */
import { Option } from 'commander';
import type { Submitted } from './api.js';
import { addQuietOption, type ClientCommands } from './commands.js';
import { interrupted, wrongUsage } from './failure.js';
import {
  addLaunchOptions,
  addToolOptions,
  addWaitOptions,
  type LaunchOptions,
  type ReplayOptions,
  submissionOf,
  type ToolOptions,
  toolMembers,
} from './launch-options.js';
import { INTERPRETERS, interpreterOf } from './script.rules.js';
import type { Session } from './session.js';
import { quoted } from './text.js';
import { textIn } from './text-file.js';
import { conclude, type WaitOptions } from './wait.js';

const STDIN_HELP = 'The tool is sent nothing of what is piped in here, unless --stdin - asks for it.';

type RunOptions = LaunchOptions & ToolOptions;

export function addLaunchCommands(commands: ClientCommands): void {
  const run = commands
    .add('run', 'run a command', async (session, args, options: RunOptions) => {
      const spec = { argv: args, ...(await toolMembers(session.shell, options)) };
      return submit(session, submissionOf('command', spec, options), options);
    })
    .usage('[options] -- ARGV...')
    .argument('<argv...>', 'the command; behind its first word nothing is ours')
    .addHelpText(
      'after',
      `\n${STDIN_HELP}\nExamples:\n  capstan run --wait --timeout 15m --label env=prod -- ansible-playbook site.yml` +
        '\n  pg_dump app | capstan run --wait --stdin - -- wc -l',
    );
  addQuietOption(addWaitOptions(addLaunchOptions(addToolOptions(commands.endOptionsAtFirstWord(run)))));

  const script = commands
    .add('script', 'run a script', async (session, args, options: RunOptions & { interpreter?: string }) => {
      const [file = '-', ...scriptArgs] = args;
      if (file === '-' && options.stdin === '-') {
        throw wrongUsage('standard input is read once: for the script or for --stdin');
      }
      const content = await textIn(session.shell, file);
      const interpreter = options.interpreter ?? interpreterOf(content, file);
      const spec = { interpreter, content, args: scriptArgs, ...(await toolMembers(session.shell, options)) };
      return submit(session, submissionOf('script', spec, options), options);
    })
    .usage('FILE [options] [-- ARGS...]')
    .argument('<file>', 'the script; - reads standard input')
    .argument('[args...]')
    .addHelpText('after', `\n${STDIN_HELP}\nExample:\n  capstan script train.py --wait --queue gpu -- --epochs 3`);
  script.addOption(
    new Option('--interpreter <name>', 'what runs it (default: by its #! line or ending)').choices(INTERPRETERS),
  );
  addQuietOption(addWaitOptions(addLaunchOptions(addToolOptions(script))));
}

/** Submits a run and says what there is to say. */
export function submit(session: Session, submission: unknown, options: ReplayOptions & WaitOptions): Promise<number> {
  return launch(session, options, (key) => session.api.submit(submission, key));
}

/** Sends what makes a run, under one key in all its tries. */
export async function launch(
  session: Session,
  options: ReplayOptions & WaitOptions,
  send: (key: string) => Promise<Submitted>,
): Promise<number> {
  const key = options.idempotencyKey ?? `cli-${crypto.randomUUID()}`;
  const maybeSubmitted = interrupted(
    'the run may have been submitted',
    'look: capstan runs',
    `or send it again, which makes no second run: --idempotency-key ${quoted(key)}`,
  );
  session.leave = () => Promise.reject(maybeSubmitted);
  const submitted = await send(key);
  const isFound = submitted.isReplay && options.idempotencyKey !== undefined;
  return await conclude(session, submitted, { ...options, isFound });
}
