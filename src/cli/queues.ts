/** `queues`: what waits where; `queues pause` and `resume`: nothing is taken out of one, and again. */
import type { Answer } from './api.js';
import { addListOperand, addQuietOption, type ClientCommands, once } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure } from './failure.js';
import { queueIn } from './ids.js';
import type { Column, Field } from './print.js';
import type { Queue } from './resources.js';
import type { Session } from './session.js';

interface PauseOptions {
  readonly reason?: string;
}

export function addQueuesCommands(commands: ClientCommands): void {
  const queues = commands
    .add('queues', 'list, pause, resume', listQueues)
    .description('List what waits in which queue.')
    .addHelpText('after', "\nExample:\n  capstan queues --json | jq -r '.items[] | select(.paused) | .name'");
  const paused = commands
    .add('queues pause', 'take no runs out of a queue', (session, [queue = ''], { reason = '' }: PauseOptions) =>
      pause(session, queue, reason),
    )
    .argument('<queue>', 'its name')
    .requiredOption('--reason <text>', 'why, for whoever wonders later, and for the record', once('--reason'))
    .addHelpText(
      'after',
      '\nIts runs wait, others are submitted to it as ever, and what runs there goes on.\n' +
        'It stays paused, whatever is restarted, until it is resumed.\n\n' +
        "Example:\n  capstan queues pause deploys --reason 'freeze until Monday'",
    );
  const resumed = commands
    .add('queues resume', 'take runs out of it again', (session, [queue = ''], { reason }: PauseOptions) =>
      resume(session, queue, reason ?? null),
    )
    .argument('<queue>', 'its name')
    .option('--reason <text>', 'why, for the record', once('--reason'));
  addListOperand(queues, '[list|COMMAND] [options]');
  for (const command of [queues, paused, resumed]) addQuietOption(command);
}

const QUEUE_COLUMNS: readonly Column[] = [
  { title: 'QUEUE' },
  { title: 'STATE' },
  { title: 'WAITING' },
  { title: 'OLDEST' },
  { title: 'RUNNING' },
  { title: 'WORKERS' },
  { title: 'PAUSED BY' },
  { title: 'REASON', isFlexible: true },
];

function rowOf(queue: Queue): Field[] {
  const { name, paused, oldestPendingAt, running, workers } = queue;
  return [
    name,
    { state: paused ? 'paused' : 'open' },
    waiting(queue),
    { at: oldestPendingAt },
    running,
    workers,
    paused?.byName ?? null,
    paused?.reason ?? null,
  ];
}

/** `~12000` when it was estimated. */
function waiting({ depth, depthIsEstimate }: Queue): string | null {
  return depth === null ? null : `${depthIsEstimate ? '~' : ''}${depth}`;
}

async function listQueues(session: Session): Promise<number> {
  const items = await session.api.queues();
  if (session.isJson) await session.printer.document({ items: items.map(({ document }) => document), next: null });
  else if (session.isQuiet) await session.printer.lines(items.map(({ value }) => value.name));
  else {
    await session.printer.table(
      QUEUE_COLUMNS,
      items.map(({ value }) => rowOf(value)),
    );
  }
  if (items.length === 0) await session.note('nothing waits, and nobody executes runs');
  return EXIT_CODES.done.code;
}

async function pause(session: Session, name: string, reason: string): Promise<number> {
  const queue = await session.api.pauseQueue(queueIn(name), reason);
  const code = await report(session, queue);
  const { paused } = queue.value;
  if (paused && paused.reason !== reason) {
    await session.note(`it was paused before, by ${paused.byName}: ${paused.reason}; that reason stands`);
  }
  await noteUnused(session, queue.value);
  return code;
}

async function resume(session: Session, name: string, reason: string | null): Promise<number> {
  return report(session, await session.api.resumeQueue(queueIn(name), reason));
}

/** A queue comes into being by its name being used: also by one that was mistyped. */
async function noteUnused(session: Session, { name, depth, running }: Queue): Promise<void> {
  const isIdle = depth === 0 && running === 0 && name !== 'default';
  if (!isIdle || session.isJson || session.isQuiet) return;
  try {
    const workers = await session.api.workers();
    if (workers.some(({ value }) => value.queues.includes(name))) return;
  } catch (error) {
    // It is paused, whether or not this can be told.
    if (error instanceof Failure) return;
    throw error;
  }
  await session.note(
    `${name}: no run waits in it and no worker serves it by this name`,
    'queues there are: capstan queues',
    `undo: capstan queues resume ${name}`,
  );
}

async function report(session: Session, { document, value }: Answer<Queue>): Promise<number> {
  const { isJson, isQuiet, printer } = session;
  await (isJson ? printer.document(document) : printer.line(isQuiet ? value.name : standing(value)));
  return EXIT_CODES.done.code;
}

/** `deploys paused: 3 runs wait, 1 goes on`. */
function standing(queue: Queue): string {
  const { name, paused, running, workers } = queue;
  const waits = `${waiting(queue)} ${queue.depth === 1 ? 'run waits' : 'runs wait'}`;
  if (paused) return `${name} paused: ${waits}, ${running} ${running === 1 ? 'goes' : 'go'} on`;
  return `${name} open: ${waits}, ${workers} ${workers === 1 ? 'worker takes' : 'workers take'} them`;
}
