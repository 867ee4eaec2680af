/** Reads Prometheus' text format (version 0.0.4) as strictly as its specification says: whatever is odd is an error. */

export interface Sample {
  /** With its suffix, for a histogram. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly samples: readonly Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const TYPES = ['counter', 'gauge', 'histogram', 'summary'] as const;

export function readExposition(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const families = new Map<string, Family & { samples: Sample[] }>();
  let help: { readonly name: string; readonly text: string } | undefined;
  let current: (Family & { samples: Sample[] }) | undefined;
  const seen = new Set<string>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, helpOf, helpText = ''] = /^# HELP (\S+) (.+)$/.exec(line) ?? [];
    const [, typeOf, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (helpOf !== undefined) {
      help = { name: helpOf, text: helpText };
    } else if (typeOf !== undefined) {
      const known = TYPES.find((each) => each === type);
      if (!known || help?.name !== typeOf || !NAME.test(typeOf)) throw new Error(`no family: ${line}`);
      if (families.has(typeOf)) throw new Error(`there twice: ${typeOf}`);
      current = { name: typeOf, help: help.text, type: known, samples: [] };
      families.set(typeOf, current);
    } else {
      const sample = sampleOf(line);
      if (!current || !belongs(sample, current)) throw new Error(`in no family: ${line}`);
      const series = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (seen.has(series)) throw new Error(`there twice: ${line}`);
      seen.add(series);
      current.samples.push(sample);
    }
  }
  return families;
}

/** The value of one series; `undefined` when it isn't there. */
export function valueIn(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
  const sought = Object.entries(labels);
  const found = family?.samples.filter(
    (each) =>
      each.name === name &&
      Object.keys(each.labels).length === sought.length &&
      sought.every(([label, value]) => each.labels[label] === value),
  );
  return found?.[0]?.value;
}

function sampleOf(line: string): Sample {
  const [, name = '', inner, number = ''] = SAMPLE.exec(line) ?? [];
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number);
  // The library writes NaN in its own way, and who scrapes minds no case.
  if (name === '' || (Number.isNaN(value) && !/^nan$/i.test(number))) throw new Error(`no sample: ${line}`);
  return { name, labels: labelsOf(inner ?? '', line), value };
}

function labelsOf(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, label = '', value = ''] = LABEL.exec(text) ?? [];
    if (label === '' || label in labels) throw new Error(`no labels: ${line}`);
    labels[label] = value.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped));
  }
  return labels;
}

function belongs({ name, labels }: Sample, family: Family): boolean {
  if (family.type === 'histogram') {
    if (name === `${family.name}_bucket`) return labels.le !== undefined;
    return name === `${family.name}_sum` || name === `${family.name}_count`;
  }
  if (family.type === 'summary' && name !== family.name) return /_(sum|count)$/.test(name);
  return name === family.name;
}
