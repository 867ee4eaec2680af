/** Capstan beside its peers, in one run: more is better for Capstan. */

const PEERS = { Graphile: 'graphile', PgBoss: 'pgboss' };
/** Rates, and latencies where less is better. */
const RATIOS = { drain: 'drain', submit: 'submit', batch: 'batch' };
const OTHER_RATIOS = { drain2: 'drain2', batch4: 'batch4' };

/** `ratios` are those that count; `otherRatios` stand beside them. What wasn't measured is left out. */
export function ratiosOf(figures) {
  const valueAt = (system, key) => figures.find((figure) => figure.system === system && figure.key === key)?.value;
  const rates = (keys) =>
    Object.entries(keys).flatMap(([title, key]) =>
      Object.entries(PEERS).map(([peer, system]) => [
        `${title}Vs${peer}`,
        valueAt('capstan', key) / valueAt(system, key),
      ]),
    );
  const latency = (system, key) => valueAt(system, 'latency') / valueAt('capstan', key);
  return {
    ratios: measured([...rates(RATIOS), ['latencyVsGraphile', latency('graphile', 'latency')]]),
    otherRatios: measured([
      ...rates(OTHER_RATIOS),
      ['submitKeyedVsGraphile', valueAt('capstan', 'submitKeyed') / valueAt('graphile', 'submit')],
      ['submitKeyedVsPgBoss', valueAt('capstan', 'submitKeyed') / valueAt('pgboss', 'submit')],
      ['latencyVsPgBoss', latency('pgboss', 'latency')],
      ['latencyElsewhereVsGraphile', latency('graphile', 'latencyElsewhere')],
    ]),
  };
}

function measured(entries) {
  return Object.fromEntries(
    entries.filter(([, value]) => Number.isFinite(value)).map(([name, value]) => [name, Number(value.toPrecision(3))]),
  );
}
