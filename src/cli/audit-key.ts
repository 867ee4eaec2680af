/** `audit keygen`, `key`, `rotate-key`: the key that signs bundles. Invariant: a seed goes to no server. */
import { newSeed, SigningKey } from '../kernel/signing-key.js';
import { signingSeed } from '../platform/config/parsers.js';
import type { Answer } from './api.js';
import type { ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { wrongUsage } from './failure.js';
import type { Field } from './print.js';
import type { SigningKeys } from './resources.js';
import type { Session } from './session.js';
import { textIn } from './text-file.js';

interface RotateOptions {
  readonly keyFile?: string;
}

export function addAuditKeyCommands(commands: ClientCommands): void {
  commands.add('audit key', 'the key that signs, and those before', showKey);
  commands
    .addLocal('audit keygen', 'make a signing key', generateKey)
    .addHelpText(
      'after',
      '\nPrints the key on standard output, the fingerprint on standard error.\n\n' +
        'Example:\n  (umask 077; capstan audit keygen > audit-key)\n  CAPSTAN_AUDIT_KEY_FILE=audit-key capstan serve',
    );
  commands
    .add('audit rotate-key', 'make another key the one that signs', (session, _args, options: RotateOptions) =>
      rotateKey(session, options),
    )
    .option('--key-file <file>', 'the new key as `audit keygen` printed it; - for standard input')
    .addHelpText(
      'after',
      '\nSends the public half alone. From then on replicas start with the new key;\n' +
        'those with another one go on, and sign nothing until started with the new one.\n\n' +
        'Example:\n  (umask 077; capstan audit keygen > new-key)\n  capstan audit rotate-key --key-file new-key',
    );
}

async function generateKey({ shell, isJson, printer }: Session): Promise<number> {
  const seed = newSeed();
  const { fingerprint, publicKey } = SigningKey.of(seed);
  if (isJson) await printer.document({ key: seed.toString('base64'), fingerprint, publicKey });
  else {
    await shell.stdout.write(`${seed.toString('base64')}\n`);
    await shell.stderr.write(`fingerprint ${fingerprint}\n`);
  }
  return EXIT_CODES.done.code;
}

async function showKey(session: Session): Promise<number> {
  const answer = await session.api.auditKey();
  await print(session, answer);
  if (answer.value.current === null) {
    await session.note('no signing key was recorded yet', 'make one: capstan audit keygen');
  }
  return EXIT_CODES.done.code;
}

async function rotateKey(session: Session, { keyFile }: RotateOptions): Promise<number> {
  if (keyFile === undefined) {
    throw wrongUsage('--key-file FILE is missing: the new key', 'make one: capstan audit keygen');
  }
  const seed = signingSeed.parse((await textIn(session.shell, keyFile)).replace(/\r?\n$/, ''));
  if (seed === undefined) {
    const place = keyFile === '-' ? 'standard input' : keyFile;
    throw wrongUsage(`${place} holds no signing key: expected ${signingSeed.expects}`);
  }
  const { fingerprint, publicKey } = SigningKey.of(seed);
  await print(session, await session.api.rotateAuditKey(publicKey));
  await session.note(
    `${fingerprint} signs from now on: set it as CAPSTAN_AUDIT_KEY on every replica and start each again`,
    'a replica that still has another key goes on, and answers bundles 503 until then',
    'tell the new fingerprint to whoever checks bundles; the former one stays valid for those it signed',
  );
  return EXIT_CODES.done.code;
}

async function print({ isJson, printer }: Session, { document, value }: Answer<SigningKeys>): Promise<void> {
  await (isJson ? printer.document(document) : printer.facts(factsOf(value)));
}

function factsOf({ current, past, signs }: SigningKeys): [string, Field][] {
  return [
    ['fingerprint', current?.fingerprint ?? null],
    ['public key', current?.publicKey ?? null],
    ['recorded', { at: current?.recordedAt ?? null }],
    ['receipt', current?.receipt ?? null],
    ['this replica signs', { state: signs ? 'yes' : 'no' }],
    ...past.map(({ fingerprint }): [string, Field] => ['before', fingerprint]),
  ];
}
