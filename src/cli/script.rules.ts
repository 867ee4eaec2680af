/** Which interpreter a script is for: its `#!` line says so, or the ending of its name, or it is bash's. Pure. */

export const INTERPRETERS = ['bash', 'sh', 'python3', 'node'] as const;

/** One that every server knows, or the command line that the script's path is put behind. */
export type Interpreter = (typeof INTERPRETERS)[number] | readonly string[];

const BY_ENDING: Readonly<Record<string, Interpreter>> = {
  sh: 'bash',
  bash: 'bash',
  py: 'python3',
  js: 'node',
  mjs: 'node',
  cjs: 'node',
};

const BY_PROGRAM: Readonly<Record<string, Interpreter>> = {
  bash: 'bash',
  sh: 'sh',
  python: 'python3',
  python3: 'python3',
  node: 'node',
};

export function interpreterOf(content: string, fileName: string): Interpreter {
  const line = /^#![ \t]*([^\r\n]*)/.exec(content)?.[1]?.trim();
  if (line) return interpreterIn(line);
  const ending = /\.([a-z0-9]+)$/i.exec(fileName)?.[1]?.toLowerCase();
  return (ending && BY_ENDING[ending]) || 'bash';
}

/** As the kernel reads it: a program and at most one argument. One that only names a program we know is known by name. */
function interpreterIn(line: string): Interpreter {
  const [, program = '', argument = ''] = /^(\S+)\s*(.*)$/.exec(line) ?? [];
  const base = (path: string) => path.slice(path.lastIndexOf('/') + 1);
  const named = base(program) === 'env' ? argument : argument === '' ? base(program) : '';
  return BY_PROGRAM[named] ?? (argument === '' ? [program] : [program, argument]);
}
