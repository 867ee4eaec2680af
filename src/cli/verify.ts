/** `verify`: whether bundles hold, asking nobody. What it checks is in the verifier's own folder. */
import { type ClientCommands, once } from './commands.js';
import { wrongUsage } from './failure.js';
import type { Session } from './session.js';

interface VerifyOptions {
  readonly fingerprint?: string;
  readonly evidence?: string;
  readonly requireEvidence?: boolean;
}

export function addVerifyCommand(commands: ClientCommands): void {
  commands
    .addLocal('verify', 'check bundles offline', verify)
    .argument('<file...>', 'bundles of one chain, in any order; - is standard input')
    .option(
      '--fingerprint <fp>',
      'the key that must have signed, sha256: and 64 hexadecimal digits',
      once('--fingerprint'),
    )
    .option(
      '--evidence <dir>',
      'compare the artifacts in this folder with those that the entries name',
      once('--evidence'),
    )
    .option('--require-evidence', 'not verified unless every artifact is there');
}

/** 0 verified, 1 not. */
async function verify(session: Session, files: readonly string[], options: VerifyOptions): Promise<number> {
  const { shell, isJson, printer } = session;
  const { fingerprint, evidence, requireEvidence } = options;
  // 18 ms to load, which only this command pays.
  const { runVerify, UsageError } = await import('../verifier/command.js');
  try {
    const command = { files, fingerprint, evidence, requireEvidence };
    const { exitCode, text, document } = await runVerify(command, (limit) => shell.readStdin(limit));
    await (isJson ? printer.document(document) : shell.stdout.write(text));
    return exitCode;
  } catch (error) {
    throw error instanceof UsageError ? wrongUsage(error.message, 'see: capstan verify --help') : error;
  }
}
