import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { shell, startRig, until } from './rig.js';

describe('what a tool is started with', () => {
  it('F092 is the environment of its plan, the places for its reports and nothing else, whatever the names', async () => {
    const rig = await startRig();
    writeFileSync(join(rig.scratch, 'setpriv'), `#!/bin/sh\ntouch ${rig.scratch}/stolen\n`, { mode: 0o755 });
    const env = {
      PATH: `${rig.scratch}:/usr/bin:/bin`,
      BASH_ENV: `${rig.scratch}/x`,
      NODE_OPTIONS: '--require /nowhere',
      LD_BIND_NOW: '1',
      HOME: '/nowhere',
    };
    const tool = rig.launch({ argv: ['env', '-0'], env });
    expect(await tool.outcome).toMatchObject({ exitCode: 0, cause: 'self' });
    const all = tool.text(1).split('\0').filter(Boolean).sort();
    const isPlace = (entry: string) => /^CAPSTAN_(EVENTS|OUTPUT)_FILE=\//.test(entry);
    expect(all.filter(isPlace)).toHaveLength(2);
    const seen = all.filter((entry) => !isPlace(entry));
    expect(seen).toEqual(
      Object.entries(env)
        .map(([name, value]) => `${name}=${value}`)
        .sort(),
    );
    expect(existsSync(join(rig.scratch, 'stolen')), 'a program of the tool’s PATH ran in place of our own').toBe(false);
    // NODE_OPTIONS of one tool reached nothing else: the next one starts.
    expect(await rig.launch({ argv: ['true'] }).outcome).toMatchObject({ exitCode: 0 });
  });

  it('is a private folder as home and working directory, with the files of the plan in it', async () => {
    const rig = await startRig();
    const tool = rig.launch({
      argv: ['sh', { file: 'main.sh' }, { file: 'vars.json', prefix: '@' }],
      env: { PATH: '/usr/bin:/bin', CONFIG: { file: 'vars.json' } },
      files: [
        { name: 'main.sh', content: 'pwd; echo $HOME; echo $1; cat $CONFIG; stat -c %a . main.sh run.sh; ./run.sh' },
        { name: 'vars.json', content: '{"ä":1}\n' },
        { name: 'run.sh', content: '#!/bin/sh\necho ran\n', executable: true },
      ],
    });
    expect(await tool.outcome).toMatchObject({ exitCode: 0 });
    const [folder = '', home, argument, ...rest] = tool.text(1).trim().split('\n');
    expect(folder.startsWith(rig.temp)).toBe(true);
    expect([home, argument, ...rest]).toEqual([folder, `@${folder}/vars.json`, '{"ä":1}', '700', '600', '700', 'ran']);
  });

  it('is three descriptors, real pipes that open again by name', async () => {
    const rig = await startRig();
    const script = 'ls /proc/$$/fd; echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin';
    const tool = rig.launch({ ...shell(script), stdin: 'in\n' });
    expect(await tool.outcome).toMatchObject({ exitCode: 0 });
    expect(tool.text(1)).toBe('0\n1\n2\nout\nin\n');
    expect(tool.text(2)).toBe('err\n');
  });

  it('is its text as standard input and then end of file, or nothing', async () => {
    const rig = await startRig();
    const text = 'zeile ä\n'.repeat(60_000);
    const reader = rig.launch({ argv: ['cat'], stdin: text });
    const ignorer = rig.launch({ ...shell('exec <&-; exit 4'), stdin: text });
    const empty = rig.launch({ ...shell('read x; echo got:$x; readlink /proc/self/fd/0') });
    expect(await reader.outcome).toMatchObject({ exitCode: 0 });
    expect(reader.text(1) === text, 'standard input arrived whole').toBe(true);
    expect(await ignorer.outcome).toMatchObject({ exitCode: 4, cause: 'self' });
    await empty.outcome;
    expect(empty.text(1)).toBe('got:\n/dev/null\n');
  });

  it('is a session and a group of its own, with no signal blocked or ignored', async () => {
    const rig = await startRig();
    const tool = rig.launch(shell('cat /proc/$$/stat; grep -E "^Sig(Blk|Ign)" /proc/self/status'));
    const pgid = await tool.pgid;
    await tool.outcome;
    const [stat = '', ...signals] = tool.text(1).trim().split('\n');
    const [, , pgrp, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    expect([pgrp, session]).toEqual([String(pgid), String(pgid)]);
    expect(signals.map((line) => line.split('\t')[1])).toEqual(['0000000000000000', '0000000000000000']);
  });

  it('leaves nothing behind in the file system', async () => {
    const rig = await startRig();
    const script =
      'mkdir -p a/b/c; i=0; while [ $i -lt 300 ]; do : > a/b/$i; i=$((i+1)); done; ln -s / root; chmod -R a-wx a';
    const tool = rig.launch({ ...shell(script), stdin: 'secret', files: [{ name: 'secret', content: 'x' }] });
    expect(await tool.outcome).toMatchObject({ exitCode: 0 });
    const other = { incarnation: randomUUID() };
    expect(await rig.launch({ stdin: 'secret' }, other).outcome).toEqual({ refused: 'incarnation' });
    const [root = ''] = readdirSync(rig.temp);
    expect(statSync(join(rig.temp, root)).mode & 0o777).toBe(0o700);
    const filled = () =>
      spawnSync('find', [join(rig.temp, root), '-mindepth', '1', '-name', 't*', '!', '-empty']).stdout.toString();
    await until('their files are removed', () => filled() === '');
    await rig.supervisor.shutdown();
    expect([readdirSync(rig.temp), readdirSync(rig.memory)]).toEqual([[], []]);
  });
});

describe('a plan that cannot be started is told as such', () => {
  const unavailable = (detail: unknown) => ({ failed: { code: 'unavailable', detail } });
  const invalid = (detail: unknown) => ({ failed: { code: 'invalid_input', detail } });

  it('a program that is missing on the tool’s PATH', async () => {
    const rig = await startRig();
    const outcome = rig.launch({ argv: ['no-such-tool', 'x'], env: { PATH: '/usr/bin:/bin' } }).outcome;
    expect(await outcome).toEqual(unavailable('program not found: no-such-tool (PATH /usr/bin:/bin)'));
    expect(await rig.launch({ argv: ['./missing'] }).outcome).toEqual(
      unavailable('program not found: ./missing; a run works in a folder of its own: name it whole, or set cwd'),
    );
    expect(await rig.launch({ argv: ['/bin/echo hi | cat'] }).outcome).toEqual(
      unavailable('program not found: /bin/echo hi | cat; there is no shell: a shell line needs sh -c'),
    );
    expect(await rig.launch({ argv: ['/bin'] }).outcome).toEqual(unavailable('program not found: /bin'));
  });

  it('a program that is not executable', async () => {
    const rig = await startRig();
    writeFileSync(join(rig.scratch, 'plain'), 'x');
    const outcome = rig.launch({ argv: ['plain'], env: { PATH: rig.scratch } }).outcome;
    expect(await outcome).toEqual(unavailable(`program not executable: ${rig.scratch}/plain`));
  });

  it('a working directory that is missing or none', async () => {
    const rig = await startRig();
    const gone = join(rig.scratch, 'gone');
    expect(await rig.launch({ cwd: gone }).outcome).toEqual(invalid(`working directory not found: ${gone}`));
    expect(await rig.launch({ cwd: '/bin/sh' }).outcome).toEqual(invalid('working directory is not a folder: /bin/sh'));
    const relative = await rig.launch({ cwd: 'tmp' }).outcome;
    expect(relative).toEqual(invalid('working directory is not an absolute path: tmp'));
  });

  it('an argument list that is too long (E2BIG)', async () => {
    const rig = await startRig();
    const tooLong = invalid('argument list too long: argv and env together, or one of them');
    expect(await rig.launch({ argv: ['echo', 'x'.repeat(200_000)] }).outcome).toEqual(tooLong);
    const many = Array.from({ length: 100 }, () => 'x'.repeat(100_000));
    expect(await rig.launch({ argv: ['echo', ...many] }).outcome).toEqual(tooLong);
    const fits = rig.launch({ argv: ['printf', '%s', 'x'.repeat(100_000)] });
    expect(await fits.outcome).toMatchObject({ exitCode: 0 });
    expect(fits.bytes(1).length).toBe(100_000);
  });

  it.each([
    ['no program', { argv: [] }, 'argv names no program'],
    ['a NUL in an argument', { argv: ['echo', 'secret\0'] }, 'argv, env and cwd cannot hold a NUL character'],
    ['a NUL in a value', { env: { A: 'secret\0' } }, 'argv, env and cwd cannot hold a NUL character'],
    ['a variable without a name', { env: { '': '1' } }, 'a variable has an invalid name'],
    ['a variable named A=B', { env: { 'A=B': '1' } }, 'a variable has an invalid name'],
    [
      'a file outside the folder',
      { files: [{ name: '../x', content: '' }] },
      'a file name must be plain, without a folder',
    ],
    ['a file that is not given', { argv: ['sh', { file: 'x' }] }, 'a file is named and not given'],
  ])('%s', async (_name, plan, detail) => {
    const rig = await startRig();
    expect(await rig.launch(plan).outcome).toEqual(invalid(detail));
    expect(await rig.launch({}).outcome).toMatchObject({ exitCode: 0 });
  });

  it('a second tool for a run that has one', async () => {
    const rig = await startRig();
    const outcomes: unknown[] = [];
    const launch = { incarnation: rig.incarnation, runId: 'the-run', fence: 1 };
    const handlers = {
      onStarted: () => {},
      onOutput: () => {},
      onUnread: () => {},
      onEnded: (end: { exitCode: number | null }) => outcomes.push(end.exitCode),
      onFailed: (failure: { code: string }) => outcomes.push(failure.code),
      onRefused: (reason: string) => outcomes.push(reason),
    };
    const plan = { argv: ['sh', '-c', 'exit 5'], env: {}, cwd: null, stdin: null, files: [], timeoutMs: null };
    rig.supervisor.launch({ key: 101, ...launch, plan }, handlers);
    rig.supervisor.launch({ key: 102, ...launch, plan }, handlers);
    await until('both are answered', () => outcomes.length === 2);
    expect(outcomes.sort()).toEqual([5, 'internal']);
  });

  it('a folder that cannot be made, as unavailable', async () => {
    const rig = await startRig();
    const [root = ''] = readdirSync(rig.temp);
    // The name the next tool's folder would take.
    mkdirSync(join(rig.temp, root, 't1'));
    chmodSync(join(rig.temp, root, 't1'), 0o700);
    const outcome = await rig.launch({}).outcome;
    expect(outcome.failed?.detail).toBe('cannot prepare the private folder: EEXIST');
  });
});
