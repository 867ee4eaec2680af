/** The last act: what is claimed, line by line, and the record of it all, checked by the programs that anybody has. */
/** What a person would type; `capstan …` in the installation's words, and the program of the build that it is. */
const commandsOf = (fingerprint) => [
  { shown: 'capstan doctor', program: 'main.js', args: ['doctor'], says: 'every law holds in the database' },
  {
    shown: 'capstan audit verify',
    program: 'main.js',
    args: ['audit', 'verify'],
    says: 'the record of the runs is unbroken',
  },
  {
    shown: 'capstan audit verify --installation',
    program: 'main.js',
    args: ['audit', 'verify', '--installation'],
    says: 'so is that of the replicas: who was lost, who came back',
  },
  {
    shown: 'capstan audit bundle -o evidence.json',
    program: 'main.js',
    args: ['audit', 'bundle', '-o', 'evidence.json'],
    says: 'the same as a signed file, for an auditor',
  },
  {
    shown: `node capstan-verify.mjs evidence.json --fingerprint ${fingerprint.slice(0, 15)}…`,
    program: 'capstan-verify.mjs',
    args: ['evidence.json', '--fingerprint', fingerprint],
    says: 'checked by a program that shares no code with what made it, asking nobody',
  },
];

/** Shows every claim with what was found. `ok` when all of them hold and all commands end well. */
export async function prove(fleet, screen, claims) {
  const { paint } = screen;
  const mark = (holds) => (holds ? paint.green('✓') : paint.red('✗'));
  screen.title('6. What that shows');
  for (const { claim, holds, found } of claims)
    screen.tell(`${claim} ${paint.dim(`(${found})`)}`, `   ${mark(holds)} `);
  screen.say('');
  const commands = [];
  for (const { shown, program, args, says } of commandsOf(fleet.fingerprint)) {
    const { code, stdout, stderr } = await fleet.run(program, args);
    commands.push({ command: shown, code });
    screen.tell(`${paint.yellow(`$ ${shown}`)}   ${paint.dim(`# ${says}`)}`, `   ${mark(code === 0)} `);
    if (code !== 0)
      screen.say(
        ...`${stdout}${stderr}`
          .trim()
          .split('\n')
          .map((line) => `       ${line}`),
      );
  }
  return { ok: claims.every(({ holds }) => holds) && commands.every(({ code }) => code === 0), claims, commands };
}
