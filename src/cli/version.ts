/** `version`: what this client is, and what answers it. */
import { productVersion } from '../platform/http/product.js';
import type { ClientCommands } from './commands.js';
import { fieldsOf, optional, textOf } from './decode.js';
import { EXIT_CODES } from './exit-codes.js';
import type { Session } from './session.js';

export function addVersionCommand(commands: ClientCommands): void {
  commands
    .add('version', "the server's version", showVersion)
    .addHelpText('after', '\nExample:\n  capstan version --json | jq -r .server.version');
}

async function showVersion({ api, isJson, printer }: Session): Promise<number> {
  const { document } = await api.version();
  const client = productVersion();
  if (isJson) await printer.document({ client: { version: client }, server: document });
  else {
    const server = fieldsOf(document, 'the version');
    await printer.facts([
      ['client', client],
      ['server', textOf(server, 'version')],
      ['schema', optional(server, 'schema', textOf)],
      ['replica', optional(fieldsOf(server.replica ?? {}, 'the replica'), 'name', textOf)],
    ]);
  }
  return EXIT_CODES.done.code;
}
