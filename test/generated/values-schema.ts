/**
 * The part of the chart's values schema that comes from the table of settings: what may stand under `settings` and
 * `secrets`. A secret is no setting there, so no value can hold its text; what the chart sets itself is neither.
 */
import { type Setting, type ValueSchema } from '../../src/platform/config/setting.js';
import { SETTINGS } from '../../src/platform/config/settings.js';

/** The pod's name, the ports that its probes and its scraper ask, and a folder that nothing needs beside a database. */
const SET_BY_THE_CHART = ['CAPSTAN_NAME', 'CAPSTAN_PORT', 'CAPSTAN_METRICS_PORT', 'CAPSTAN_DATA_DIR'];

/** `text` with its definitions `settings` and `secrets` as the table makes them now. */
export function withSettings(text: string): string {
  const schema = JSON.parse(text) as { definitions: Record<string, ValueSchema> };
  const all = Object.values<Setting<unknown>>(SETTINGS);
  const secrets = all.filter(({ isSecret }) => isSecret);
  const settings = all.filter(({ name, isSecret }) => !isSecret && !SET_BY_THE_CHART.includes(name));
  schema.definitions.settings = closed(
    settings.map((each) => [each.name, { description: words(each), ...each.schema }]),
  );
  schema.definitions.secrets = {
    ...closed(secrets.map((each) => [each.name, { description: words(each), $ref: '#/definitions/secret' }])),
    required: [SETTINGS.databaseUrl.name],
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function closed(properties: readonly (readonly [name: string, schema: ValueSchema])[]): ValueSchema {
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

function words({ help, expects, fallback }: Setting<unknown>): string {
  return `${help} Expects: ${expects}. Default: ${fallback.shown}.`;
}
