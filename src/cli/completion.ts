/** `completion`: a script that completes command lines of ours, made of the commands as they are declared. */
import { Argument, type Command } from 'commander';
import type { ClientCommands } from './commands.js';
import { bashScript } from './completion-bash.js';
import { shapeOf } from './completion-shape.js';
import { zshScript } from './completion-zsh.js';
import { EXIT_CODES } from './exit-codes.js';
import { wrongUsage } from './failure.js';
import type { Session } from './session.js';

const SCRIPTS = { bash: bashScript, zsh: zshScript } as const;

/** Of all that `root` has when it is asked. */
export function addCompletionCommand(commands: ClientCommands, root: Command): void {
  const shell = new Argument('[shell]', 'the shell that is to complete');
  shell.argChoices = Object.keys(SCRIPTS);
  commands
    .addLocal('completion', 'complete with TAB', (session, [name = '']) => print(session, root, name))
    .description('Print a script that completes commands, options, their values, profiles and files.')
    .addArgument(shell)
    .usage('bash|zsh')
    .addHelpText(
      'after',
      '\nIt completes a command called capstan: on the PATH, or an alias.\n\n' +
        'Install it:\n' +
        "  bash   echo 'source <(capstan completion bash)' >> ~/.bashrc\n" +
        "  zsh    echo 'source <(capstan completion zsh)' >> ~/.zshrc   (below compinit)",
    );
}

async function print({ isJson, shell }: Session, root: Command, name: string): Promise<number> {
  if (name !== 'bash' && name !== 'zsh') {
    throw wrongUsage('completion: expected bash or zsh', 'see: capstan completion --help');
  }
  if (isJson) throw wrongUsage('completion prints a script, not JSON');
  await shell.stdout.write(SCRIPTS[name](shapeOf(root)));
  return EXIT_CODES.done.code;
}
