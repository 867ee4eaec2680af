/** What can be completed, as it is declared: of each command its words, its options, and what their values are. */
import type { Command, Option } from 'commander';

/** What stands at a place: one of some words, a file, a folder, a profile, a command of the machine, or anything. */
export type Kind = 'words' | 'file' | 'dir' | 'profile' | 'command' | 'any';

export interface Value {
  readonly kind: Kind;
  readonly name: string;
  readonly words: readonly string[];
  /** Several of the words, between commas. */
  readonly isList: boolean;
}

export interface OptionShape {
  readonly flags: readonly string[];
  readonly help: string;
  /** What stands behind it; none for a switch. */
  readonly value: Value | undefined;
  readonly mayRepeat: boolean;
}

export interface CommandShape {
  /** `runs`, or `audit list`; empty for the program itself. */
  readonly path: string;
  readonly summary: string;
  readonly commands: readonly CommandShape[];
  readonly options: readonly OptionShape[];
  readonly operands: readonly Value[];
  /** The last operand may be there again. */
  readonly isVariadic: boolean;
}

/** By the name in angle brackets: `--token-file <file>` is followed by a file. */
const KINDS: Readonly<Record<string, Kind>> = {
  file: 'file',
  bundle: 'file',
  dir: 'dir',
  profile: 'profile',
  argv: 'command',
};

export function shapeOf(command: Command, path = ''): CommandShape {
  const operands = command.registeredArguments;
  return {
    path,
    summary: command.summary(),
    commands: command.commands.map((sub) => shapeOf(sub, `${path} ${sub.name()}`.trim())),
    options: [...command.options.filter(({ long }) => long !== '--token').map(optionShape), HELP],
    operands: operands.map((operand) => spotOf(operand.name(), operand.argChoices ?? [], false)),
    isVariadic: operands.at(-1)?.variadic === true,
  };
}

const HELP: OptionShape = { flags: ['--help'], help: 'show its help', value: undefined, mayRepeat: false };

function optionShape(option: Option): OptionShape {
  const { short, long, description, flags, required, optional, argChoices = [] } = option;
  const name = /[<[]([^>\]]+)[>\]]/.exec(flags)?.[1] ?? '';
  const isList = /commas/.test(description);
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    help: description,
    value: required || optional ? spotOf(name, argChoices, isList) : undefined,
    mayRepeat: /repeatable/.test(description),
  };
}

function spotOf(name: string, words: readonly string[], isList: boolean): Value {
  return { kind: words.length > 0 ? 'words' : (KINDS[name] ?? 'any'), name, words, isList };
}

/** The command and all below it. */
export function flattened(shape: CommandShape): readonly CommandShape[] {
  return [shape, ...shape.commands.flatMap(flattened)];
}
