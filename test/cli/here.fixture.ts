/** A command line in this process, for what the process itself has no part in: its streams are memory. */
import type { Diagnose } from '../../src/cli/doctor.js';
import { runCommandLine } from '../../src/cli/program.js';
import type { Shell } from '../../src/cli/shell.js';
import { systemTiming } from '../../src/platform/time.js';

/** `diagnose` is what `doctor` finds. */
export async function capstanHere(args: readonly string[], shell: Partial<Shell>, diagnose?: Diagnose) {
  const [out, err]: [string[], string[]] = [[], []];
  const outlet = (to: string[]) => ({
    isTerminal: false,
    columns: undefined,
    get isLineOpen() {
      return /[^\n]$/.test(to.join(''));
    },
    write: async (data: string | Uint8Array) => void to.push(String(data)),
  });
  const whole: Shell = {
    env: {},
    stdout: outlet(out),
    stderr: outlet(err),
    isInteractive: false,
    timing: systemTiming,
    readStdin: async () => Buffer.from(''),
    status: { show: async () => undefined, clear: async () => undefined },
    ask: async () => '',
    fullScreen: () => undefined,
    interrupted: () => new Promise<void>(() => undefined),
    ...shell,
  };
  const never = () => Promise.reject(new Error('no server command was given'));
  const servers = { serve: never, worker: never, migrate: never, diagnose: diagnose ?? never };
  const code = await runCommandLine(args, { shell: whole, version: '1.2.3', servers });
  return { code, stdout: out.join(''), stderr: err.join('') };
}
