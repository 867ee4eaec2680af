/**
 * Makes dist/ fit the sources before `npm start` and `npm test`, and says nothing when it already does.
 * Invariant: dist/.built is written last and names the sources by their contents, so no clock, no deleted file and no
 * build that was killed half-way can make an unfit dist/ look fresh. Plain JavaScript: it runs before any build.
 */
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const ROOT = join(import.meta.dirname, '..');
const MAIN = join(ROOT, 'dist/main.js');
const STAMP = join(ROOT, 'dist/.built');
/** A symbolic link whose target is the text `pid` or `pid+pid of the build`: made with its content in one step. */
const LOCK = join(ROOT, 'dist.lock');
const FOLDERS = ['src', 'migrations'];
const FILES = /^(package\.json|package-lock\.json|tsconfig.*\.json|\.swcrc|nest-cli\.json)$/;
/** No build takes this long; a process that still has the number of a builder is another one. */
const LOCK_LIMIT_MS = 600_000;
const POLL_MS = 100;

if (!fs.existsSync(join(ROOT, 'node_modules'))) {
  say('node_modules is missing: run npm ci first');
  process.exit(1);
}
process.exitCode = await makeFresh();

async function makeFresh() {
  let waitsFor = '';
  while (!isFresh(digest())) {
    if (tryLock()) return await buildLocked();
    const holder = starterIn(holderOfLock());
    if (holder && holder !== waitsFor) say(`process ${holder} builds here, waiting for it`);
    waitsFor = holder ?? waitsFor;
    await pause(POLL_MS);
  }
  return 0;
}

/** Holds the lock. Another one may have built between our look at the stamp and the lock. */
async function buildLocked() {
  try {
    const before = digest();
    if (isFresh(before)) return 0;
    if (!fs.existsSync(join(ROOT, 'node_modules/@nestjs/cli'))) {
      say('the sources changed and the build tools are missing: run npm ci first');
      return 1;
    }
    say('building, the sources changed');
    const code = await runBuild();
    if (code !== 0 || !fs.existsSync(MAIN)) {
      say(`the build failed (exit code ${code})`);
      return code || 1;
    }
    // What is edited during the build is not in `before`: the next start builds again.
    if (isOurs()) fs.writeFileSync(STAMP, before);
    return 0;
  } finally {
    if (isOurs()) fs.rmSync(LOCK, { force: true });
  }
}

/** Exit code of `npm run build`; what it prints goes to standard error. */
async function runBuild() {
  const { spawn } = await import('node:child_process');
  const child = spawn('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: ['ignore', 2, 2] });
  // A build outlives us when we are killed; until it is over nobody else may begin.
  if (child.pid !== undefined) nameBuild(child.pid);
  return await new Promise((resolve) => {
    child.once('error', (error) => {
      say(`npm could not be started: ${error.message}`);
      resolve(127);
    });
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

function isFresh(now) {
  return fs.existsSync(MAIN) && read(() => fs.readFileSync(STAMP, 'utf8')) === now;
}

/** SHA-256 over names and contents of all that goes into a build. Texts about the sources are no sources. */
function digest() {
  const names = fs.readdirSync(ROOT).filter((name) => FILES.test(name));
  for (const folder of FOLDERS) {
    for (const entry of fs.readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })) {
      if (entry.isFile() && !entry.name.endsWith('.md'))
        names.push(join(entry.parentPath, entry.name).slice(ROOT.length + 1));
    }
  }
  const hash = createHash('sha256');
  for (const name of names.sort()) {
    const content = read(() => fs.readFileSync(join(ROOT, name))) ?? '';
    hash.update(`${name}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

function tryLock() {
  try {
    fs.symlinkSync(String(process.pid), LOCK);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    clearDeadLock();
    return false;
  }
}

function nameBuild(pid) {
  const next = `${LOCK}.${process.pid}`;
  fs.symlinkSync(`${process.pid}+${pid}`, next);
  fs.renameSync(next, LOCK);
}

/** Of several that see the same dead lock, the rename lets one have it; a living one taken by mistake is put back. */
function clearDeadLock() {
  const seen = holderOfLock();
  if (seen === undefined || isHeld(seen)) return;
  const grave = `${LOCK}.${process.pid}`;
  try {
    fs.renameSync(LOCK, grave);
    const taken = fs.readlinkSync(grave);
    if (taken !== seen) fs.symlinkSync(taken, LOCK);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
  }
  fs.rmSync(grave, { force: true });
}

function isHeld(holder) {
  const madeAt = read(() => fs.lstatSync(LOCK).mtimeMs) ?? 0;
  return Date.now() - madeAt < LOCK_LIMIT_MS && holder.split('+').some((pid) => isAlive(Number(pid)));
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function isOurs() {
  return starterIn(holderOfLock()) === String(process.pid);
}

function starterIn(holder) {
  return holder?.split('+')[0];
}

function holderOfLock() {
  return read(() => fs.readlinkSync(LOCK));
}

/** `undefined` when the file is not there. */
function read(get) {
  try {
    return get();
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function say(line) {
  process.stderr.write(`capstan: ${line}\n`);
}
