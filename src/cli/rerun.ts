/** `rerun`: new runs of what has ended, by ids or by a filter. */
import { addBulkOptions, type BulkOptions, filterBesides, rerunAll } from './bulk.js';
import { addQuietOption, type ClientCommands } from './commands.js';
import { forEach } from './each.js';
import { Failure, wrongUsage } from './failure.js';
import { leftBehind } from './follow.js';
import { idIn } from './ids.js';
import { launch } from './launch.js';
import { addWaitOptions, type ReplayOptions } from './launch-options.js';
import type { Session } from './session.js';
import type { WaitOptions } from './wait.js';

type RerunOptions = BulkOptions & ReplayOptions & WaitOptions;

export function addRerunCommand(commands: ClientCommands): void {
  const command = commands
    .add('rerun', 'repeat ended runs', (session, args, options: RerunOptions) => {
      const filter = filterBesides(args, options, 'rerun');
      const ids = args.map((id) => idIn([id]));
      const [only = ''] = ids;
      if (ids.length === 1) return rerunOne(session, only, options);
      const { wait, waitLimit, idempotencyKey } = options;
      if (wait || waitLimit !== undefined) throw wrongUsage('--wait and --wait-limit are for one run');
      if (filter === undefined && idempotencyKey !== undefined) {
        throw wrongUsage('--idempotency-key is for one id, or for filters; of several ids each is a rerun of its own');
      }
      return filter === undefined ? rerunThese(session, ids) : rerunAll(session, filter, options);
    })
    .usage('ID... | --state STATE … [options]')
    .argument('[id...]', 'the ended runs; for each a new one like it is made');
  addQuietOption(addWaitOptions(addBulkOptions(command))).addHelpText(
    'after',
    'Examples:\n  capstan rerun --wait RUN_ID\n  capstan rerun --state interrupted --after 2h --dry-run',
  );
}

function rerunOne(session: Session, id: string, options: ReplayOptions & WaitOptions): Promise<number> {
  return launch(session, options, (key) => session.api.rerun(id, key).catch((error) => refusedRerun(id, error)));
}

/** Prints the ids of the new runs. */
function rerunThese(session: Session, ids: readonly string[]): Promise<number> {
  return forEach(session, ids, async (id) => {
    const { document, value } = await session.api.rerun(id, `cli-${crypto.randomUUID()}`);
    return { document, line: value.id };
  });
}

/** The server names its own call where a cancel would help; here it is a command. */
function refusedRerun(id: string, error: unknown): never {
  if (error instanceof Failure && error.problem.detail?.includes('/cancel)')) {
    const [, cancel] = leftBehind(id);
    throw error.of(id, [cancel]);
  }
  throw error;
}
