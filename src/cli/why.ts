/** `why`: what stands between a run and a worker, and what would change it. */
import type { ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { idIn } from './ids.js';
import type { Why } from './resources.js';
import type { Session } from './session.js';
import { printable } from './text.js';

export function addWhyCommand(commands: ClientCommands): void {
  commands
    .add('why', 'why it waits', (session, args) => why(session, idIn(args)))
    .argument('<id>', 'the run')
    .addHelpText(
      'after',
      '\nEach reason, and below it what would change it. The exit code is 0 all the same.\n\n' +
        "Example:\n  capstan why RUN_ID --json | jq -r '.reasons[].code'",
    );
}

async function why(session: Session, id: string): Promise<number> {
  const { api, isJson, printer, program } = session;
  const { document, value } = await api.why(id);
  if (isJson) await printer.document(document);
  else for (const line of linesOf(value, program)) await printer.line(printable(line));
  return EXIT_CODES.done.code;
}

function linesOf({ id, state, queue, reasons }: Why, program: string): string[] {
  if (reasons.length === 0) return [`${id} is ${state}; a worker takes it with its next claim (queue ${queue})`];
  const lines = reasons.flatMap(({ detail, remedy }) => [detail, `  ${inCommands(remedy, program)}`]);
  return [`${id} is ${state} (queue ${queue})`, ...lines];
}

/** What the server calls by its request, and the command that sends it. */
const COMMANDS: readonly (readonly [request: RegExp, command: string])[] = [
  [/GET \/v1\/runs\/(\S+)\/stream/g, 'logs -f'],
  [/POST \/v1\/runs\/(\S+)\/rerun/g, 'rerun'],
  [/POST \/v1\/runs\/(\S+)\/cancel/g, 'cancel'],
  [/POST \/v1\/workers\/(\S+)\/undrain/g, 'workers undrain'],
  [/PUT \/v1\/queues\/(\S+) \{"paused": false\}/g, 'queues resume'],
];

function inCommands(remedy: string, program: string): string {
  return COMMANDS.reduce(
    (text, [request, command]) => text.replace(request, (_, name: string) => `${program} ${command} ${name}`),
    remedy,
  );
}
