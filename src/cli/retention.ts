/** `retention`: how long ended runs are kept, and another time for that. */
import { LONGEST_RETENTION, parseRetention, SHORTEST_RETENTION } from '../kernel/retention.js';
import type { ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { wrongUsage } from './failure.js';
import type { Session } from './session.js';

const DEFAULT = 'default';

export function addRetentionCommand(commands: ClientCommands): void {
  commands
    .add('retention', 'how long runs stay', (session, [said]) => retention(session, said))
    .argument('[duration]', `from now on so long, ${SHORTEST_RETENTION} to ${LONGEST_RETENTION}; or ${DEFAULT}`)
    .addHelpText(
      'after',
      '\nWhat ended longer ago is removed within minutes, with its events and output,\n' +
        'and never comes back. What the audit chain says of it stays.\n\n' +
        'Examples:\n  capstan retention\n  capstan retention 14d',
    );
}

async function retention({ api, isJson, printer }: Session, said: string | undefined): Promise<number> {
  const { document, value } = said === undefined ? await api.retention() : await api.putRetention(saidOf(said));
  const text = `ended runs are kept for ${value.retention}${value.isDefault ? ', by default' : ''}`;
  await (isJson ? printer.document(document) : printer.line(text));
  return EXIT_CODES.done.code;
}

/** As the API takes it. */
function saidOf(text: string): string | null {
  if (text === DEFAULT) return null;
  if (parseRetention(text) !== undefined) return text;
  throw wrongUsage(`expected a duration of ${SHORTEST_RETENTION} to ${LONGEST_RETENTION}, such as 14d, or ${DEFAULT}`);
}
