import { describe, expect, it } from 'vitest';
import { SETTINGS } from '../../../src/platform/config/settings.js';
import { settingsTable } from '../../../src/platform/config/settings-table.js';

const lines = settingsTable().trimEnd().split('\n');

describe('the table of settings in Markdown', () => {
  it('F152 has one row of four cells for every setting, with its default, its expectation and its help', () => {
    const rows = lines.filter((line) => line.startsWith('| `'));
    expect(rows).toHaveLength(Object.keys(SETTINGS).length);
    for (const [index, { name, expects, help, fallback }] of Object.values(SETTINGS).entries()) {
      const cells = rows[index]?.split(' | ');
      expect(cells, `${name} is not row ${index} of four cells`).toHaveLength(4);
      expect(cells?.[0]).toContain(`\`${name}\``);
      expect(cells?.[1]).toBe(fallback.literal ? `\`${fallback.shown}\`` : fallback.shown);
      expect(cells?.slice(2)).toEqual([expects, `${help} |`]);
    }
  });

  it('F152 is one Markdown table: a head, a rule, rows and a final newline', () => {
    expect(lines.slice(0, 2)).toEqual(['| Setting | Default | Expects | What it does |', '|---|---|---|---|']);
    for (const line of lines) expect(line.match(/\|/g), line).toHaveLength(5);
    expect(settingsTable()).toMatch(/[^\n]\n$/);
  });

  it('F152 names each group once and says which settings can come as a file', () => {
    const groups = lines.flatMap((line) => /^\| \*\*(\w+)\*\* \|/.exec(line)?.[1] ?? []);
    expect(groups).toEqual(['Database', 'Server', 'Worker', 'Lease', 'Runs', 'Audit', 'Logging']);
    const files = settingsTable().match(/\w+_FILE\b/g);
    expect(files).toEqual([
      'DATABASE_URL_FILE',
      'DATABASE_DIRECT_URL_FILE',
      'CAPSTAN_BOOTSTRAP_TOKEN_FILE',
      'CAPSTAN_AUDIT_KEY_FILE',
    ]);
  });

  it('F152 reads the same on every machine: nothing of this one is in it', () => {
    expect(settingsTable()).toContain("| `CAPSTAN_NAME` | the host's name |");
    expect(settingsTable()).toBe(settingsTable());
  });
});
