/** One invocation of a client command: where it prints, whom it asks, and what it does when it is interrupted. */
import { clientSettings } from '../platform/config/config.js';
import { Api } from './api.js';
import { type TargetOptions, targetOf } from './credentials.js';
import { type Failure, interrupted, wrongUsage } from './failure.js';
import { HttpClient } from './http.js';
import { Printer } from './print.js';
import type { Shell } from './shell.js';
import { startedAs } from './text.js';

export interface ClientOptions extends TargetOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
}

/** What is over sooner needs no progress. */
const SILENT_MS = 500;
const PROGRESS_EVERY_MS = 100;

export class Session {
  readonly isJson: boolean;
  /** Ids alone, or nothing. */
  readonly isQuiet: boolean;
  readonly printer: Printer;
  /** As it was started: `capstan`, or `npx capstan`. */
  readonly program: string;
  /** The answer to Ctrl-C: an exit code, or a failure with its words. A command that leaves something behind says so. */
  leave: () => Promise<number> = () => Promise.reject(interrupted());
  /** What becomes of the news that a request has to be sent again. */
  tellRetry: (failure: Failure) => Promise<void> = ({ message }) => this.note(`${message}; trying again`);
  private connected: Api | undefined;
  private progressFromMs: number;

  constructor(
    readonly shell: Shell,
    private readonly options: ClientOptions,
  ) {
    this.isJson = options.json === true;
    this.isQuiet = options.quiet === true;
    if (this.isJson && this.isQuiet) throw wrongUsage('--json and --quiet exclude each other');
    this.progressFromMs = shell.timing.monotonicMs() + SILENT_MS;
    const { noColor, program } = clientSettings(shell.env);
    this.printer = new Printer(shell.stdout, noColor);
    this.program = program;
  }

  /** Server and token are looked up when they are first needed. */
  get api(): Api {
    this.connected ??= this.connect();
    return this.connected;
  }

  /** A remark for a person on standard error, and what to do next; who asked for JSON or for silence is spared it. */
  async note(text: string, ...hints: readonly string[]): Promise<void> {
    if (!this.isJson && !this.isQuiet) await this.warn(text, ...hints);
  }

  /** A remark that only a program that asked for JSON is spared: part of what was asked for was not done. */
  async warn(text: string, ...hints: readonly string[]): Promise<void> {
    if (this.isJson) return;
    const { stderr } = this.shell;
    // On a screen, a line that a tool left open would run into the remark.
    const begin = stderr.isTerminal && stderr.isLineOpen ? '\n' : '';
    const lines = [text, ...hints.map((hint) => `  ${startedAs(this.program, hint)}`)];
    await stderr.write(`${begin}capstan: ${lines.join('\n')}\n`);
  }

  /** Somebody sits there who wants to know. */
  get isWatched(): boolean {
    return !this.isJson && !this.isQuiet && this.shell.stderr.isTerminal;
  }

  /** How far it has come, for a person who looks on: in the status line, which what is written next replaces. */
  async progress(text: string): Promise<void> {
    const now = this.shell.timing.monotonicMs();
    if (!this.isWatched || now < this.progressFromMs) return;
    this.progressFromMs = now + PROGRESS_EVERY_MS;
    await this.shell.status.show(text);
  }

  private connect(): Api {
    const { shell, options } = this;
    return new Api(new HttpClient(targetOf(options, shell.env), shell.timing, (failure) => this.tellRetry(failure)));
  }
}
