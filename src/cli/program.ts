/**
 * The `capstan` program: which commands there are, and how a command line becomes an exit code. Server commands are
 * handed in as functions, so that nothing of a server is loaded for a client command.
 */
import { Command, CommanderError } from 'commander';
import { clientSettings } from '../platform/config/config.js';
import { addAuditCommands } from './audit.js';
import { addAuditBundleCommand } from './audit-bundle.js';
import { addAuditKeyCommands } from './audit-key.js';
import { addAuditReportCommand } from './audit-report.js';
import { addBatchCommand } from './batch.js';
import { addCancelCommand } from './cancel.js';
import { ClientCommands } from './commands.js';
import { addCompletionCommand } from './completion.js';
import { addConfigCommands } from './config.js';
import { addDoctorCommand, type Diagnose } from './doctor.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure, failureDocument, failureText } from './failure.js';
import { rootHelp } from './help.js';
import { addHttpCommand } from './http-launch.js';
import { addLaunchCommands } from './launch.js';
import { addLogsCommand } from './logs.js';
import { addQueuesCommands } from './queues.js';
import { addRerunCommand } from './rerun.js';
import { addRetentionCommand } from './retention.js';
import { addRunsCommands } from './runs.js';
import type { Shell } from './shell.js';
import { addTopCommand } from './top.js';
import { addVerifyCommand } from './verify.js';
import { addVersionCommand } from './version.js';
import { addWhyCommand } from './why.js';
import { addWorkersCommands } from './workers.js';

/** What the commands of a server do; each of them reports its own failures. */
export interface ServerCommands {
  serve(): Promise<void>;
  worker(): Promise<void>;
  migrate(): Promise<void>;
  /** Looks, and hands its words to the client, which shows them. */
  readonly diagnose: Diagnose;
}

export interface ProgramParts {
  readonly shell: Shell;
  readonly version: string;
  readonly servers: ServerCommands;
}

/** The exit code of a client command; `undefined` after a server command, which has its own say about the process. */
export async function runCommandLine(argv: readonly string[], parts: ProgramParts): Promise<number | undefined> {
  const { shell } = parts;
  const pages = { out: '', err: '' };
  const { root, client } = declare(parts, pages);
  try {
    await root.parseAsync([...argv], { from: 'user' });
    return client.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return await showPages(shell, pages, error);
    if (error instanceof Failure) return await report(error, client.wantsJson(argv), shell);
    throw error;
  }
}

function declare({ shell, version, servers }: ProgramParts, pages: { out: string; err: string }) {
  const root = new Command('capstan').version(version, '--version', 'print the version');
  root.configureOutput({
    writeOut: (text) => {
      pages.out += text;
    },
    writeErr: (text) => {
      pages.err += text;
    },
    outputError: () => undefined,
  });
  root.helpInformation = () => rootHelp(root);
  const client = new ClientCommands(root, shell);
  client.beginSection('Make runs');
  addLaunchCommands(client);
  addHttpCommand(client);
  addBatchCommand(client);
  addRerunCommand(client);
  client.beginSection('Look at runs, and end them');
  addRunsCommands(client);
  addLogsCommand(client);
  addWhyCommand(client);
  addCancelCommand(client);
  addRetentionCommand(client);
  client.beginSection('Who executes them');
  addWorkersCommands(client);
  addQueuesCommands(client);
  addTopCommand(client);
  client.beginSection('A server, and its records');
  client.addServer('serve', 'API and worker', servers.serve);
  client.addServer('worker', 'only execute runs', servers.worker);
  client.addServer('migrate', 'update the schema', servers.migrate);
  addDoctorCommand(client, servers.diagnose);
  addVersionCommand(client);
  addAuditCommands(client);
  addAuditBundleCommand(client);
  addAuditKeyCommands(client);
  addAuditReportCommand(client);
  addVerifyCommand(client);
  client.beginSection('This command line');
  addConfigCommands(client);
  addCompletionCommand(client, root);
  client.complete();
  return { root, client };
}

/** Help and version: asked for, or instead of a command that is missing. */
async function showPages(shell: Shell, pages: { out: string; err: string }, error: CommanderError): Promise<number> {
  try {
    if (pages.out !== '') await shell.stdout.write(pages.out);
    if (pages.err !== '') await shell.stderr.write(pages.err);
  } catch (failure) {
    if (failure instanceof Failure) return failure.exitCode;
    throw failure;
  }
  return error.exitCode === 0 ? EXIT_CODES.done.code : EXIT_CODES.usage.code;
}

async function report(failure: Failure, isJson: boolean, { env, stderr }: Shell): Promise<number> {
  // Who closed our output wants to hear no more.
  if (failure.exit === 'readerGone') return failure.exitCode;
  // The terminal has shown ^C on this line.
  const begin = failure.exit === 'interrupted' && stderr.isTerminal ? '\n' : '';
  const { program } = clientSettings(env);
  const text = isJson ? failureDocument(failure, program) : `${begin}${failureText(failure, program)}`;
  // Where standard error is gone, the exit code says it.
  await stderr.write(text).catch(() => undefined);
  return failure.exitCode;
}
