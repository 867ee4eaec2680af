/** The completion of zsh, as a script that is made of what is declared: one function a command, with what each thing is. */
import { type CommandShape, flattened, type OptionShape, type Value } from './completion-shape.js';

export function zshScript(root: CommandShape): string {
  return [
    '#compdef capstan',
    '# zsh completion for capstan; made by: capstan completion zsh',
    `_capstan_profiles() {
  local -a names
  names=(\${(f)"$(\${words_of_line[1]:-capstan} config list --quiet 2>/dev/null)"})
  compadd -a names
}
`,
    ...flattened(root).map(commandFunction),
    // Sourced it registers itself; found in fpath it is the function already.
    `if [[ $funcstack[1] == _capstan ]]; then
  _capstan "$@"
else
  compdef _capstan capstan
fi
`,
  ].join('\n');
}

function commandFunction(shape: CommandShape): string {
  const options = shape.options.map(optionSpec);
  const isRoot = shape.path === '';
  const lines = isRoot ? ['local -a words_of_line; words_of_line=($words)'] : [];
  if (shape.commands.length === 0) {
    lines.push(call('_arguments -S', [...options, ...operandSpecs(shape)]));
  } else {
    lines.push(
      'local curcontext="$curcontext" state line; local -a commands',
      `commands=(${shape.commands.map(({ path, summary }) => quote(`${lastWord(path)}:${summary}`)).join(' ')})`,
      call('_arguments -C', [...options, "'1: :->command'", "'*:: :->rest'"]),
      'case $state in',
      `  command) _describe -t commands 'command' commands ;;`,
      '  rest)',
      '    case $line[1] in',
      ...shape.commands.map(({ path }) => `      ${lastWord(path)}) ${functionName(path)} ;;`),
      '    esac ;;',
      'esac',
    );
  }
  return `${functionName(shape.path)}() {\n${lines.map((line) => `  ${line}`).join('\n')}\n}\n`;
}

function call(program: string, specs: readonly string[]): string {
  return `${program} \\\n${specs.map((spec) => `    ${spec}`).join(' \\\n')}`;
}

function functionName(path: string): string {
  return ['_capstan', ...path.split(' ')]
    .filter((word) => word !== '')
    .join('_')
    .replaceAll('-', '_');
}

function lastWord(path: string): string {
  return path.split(' ').at(-1) ?? '';
}

function optionSpec({ flags, help, value, mayRepeat }: OptionShape): string {
  // A long one may be followed by =, too.
  const spelled = flags.map((flag) => (value !== undefined && flag.startsWith('--') ? `${flag}=` : flag));
  const others = mayRepeat ? '*' : flags.length > 1 ? `(${flags.join(' ')})` : '';
  const behind = `[${help.replace(/[[\]\\]/g, '\\$&')}]${value === undefined ? '' : `:${value.name}:${action(value)}`}`;
  return spelled.map((flag) => quote(`${others}${flag}${behind}`)).join(' ');
}

function operandSpecs({ operands, isVariadic }: CommandShape): string[] {
  return operands.flatMap((value, index) => {
    // Behind the first word of a tool nothing is ours.
    if (value.kind === 'command') return ["'(-)1: :_command_names -e'", "'*:: :_normal'"];
    const isLast = isVariadic && index === operands.length - 1;
    return [quote(`${isLast ? '*' : index + 1}:${value.name}:${action(value)}`)];
  });
}

function action({ kind, words, isList }: Value): string {
  if (kind === 'words') return isList ? `_values -s , word ${words.join(' ')}` : `(${words.join(' ')})`;
  return { file: '_files', dir: '_files -/', profile: '_capstan_profiles', command: '_normal', any: ' ' }[kind];
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
