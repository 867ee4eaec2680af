/** The completion of bash, as a script that is made of what is declared. Works with bash 3.2 and later, without a package. */
import { type CommandShape, flattened, type OptionShape, type Value } from './completion-shape.js';

/**
 * Walks over the words in front of the cursor, so that a command is known by its place and not by its spelling: what stands
 * behind an option that takes a value is that value.
 */
const ENGINE = `_capstan() {
  local cur=\${COMP_WORDS[COMP_CWORD]} path='' seen=0 want='' glued='' last='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # bash ends a word at a = or a colon, and begins another behind it: --option=value, key=value, http://host.
    if [[ $word == [:=]* ]]; then
      [[ $word == '=' && $last == -* ]] || glued=1
      continue
    fi
    last=$word
    if [[ -n $glued ]]; then glued=''; continue; fi
    if [[ -n $want ]]; then want=''; continue; fi
    case $word in
      --) seen=99; path+=' --'; break ;;
      -*) want=$(_capstan_value "$path" "$word") ;;
      *)
        if [[ $seen -eq 0 && " $(_capstan_commands "$path") " == *" $word "* ]]; then
          path="\${path:+$path }$word"
        else
          ((seen++))
          if [[ $path == run ]]; then break; fi
        fi ;;
    esac
  done
  if [[ $cur == '=' ]]; then cur=''; fi
  if [[ -n $glued ]]; then return; fi
  if [[ -n $want ]]; then _capstan_offer "$want"
  elif [[ $path == 'run --' || $path == run && $seen -gt 0 ]]; then _capstan_offer files
  elif [[ $path == *--* ]]; then _capstan_offer files
  elif [[ $cur == -* ]]; then _capstan_offer "words $(_capstan_options "$path")"
  elif [[ $seen -eq 0 && -n $(_capstan_commands "$path") ]]; then _capstan_offer "words $(_capstan_commands "$path")"
  else _capstan_offer "$(_capstan_operand "$path" "$seen")"
  fi
}

# Each line is one word, whatever is in it; mapfile came with bash 4.
_capstan_reply() {
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done
}

_capstan_offer() {
  local kind=\${1%% *} words='' head=''
  [[ $1 == *' '* ]] && words=\${1#* }
  case $kind in
    list)
      # The words in front of the last comma stay as they are.
      if [[ $cur == *,* ]]; then head=\${cur%,*},; fi
      _capstan_reply < <(compgen -P "$head" -W "$words" -- "\${cur##*,}") ;;
    words) _capstan_reply < <(compgen -W "$words" -- "$cur") ;;
    profile) _capstan_reply < <(compgen -W "$("\${COMP_WORDS[0]}" config list --quiet 2>/dev/null)" -- "$cur") ;;
    file | files | command | dir)
      local flag=-f; [[ $kind == dir ]] && flag=-d; [[ $kind == command ]] && flag=-c
      _capstan_reply < <(compgen $flag -- "$cur")
      [[ $kind == command ]] || compopt -o filenames 2>/dev/null ;;
  esac
}
`;

export function bashScript(root: CommandShape): string {
  const all = flattened(root);
  return [
    '# bash completion for capstan; made by: capstan completion bash',
    ENGINE,
    table('_capstan_commands', 'the commands below one', all, (shape) =>
      shape.commands.map(({ path }) => lastWord(path)).join(' '),
    ),
    table('_capstan_options', 'the options of one', all, ({ options }) =>
      options.flatMap(({ flags }) => flags).join(' '),
    ),
    valueTable(all),
    operandTable(all),
    'complete -F _capstan capstan',
    '',
  ].join('\n');
}

function lastWord(path: string): string {
  return path.split(' ').at(-1) ?? '';
}

function table(
  name: string,
  what: string,
  shapes: readonly CommandShape[],
  textOf: (shape: CommandShape) => string,
): string {
  const cases = shapes.map((shape) => [shape.path, textOf(shape)] as const).filter(([, text]) => text !== '');
  const lines = cases.map(([path, text]) => `    '${path}') echo '${text}' ;;`);
  return `# ${what}\n${name}() {\n  case $1 in\n${lines.join('\n')}\n  esac\n}\n`;
}

function valueTable(shapes: readonly CommandShape[]): string {
  const lines = shapes.flatMap(({ path, options }) =>
    options.flatMap((option) => valueCase(path, option)).map((line) => `    ${line}`),
  );
  return `# what stands behind an option\n_capstan_value() {\n  case "$1 $2" in\n${lines.join('\n')}\n  esac\n}\n`;
}

function valueCase(path: string, { flags, value }: OptionShape): string[] {
  if (value === undefined) return [];
  return [`${flags.map((flag) => `'${path} ${flag}'`).join(' | ')}) echo '${offer(value)}' ;;`];
}

function offer({ kind, words, isList }: Value): string {
  return kind === 'words' ? `${isList ? 'list' : 'words'} ${words.join(' ')}` : kind;
}

function operandTable(shapes: readonly CommandShape[]): string {
  const lines = shapes.flatMap(({ path, operands, isVariadic }) =>
    operands.map((value, index) => {
      const place = isVariadic && index === operands.length - 1 ? '*' : String(index);
      return `    '${path} '${place}) echo '${offer(value)}' ;;`;
    }),
  );
  return `# what stands at the place of an operand\n_capstan_operand() {\n  case "$1 $2" in\n${lines.join('\n')}\n  esac\n}\n`;
}
