import { spawnSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { it } from 'vitest';
import { compiledSource } from '../../compiled.js';
import { createDatabase } from '../../database.js';
import { Workers } from './keeper.fixture.js';
it('mem', async () => {
  const database = await createDatabase();
  const workers = await Workers.open(await database.session());
  const dist = '/tmp/keeper/d/dist'; void compiledSource;
  for (let i = 0; i < 3; i++) {
    const incarnation = await workers.insert();
    const src = `
    import { openSync, readFileSync } from 'node:fs';
    import 'pg'; import 'pino'; import 'fastify'; import '@nestjs/core';
    const smaps = () => { const t = readFileSync('/proc/self/smaps_rollup','utf8'); const g = (k) => Math.round(+t.match(new RegExp('^'+k+': *(\\\\d+)','m'))[1]/1024*10)/10; return { rss: g('Rss'), pss: g('Pss'), priv: g('Private_Dirty') }; };
    const { startKeeper } = await import(${JSON.stringify(join(dist, 'execution/keeper/keeper.client.js'))});
    await new Promise(r => setTimeout(r, 500)); gc(); await new Promise(r => setTimeout(r, 300));
    const a = smaps();
    const k = startKeeper({ databaseUrl: ${JSON.stringify(database.url)}, ttlMs: 30000, renewMs: 50, stallLimitMs: 70000, toolDeadlineMs: 3000, graceMs: 1000, log: { info() {}, warn() {}, error() {} } });
    k.begin({ incarnation: ${JSON.stringify(incarnation)}, pipeFd: openSync('/dev/null', 'w'), supervisorPid: 1 });
    const show = async (l) => { const b = smaps(); const h = await k.worker.getHeapStatistics?.(); console.log(l, JSON.stringify(a), JSON.stringify(b), 'dRSS', (b.rss - a.rss).toFixed(1), 'dPriv', (b.priv - a.priv).toFixed(1), k.stats.renewals); };
    while (k.stats.renewals < 20) await new Promise(r => setTimeout(r, 20));
    await show('20');
    while (k.stats.renewals < 1500 && k.stats.renewals < 200) await new Promise(r => setTimeout(r, 20));
    await show('200');
    await k.close(); await show('closed'); process.exit(0);`;
    const c = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', src], { stdio: ['ignore', 'inherit', 'inherit'], cwd: process.cwd() });
    await once(c, 'exit');
  }
  await database.drop();
}, 120000);
