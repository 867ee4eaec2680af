/** `audit verify` and `config show`: the state of the installation and of this machine's settings. */
import { effectiveSettings, readConfig } from '../platform/config/config.js';
import type { ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import type { Column, Field } from './print.js';
import type { ChainVerification } from './resources.js';
import type { Session } from './session.js';

export function addInstallationCommands(commands: ClientCommands): void {
  commands.add('audit verify', 'check the audit chain', verifyAudit);
  commands.add('config show', 'settings in effect', showConfig);
}

async function verifyAudit({ api, isJson, printer }: Session): Promise<number> {
  const { document, value } = await api.verifyAudit();
  if (isJson) await printer.document(document);
  else await printer.facts(factsOf(value));
  return value.ok ? EXIT_CODES.done.code : EXIT_CODES.runFailed.code;
}

function factsOf({ ok, chain, entries, head, brokenAt, check, tookMs }: ChainVerification): [string, Field][] {
  return [
    ['chain', chain],
    ['verdict', { state: ok ? 'ok' : 'broken' }],
    ['broken at', brokenAt],
    ['failed check', check],
    ['entries that hold', entries],
    ['head', `${head.seq}:${head.link}`],
    ['took', `${tookMs}ms`],
  ];
}

const SETTING_COLUMNS: readonly Column[] = [{ title: 'SETTING' }, { title: 'VALUE' }, { title: 'FROM' }];

/** Asks no server. What a server would refuse at its start is told too, and makes the exit code. */
async function showConfig(session: Session): Promise<number> {
  const { shell, isJson, printer } = session;
  const items = effectiveSettings(shell.env);
  const reading = readConfig(shell.env);
  const faults = reading.ok ? [] : reading.faults;
  if (isJson) await printer.document({ items, faults });
  else {
    await printer.table(
      SETTING_COLUMNS,
      items.map(({ name, value, source }) => [name, value, source]),
    );
  }
  for (const { message } of faults) await session.note(message);
  return faults.length > 0 ? EXIT_CODES.usage.code : EXIT_CODES.done.code;
}
