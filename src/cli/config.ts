/** `config`: the profiles of this user, and the settings of this machine. None of it asks a server. */
import { clientSettings, effectiveSettings, readConfig } from '../platform/config/config.js';
import { addQuietOption, type ClientCommands } from './commands.js';
import { checked, fromFile, serverUrl, type TargetOptions, targetOf } from './credentials.js';
import { EXIT_CODES } from './exit-codes.js';
import { Failure, wrongUsage } from './failure.js';
import type { Column } from './print.js';
import { changeProfiles, type Profile, profileCalled, profileName, profilesFile, readProfiles } from './profiles.js';
import type { Session } from './session.js';

interface SetOptions extends TargetOptions {
  readonly tokenStdin?: boolean;
}

interface UseOptions {
  readonly none?: boolean;
}

const ORDER =
  '\nWhich server: --url or --profile; else what CAPSTAN_URL, CAPSTAN_TOKEN and\n' +
  'CAPSTAN_TOKEN_FILE name together; else the profile CAPSTAN_PROFILE; else the\nprofile in use; else this machine.';

export function addConfigCommands(commands: ClientCommands): void {
  commands.addGroup('config', 'profiles, settings');
  const set = commands
    .addLocal('config set', 'keep a server and its token', setProfile)
    .argument('<profile>', 'what it is called, such as prod')
    .option('--url <url>', 'its address; a new profile needs one')
    .option('--token-file <file>', 'its token is read from there now, and kept')
    .option('--token-stdin', 'its token is read from standard input')
    .addHelpText(
      'after',
      '\nThe first one is in use at once. Another host takes the token away, unless\none is given with it.\n\n' +
        'Example:\n  capstan config set prod --url https://ops.example.com --token-file token.txt',
    );
  const use = commands
    .addLocal('config use', 'choose the profile to use', useProfile)
    .argument('[profile]', 'its name')
    .option('--none', "none: this machine's own server again")
    .addHelpText('after', `${ORDER}\n\nExample:\n  capstan config use prod`);
  const list = commands
    .addLocal('config list', 'list the profiles', listProfiles)
    .addHelpText('after', '\nExample:\n  capstan config list');
  const remove = commands
    .addLocal('config remove', 'forget a profile and its token', removeProfile)
    .argument('<profile>', 'its name')
    .addHelpText('after', '\nExample:\n  capstan config remove prod');
  for (const command of [set, use, list, remove]) addQuietOption(command);
  commands
    .add('config show', 'which server; settings in effect', showConfig)
    .addHelpText('after', `${ORDER}\n\nExample:\n  capstan config show --profile prod`);
}

function folderOf({ shell }: Session): string {
  const { configDir } = clientSettings(shell.env);
  if (configDir !== undefined) return configDir;
  throw wrongUsage('there is no place for profiles: neither HOME nor XDG_CONFIG_HOME is set');
}

async function setProfile(session: Session, [text = '']: readonly string[], options: SetOptions): Promise<number> {
  const name = profileName(text);
  const folder = folderOf(session);
  // However long it takes to type a token, what is changed is what stands there afterwards.
  const given = await tokenIn(session, options);
  const { before, after } = await changeProfiles(folder, ({ current, named }) => {
    const profile = changed(name, named.get(name), options.url, given);
    return { current: current ?? name, named: new Map([...named, [name, profile]]) };
  });
  await report(session, folder, name);
  const now = profileCalled(after, name, name);
  if (now.token !== null) return EXIT_CODES.done.code;
  const old = before.named.get(name);
  await session.note(
    old !== undefined && old.token !== null
      ? `its token was for ${new URL(old.url).origin}, and is gone`
      : `no token is kept for ${new URL(now.url).origin}`,
    `give one: capstan config set ${name} --token-file FILE`,
  );
  return EXIT_CODES.done.code;
}

/** A token is for the host that it was given for. */
function changed(name: string, before: Profile | undefined, newUrl?: string, newToken?: string): Profile {
  const url = newUrl ?? before?.url;
  if (url === undefined) {
    throw wrongUsage(`profile ${name} is new: --url URL is missing`, `see: capstan config set --help`);
  }
  if (newUrl === undefined && newToken === undefined) throw wrongUsage('nothing to set: --url, --token-file …');
  const { origin } = serverUrl(url, '--url');
  const kept = before !== undefined && serverUrl(before.url, name).origin === origin ? before.token : null;
  return { url, token: newToken ?? kept };
}

async function tokenIn({ shell }: Session, { tokenFile, tokenStdin }: SetOptions): Promise<string | undefined> {
  if (tokenFile !== undefined && tokenStdin) throw wrongUsage('--token-file and --token-stdin exclude each other');
  if (tokenStdin) return checked((await shell.readStdin(4_096)).toString('utf8').trim(), 'standard input');
  return tokenFile === undefined ? undefined : fromFile(tokenFile, `--token-file ${tokenFile}`).token;
}

async function useProfile(session: Session, [name]: readonly string[], { none = false }: UseOptions): Promise<number> {
  if ((name === undefined) !== none)
    throw wrongUsage('expected the name of a profile, or --none', 'look: capstan config list');
  const folder = folderOf(session);
  await changeProfiles(folder, (profiles) => {
    if (name !== undefined) profileCalled(profiles, name, name);
    return { ...profiles, current: name ?? null };
  });
  await report(session, folder, name ?? null);
  const { namesServer, profile } = clientSettings(session.shell.env);
  const over = namesServer ? 'CAPSTAN_URL or CAPSTAN_TOKEN' : profile === undefined ? undefined : 'CAPSTAN_PROFILE';
  if (over !== undefined) await session.note(`${over} is set here, and comes first`, 'look: capstan config show');
  return EXIT_CODES.done.code;
}

async function removeProfile(session: Session, [name = '']: readonly string[]): Promise<number> {
  const folder = folderOf(session);
  await changeProfiles(folder, ({ current, named }) => {
    profileCalled({ current, named }, name, name);
    const left = new Map([...named].filter(([other]) => other !== name));
    return { current: current === name ? null : current, named: left };
  });
  await report(session, folder, null);
  return EXIT_CODES.done.code;
}

const PROFILE_COLUMNS: readonly Column[] = [
  { title: 'PROFILE' },
  { title: 'IN USE' },
  { title: 'TOKEN' },
  { title: 'URL', isFlexible: true },
];

interface ShownProfile {
  readonly name: string;
  readonly url: string;
  readonly hasToken: boolean;
  readonly isCurrent: boolean;
}

function shownIn(folder: string | undefined): ShownProfile[] {
  const { current, named } = readProfiles(folder);
  return [...named].map(([name, { url, token }]) => ({
    name,
    url,
    hasToken: token !== null,
    isCurrent: name === current,
  }));
}

async function listProfiles(session: Session): Promise<number> {
  const { isJson, isQuiet, printer, shell } = session;
  const items = shownIn(clientSettings(shell.env).configDir);
  if (isJson) await printer.document({ items, next: null });
  else if (isQuiet) await printer.lines(items.map(({ name }) => name));
  else {
    await printer.table(
      PROFILE_COLUMNS,
      items.map(({ name, url, hasToken, isCurrent }) => [
        name,
        isCurrent ? 'yes' : 'no',
        hasToken ? 'kept' : 'none',
        url,
      ]),
    );
  }
  if (items.length === 0)
    await session.note('there are no profiles', 'make one: capstan config set NAME --url URL --token-file FILE');
  return EXIT_CODES.done.code;
}

/** How the profiles stand after a change. `name`: the one that it was about. */
async function report(session: Session, folder: string, name: string | null): Promise<void> {
  const { isJson, isQuiet, printer } = session;
  const items = shownIn(folder);
  if (isJson) return printer.document({ file: profilesFile(folder), items });
  if (isQuiet) return;
  const current = items.find(({ isCurrent }) => isCurrent);
  const use = current ? `in use: ${current.name} (${current.url})` : "in use: none, this machine's own server";
  await printer.line(use);
  if (name !== null && name !== current?.name) {
    await session.note(`${name} is not in use`, `use it: capstan config use ${name}`);
  }
}

const SETTING_COLUMNS: readonly Column[] = [{ title: 'SETTING' }, { title: 'VALUE' }, { title: 'FROM' }];

/** What a server would refuse at its start is told too, as is what this client would; both make the exit code. */
async function showConfig(session: Session, _: readonly string[], options: TargetOptions): Promise<number> {
  const { shell, isJson, printer } = session;
  const items = effectiveSettings(shell.env);
  const reading = readConfig(shell.env);
  const client = clientOf(options, session);
  const faults = [...(reading.ok ? [] : reading.faults), ...('fault' in client ? [client.fault] : [])];
  if (isJson) await printer.document({ client: 'fault' in client ? null : client, items, faults });
  else {
    const target =
      'fault' in client
        ? []
        : [
            ['server', client.url, client.urlSource],
            ['token', client.hasToken ? '(hidden)' : '', client.tokenSource],
          ];
    const settings = items.map(({ name, value, source }) => [name, value, source]);
    await printer.table(SETTING_COLUMNS, [...target, ...settings]);
  }
  for (const { message } of faults) await session.note(message);
  return faults.length > 0 ? EXIT_CODES.usage.code : EXIT_CODES.done.code;
}

type Client =
  | { readonly url: string; readonly urlSource: string; readonly hasToken: boolean; readonly tokenSource: string }
  | { readonly fault: { readonly name: string; readonly message: string } };

/** Whom a command with these options would ask. */
function clientOf(options: TargetOptions, { shell }: Session): Client {
  try {
    const { url, urlSource, token, tokenSource } = targetOf(options, shell.env);
    return { url: url.href, urlSource, hasToken: token !== undefined, tokenSource };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { fault: { name: 'client', message: [error.message, ...error.hints].join('; ') } };
  }
}
