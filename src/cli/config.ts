/** `config show`: this machine's settings. */
import { effectiveSettings, readConfig } from '../platform/config/config.js';
import type { ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import type { Column } from './print.js';
import type { Session } from './session.js';

export function addConfigCommands(commands: ClientCommands): void {
  commands.add('config show', 'settings in effect', showConfig);
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
