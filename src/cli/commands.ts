/**
 * How a client command is declared: its name, its line of help and what it does; the options that all of them share,
 * errors and Ctrl-C are added here.
 */
import { Argument, Command, CommanderError, Option } from 'commander';
import { advised } from './advice.js';
import { Failure, wrongUsage } from './failure.js';
import { commandHelp } from './help.js';
import { type ClientOptions, Session } from './session.js';
import type { Shell } from './shell.js';

/** Returns the exit code. `args` are the operands as they were given. */
export type Act<T> = (session: Session, args: readonly string[], options: T) => Promise<number>;

export class ClientCommands {
  /** Of the command that ran. */
  exitCode: number | undefined;
  private session: Session | undefined;
  private readonly asking: Command[] = [];
  private readonly local: Command[] = [];
  private readonly launching = new Set<Command>();

  constructor(
    private readonly root: Command,
    private readonly shell: Shell,
  ) {
    root.exitOverride(refuse('')).enablePositionalOptions();
  }

  /** `name` is one word, or two for a command in a group. */
  add<T extends object>(name: string, summary: string, act: Act<T>): Command {
    return this.declare(this.asking, name, summary, act);
  }

  /** A command that asks no server. */
  addLocal<T extends object>(name: string, summary: string, act: Act<T>): Command {
    return this.declare(this.local, name, summary, act);
  }

  /** A group that does nothing by itself; the program's help tells it in one line. */
  addGroup(name: string, summary: string): void {
    this.groupOf(name).summary(summary);
  }

  /** What is declared from here on stands under this heading in the program's help. */
  beginSection(heading: string): void {
    this.root.commandsGroup(heading);
  }

  private declare<T extends object>(among: Command[], name: string, summary: string, act: Act<T>): Command {
    const [word = '', inGroup] = name.split(' ');
    const command = inGroup === undefined ? this.root.command(word) : this.groupOf(word).command(inGroup);
    command.summary(summary).description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`);
    command.helpInformation = () => commandHelp(command);
    among.push(command);
    return command.exitOverride(refuse(name)).action(async () => {
      // Given before the command's name or behind it, all of them count; behind it is nearer.
      const group = command.parent?.opts<ClientOptions>();
      const options = { ...this.root.opts<ClientOptions>(), ...group, ...command.opts<ClientOptions & T>() };
      const session = new Session(this.shell, options);
      this.session = session;
      if (session.isQuiet && !isQuietable(command)) throw wrongUsage(`--quiet: ${name} prints no ids`);
      const interruption = this.shell.interrupted().then(() => session.leave());
      try {
        this.exitCode = await Promise.race([act(session, command.args, options), interruption]);
      } catch (error) {
        throw error instanceof Failure ? advised(error) : fault(error);
      } finally {
        await this.shell.status.clear();
      }
    });
  }

  /** The first operand of this command begins the command line of a tool: nothing from there on is taken for ours. */
  endOptionsAtFirstWord(command: Command): Command {
    this.launching.add(command);
    return command.passThroughOptions();
  }

  /** As the command understood it; of a command line that couldn't be parsed, what stands in front of a tool's words. */
  wantsJson(argv: readonly string[]): boolean {
    return this.session?.isJson ?? this.seeksJson(argv);
  }

  private seeksJson(argv: readonly string[]): boolean {
    let command = this.root;
    for (let at = 0; at < argv.length; at += 1) {
      const word = argv[at] ?? '';
      if (word === '--') return false;
      if (word === '--json') return true;
      if (word.startsWith('-')) {
        if (takesNext(command, word, argv[at + 1])) at += 1;
        continue;
      }
      if (this.launching.has(command)) return false;
      command = command.commands.find((sub) => sub.name() === word) ?? command;
    }
    return false;
  }

  /** A command without client options; it ends in its own way. */
  addServer(name: string, summary: string, start: () => Promise<void>): void {
    const command = this.root.command(name).summary(summary).exitOverride(refuse(name)).action(start);
    command.description(
      `${summary}. Its settings are environment variables: capstan config show lists them.`,
    ).helpInformation = () => commandHelp(command);
  }

  /** To be called once all are declared: what they share comes last in their help. */
  complete(): void {
    addQuietOption(this.root);
    for (const command of [this.root, ...this.asking, ...this.local]) {
      addJsonOption(command);
      refuseToken(command);
    }
    for (const command of [this.root, ...this.asking]) addClientOptions(command);
  }

  private newGroup(word: string): Command {
    const group = this.root.command(word).exitOverride(refuse(word));
    group.helpInformation = () => commandHelp(group);
    return group;
  }

  private groupOf(word: string): Command {
    const group = this.root.commands.find((command) => command.name() === word);
    // A group that is a command itself leaves to its commands what stands behind their names.
    return (group ?? this.newGroup(word)).enablePositionalOptions();
  }
}

function addJsonOption(command: Command): void {
  command.option('--json', 'one JSON document and nothing else');
}

/** For a command that makes or lists things. */
export function addQuietOption(command: Command): Command {
  return command.option('-q, --quiet', 'ids alone, one a line, or nothing');
}

/** For what lists by its bare name: `list` behind it says so in a word. */
export function addListOperand(command: Command, usage: string): void {
  const list = new Argument('[list]').argParser((word: string) => {
    if (word === 'list') return word;
    const name = command.name();
    const hints = word.startsWith('run_') ? ['one run: capstan show ID'] : [];
    throw wrongUsage(`${name}: unknown command '${word}'`, ...hints, `see: capstan ${name} --help`);
  });
  list.argChoices = ['list'];
  command.addArgument(list).usage(usage);
}

function isQuietable({ options }: Command): boolean {
  return options.some(({ long }) => long === '--quiet');
}

function addClientOptions(command: Command): void {
  command
    .option('--url <url>', 'server (CAPSTAN_URL, else the profile in use, else this machine)')
    .option('--token-file <file>', 'file with the token (CAPSTAN_TOKEN_FILE, CAPSTAN_TOKEN)')
    .option('--profile <profile>', 'server and token of a profile (CAPSTAN_PROFILE); see: capstan config');
}

function refuseToken(command: Command): void {
  command.addOption(new Option('--token [value]').hideHelp()).on('option:token', () => {
    throw wrongUsage(
      '--token is not taken: every user of this machine can read a command line',
      'use --token-file FILE, CAPSTAN_TOKEN_FILE or CAPSTAN_TOKEN; think of that token as known now',
    );
  });
}

/** Whether the word behind an option is its value. */
function takesNext({ options }: Command, word: string, next = ''): boolean {
  const option = options.find(({ short, long }) => word === short || word === long);
  return option !== undefined && (option.required || (option.optional && !next.startsWith('-')));
}

/** A mistake of ours, with its place; left alone it would end the process with the exit code of a failed run. */
function fault(error: unknown): Failure {
  const detail = error instanceof Error ? error.message : String(error);
  const trace = error instanceof Error ? (error.stack ?? '').split('\n').slice(1) : [];
  return new Failure('unable', { title: 'internal error', detail, code: 'internal' }, trace, { cause: error });
}

/** Turns the parser's complaints into ours; help and version are passed on. */
function refuse(command: string): (error: CommanderError) => never {
  return (error) => {
    if (error.exitCode === 0 || error.code === 'commander.help') throw error;
    const detail = error.message
      .replace(/^error: /, '')
      // What follows the = may be a secret behind a mistyped name.
      .replace(/^(unknown option '-[^=']*)=.*'/s, "$1'")
      .replace(/\s+/g, ' ');
    const isForeign = error.code === 'commander.unknownOption' && command === 'script';
    const hints = isForeign ? ['arguments of the script stand behind --'] : [];
    throw wrongUsage(detail, ...hints, `see: capstan ${command && `${command} `}--help`);
  };
}

/** For an option that is given once: a file that is called like one must not replace what was asked for. */
export function once(name: string): (value: string, before: string | undefined) => string {
  return (value, before) => {
    if (before !== undefined) throw wrongUsage(`${name} is there twice`);
    return value;
  };
}
