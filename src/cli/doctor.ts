/** `doctor`: whether an installation is healthy, asked of its database itself. What is looked at is handed in. */
import type { Check, Diagnosis, Fault, OnProgress } from '../kernel/diagnosis.js';
import type { Environment } from '../platform/config/setting.js';
import type { ClientCommands } from './commands.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure } from './failure.js';
import type { Printer } from './print.js';
import type { Session } from './session.js';

export type Diagnose = (
  env: Environment,
  options: { readonly isAll: boolean; readonly onProgress: OnProgress },
) => Promise<Diagnosis>;

interface DoctorOptions {
  readonly all?: boolean;
}

export function addDoctorCommand(commands: ClientCommands, diagnose: Diagnose): void {
  commands
    .addLocal<DoctorOptions>('doctor', 'check the installation', (session, _, options) =>
      doctor(session, diagnose, options.all === true),
    )
    .description(
      'Check the installation: its database, its replicas, the laws of runs, the audit chains. Changes nothing.',
    )
    .option('--all', 'every run and every entry, however long that takes');
}

/** 0 when all is well, 1 with one line a fault. */
async function doctor(session: Session, diagnose: Diagnose, isAll: boolean): Promise<number> {
  const { shell, isJson, printer } = session;
  const diagnosis = await diagnose(shell.env, {
    isAll,
    onProgress: (line) => void (isAll && session.progress(line)),
  });
  if (diagnosis.kind === 'settings') {
    throw new Failure('usage', { title: 'settings', detail: diagnosis.faults.join('; '), code: 'settings' });
  }
  if (diagnosis.kind === 'unreachable') {
    throw new Failure('unable', { title: 'database', detail: diagnosis.why, code: 'unavailable' });
  }
  const { checks } = diagnosis;
  const ok = checks.every(({ faults }) => faults.length === 0);
  if (isJson) await printer.document({ ok, checks });
  else for (const check of checks) await print(printer, check);
  return ok ? EXIT_CODES.done.code : EXIT_CODES.runFailed.code;
}

async function print(printer: Printer, { name, summary, faults, notes }: Check): Promise<void> {
  if (faults.length === 0 && summary !== '') await printer.verdict('ok', name, summary);
  for (const line of linesOf(faults)) await printer.verdict('fault', name, line);
  for (const note of notes) await printer.verdict('note', name, note);
}

/** Of each law: so many faults, with what to do beside the first alone. */
const SHOWN_OF_A_LAW = 3;

function linesOf(faults: readonly Fault[]): string[] {
  const laws = new Map<Fault | string, Fault[]>();
  for (const fault of faults) {
    const same = laws.get(fault.law ?? fault);
    if (same) same.push(fault);
    else laws.set(fault.law ?? fault, [fault]);
  }
  return [...laws].flatMap(([law, all]) => {
    const more = all.length - SHOWN_OF_A_LAW;
    return [
      ...all.slice(0, SHOWN_OF_A_LAW).map(({ what, remedy }, i) => (i === 0 ? `${what}; ${remedy}` : what)),
      ...(more > 0 ? [`… and ${more} more of the law ${law}; --json tells each`] : []),
    ];
  });
}
