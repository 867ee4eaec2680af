/** `workers`: who executes runs; `workers drain` and `undrain`: out of service, and back. */
import type { Answer } from './api.js';
import { addListOperand, addQuietOption, type ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure, interrupted, wrongUsage } from './failure.js';
import { isWorkerId } from './ids.js';
import type { Column, Field } from './print.js';
import type { Worker } from './resources.js';
import type { Session } from './session.js';

const LOOK_AGAIN_MS = 1_000;

interface DrainOptions {
  readonly wait?: boolean;
}

export function addWorkersCommands(commands: ClientCommands): void {
  const workers = commands
    .add('workers', 'list, drain, undrain', listWorkers)
    .description('List who executes runs.')
    .addHelpText('after', "\nExample:\n  capstan workers --json | jq -r '.items[] | select(.connected) | .name'");
  const drained = commands
    .add('workers drain', 'let a worker take no runs', (session, [worker = ''], { wait = false }: DrainOptions) =>
      drain(session, worker, wait),
    )
    .argument('<worker>', 'its id, or its name when one worker alone has it')
    .option('--wait', 'until nothing runs there any more')
    .addHelpText(
      'after',
      '\nWhat it runs goes on to its end. It stays out of service until it is undrained,\n' +
        'or until its process is started again: that is a new worker.\n\n' +
        'Example:\n  capstan workers drain r1 --wait && ssh r1 sudo systemctl restart capstan',
    );
  const undrained = commands
    .add('workers undrain', 'let it take runs again', (session, [worker = '']) => undrain(session, worker))
    .argument('<worker>', 'its id, or its name when one worker alone has it');
  addListOperand(workers, '[list|COMMAND] [options]');
  for (const command of [workers, drained, undrained]) addQuietOption(command);
}

const WORKER_COLUMNS: readonly Column[] = [
  { title: 'NAME' },
  { title: 'STATE' },
  { title: 'CONNECTED' },
  { title: 'RUNNING' },
  { title: 'SLOTS' },
  { title: 'LAST SEEN' },
  { title: 'ID' },
  { title: 'VERSION' },
  { title: 'QUEUES', isFlexible: true },
];

function rowOf(worker: Worker): Field[] {
  return [
    worker.name,
    { state: worker.state },
    { state: worker.connected ? 'yes' : 'no' },
    worker.running,
    worker.slots,
    { at: worker.seenAt },
    worker.id,
    worker.version,
    worker.queues.join(','),
  ];
}

async function listWorkers(session: Session): Promise<number> {
  const items = await session.api.workers();
  if (session.isJson) await session.printer.document({ items: items.map(({ document }) => document), next: null });
  else if (session.isQuiet) await session.printer.lines(items.map(({ value }) => value.id));
  else {
    await session.printer.table(
      WORKER_COLUMNS,
      items.map(({ value }) => rowOf(value)),
    );
  }
  if (items.length === 0) await session.note('nobody executes runs');
  return EXIT_CODES.done.code;
}

async function drain(session: Session, text: string, isAwaited: boolean): Promise<number> {
  const id = await workerIdOf(session, text);
  const drained = await session.api.drain(id);
  return report(session, isAwaited ? await awaitIdle(session, drained) : drained);
}

async function undrain(session: Session, text: string): Promise<number> {
  return report(session, await session.api.undrain(await workerIdOf(session, text)));
}

async function report(session: Session, { document, value }: Answer<Worker>): Promise<number> {
  const { isJson, isQuiet, printer } = session;
  await (isJson ? printer.document(document) : printer.line(isQuiet ? value.id : standing(value)));
  return EXIT_CODES.done.code;
}

/** `r1 (wrk_…) draining: 2 runs go on`. */
function standing(worker: Worker): string {
  return `${called(worker)} ${worker.state}: ${left(worker)}`;
}

function called({ name, id }: Worker): string {
  return `${name} (${id})`;
}

function left({ running, state }: Worker): string {
  const runs = running === 1 ? '1 run' : `${running} runs`;
  if (state === 'live') return `takes runs; ${runs} there now`;
  if (running === 0) return 'nothing runs there';
  return `${runs} ${running === 1 ? 'goes' : 'go'} on`;
}

/** Looks until nothing runs there, and tells each change. Fails when the worker is put back into service meanwhile. */
async function awaitIdle(session: Session, drained: Answer<Worker>): Promise<Answer<Worker>> {
  const { api, shell } = session;
  const { id } = drained.value;
  session.leave = () =>
    Promise.reject(
      interrupted(
        `${called(drained.value)} goes on draining`,
        'look: capstan workers',
        `undo: capstan workers undrain ${id}`,
      ),
    );
  let told: number | undefined;
  for (let now = drained; ; now = await api.worker(id)) {
    const { running, state } = now.value;
    if (state === 'live') {
      const detail = `${called(now.value)} was put back into service meanwhile`;
      throw new Failure('unable', { title: 'drain', detail, code: 'worker_undrained' }, [
        `again: capstan workers drain ${id} --wait`,
      ]);
    }
    if (state === 'lost') {
      const detail = `${called(now.value)} was lost meanwhile: what ran there reads interrupted`;
      throw new Failure('unable', { title: 'drain', detail, code: 'worker_lost' }, [
        'look: capstan runs --state interrupted',
      ]);
    }
    if (running === 0) return now;
    if (running !== told) await session.note(standing(now.value));
    told = running;
    await shell.timing.delay(LOOK_AGAIN_MS);
  }
}

/** A name stands for the one worker that lives under it; each start of a process is a worker of its own. */
async function workerIdOf(session: Session, text: string): Promise<string> {
  if (isWorkerId(text)) return text;
  if (text === '') throw wrongUsage('expected the id or the name of a worker', 'look: capstan workers');
  const named = (await session.api.workers()).map(({ value }) => value).filter(({ name }) => name === text);
  const living = named.filter(({ state }) => state === 'live' || state === 'draining');
  const [one, ...others] = living.length > 1 ? present(living) : living;
  if (one && others.length === 0) return one.id;
  if (living.length > 0) {
    const detail = `${living.length} workers are called ${text}: name one by its id`;
    const hints = living.map(
      ({ id, state, running, seenAt }) => `${id} (${state}, ${running} running, last seen ${seenAt ?? 'never'})`,
    );
    throw new Failure('unable', { title: 'worker', detail, code: 'worker_ambiguous' }, hints);
  }
  const detail = named.length > 0 ? `worker ${text} has ended` : `no worker is called ${text}`;
  throw new Failure('unable', { title: 'worker', detail, code: 'worker_unknown' }, ['look: capstan workers']);
}

/**
 * Those of one name that still renew. A process that was killed and started again is there twice until the lease of its
 * former life is over; but whoever lives renews three times in a lease time, so compared with the one seen last, one that
 * was not seen for a third of it has gone.
 */
function present(living: readonly Worker[]): Worker[] {
  const seenMs = ({ seenAt }: Worker) => Date.parse(seenAt ?? '');
  const lastMs = Math.max(...living.map(seenMs));
  return living.filter((worker) => {
    const ttlMs = Date.parse(worker.leaseUntil ?? '') - seenMs(worker);
    return worker.connected && lastMs - seenMs(worker) <= ttlMs / 3;
  });
}
