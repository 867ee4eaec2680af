/** The settings as the README shows them. Deterministic: the same table gives the same text on every machine. */
import { fileVariable, type Setting } from './setting.js';
import { SETTINGS } from './settings.js';

/** A Markdown table, one row a setting in the order they are declared, a bold row before each group; ends in a newline. */
export function settingsTable(): string {
  const rows = ['| Setting | Default | Expects | What it does |', '|---|---|---|---|'];
  let group = '';
  for (const setting of Object.values<Setting<unknown>>(SETTINGS)) {
    if (setting.group !== group) rows.push(`| **${setting.group}** | | | |`);
    group = setting.group;
    rows.push(rowOf(setting));
  }
  return `${rows.join('\n')}\n`;
}

function rowOf({ name, isSecret, fallback, expects, help }: Setting<unknown>): string {
  const names = isSecret ? `\`${name}\` or \`${fileVariable(name)}\`` : `\`${name}\``;
  const shown = fallback.literal ? `\`${fallback.shown}\`` : fallback.shown;
  return `| ${names} | ${shown} | ${expects} | ${help} |`;
}
