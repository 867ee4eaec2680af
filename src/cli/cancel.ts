/** `cancel`: the end of runs before their time, by their ids or by a filter. */
import { addBulkOptions, type BulkOptions, cancelAll, filterBesides } from './bulk.js';
import { addQuietOption, type ClientCommands } from './commands.js';
import { forEach } from './each.js';
import { EXIT_CODES } from './exit-codes.js';
import { idIn } from './ids.js';
import type { Session } from './session.js';
import { cancelLine } from './wait.js';

export function addCancelCommand(commands: ClientCommands): void {
  const command = commands
    .add('cancel', 'end runs early', (session, args, options: BulkOptions) => {
      const filter = filterBesides(args, options, 'cancel');
      const ids = args.map((id) => idIn([id]));
      return filter === undefined ? cancelThese(session, ids) : cancelAll(session, filter, options);
    })
    .usage('ID... | --state STATE … [options]')
    .argument('[id...]', 'the runs');
  addQuietOption(addBulkOptions(command)).addHelpText(
    'after',
    'Examples:\n  capstan cancel RUN_ID\n  capstan cancel --state pending --queue reports --dry-run',
  );
}

async function cancelThese(session: Session, ids: readonly string[]): Promise<number> {
  const { api, isJson, isQuiet, printer } = session;
  const [only = ''] = ids;
  if (ids.length > 1) {
    return forEach(session, ids, async (id) => {
      const { document, value } = await api.cancel(id);
      return { document, line: isQuiet ? value.id : cancelLine(value) };
    });
  }
  const { document, value } = await api.cancel(only);
  if (isJson) await printer.document(document);
  else await printer.line(isQuiet ? value.id : cancelLine(value));
  return EXIT_CODES.done.code;
}
