/** `run`, `script` and `rerun`: make a run, and with --wait follow it to its end. */
import { Option } from 'commander';
import type { Submitted } from './api.js';
import type { ClientCommands } from './commands.js';
import { interrupted } from './failure.js';
import { idIn } from './ids.js';
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

type RunOptions = LaunchOptions & ToolOptions;

export function addLaunchCommands(commands: ClientCommands): void {
  const run = commands
    .add('run', 'run a command', (session, args, options: RunOptions) => {
      return submit(session, submissionOf('command', { argv: args, ...toolMembers(options) }, options), options);
    })
    .usage('[options] -- ARGV...')
    .argument('<argv...>', 'the command; nothing behind its first word is taken as an option of ours')
    .addHelpText(
      'after',
      '\nExample:\n  capstan run --wait --timeout 15m --label env=prod -- ansible-playbook site.yml',
    );
  addWaitOptions(addLaunchOptions(addToolOptions(commands.endOptionsAtFirstWord(run))));

  const script = commands
    .add('script', 'run a script', async (session, args, options: RunOptions & { interpreter?: string }) => {
      const [file = '-', ...scriptArgs] = args;
      const content = await textIn(session.shell, file);
      const interpreter = options.interpreter ?? interpreterOf(content, file);
      const spec = { interpreter, content, args: scriptArgs, ...toolMembers(options) };
      return submit(session, submissionOf('script', spec, options), options);
    })
    .usage('FILE [options] [-- ARGS...]')
    .argument('<file>', 'the script; - reads standard input')
    .argument('[args...]', 'arguments of the script')
    .addHelpText('after', '\nExample:\n  capstan script train.py --wait --queue gpu -- --epochs 3');
  script.addOption(
    new Option('--interpreter <name>', 'what runs it (default: by its #! line or ending, else bash)').choices(
      INTERPRETERS,
    ),
  );
  addWaitOptions(addLaunchOptions(addToolOptions(script)));

  const rerun = commands
    .add('rerun', 'repeat an ended run', (session, args, options: ReplayOptions & WaitOptions) => {
      const id = idIn(args);
      return launch(session, options, (key) => session.api.rerun(id, key));
    })
    .argument('<id>', 'the ended run; a new one like it is made')
    .addHelpText('after', '\nExample:\n  capstan rerun --wait RUN_ID');
  addWaitOptions(rerun);
}

/** Submits a run and says what there is to say. */
export function submit(session: Session, submission: unknown, options: ReplayOptions & WaitOptions): Promise<number> {
  return launch(session, options, (key) => session.api.submit(submission, key));
}

async function launch(
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
  if (submitted.isReplay && options.idempotencyKey !== undefined) {
    await session.note(`this key was used before: it made ${submitted.value.id}`);
  }
  return await conclude(session, submitted, options);
}
