/** (g) Output: from a tool into the store, and out through `/stream` to those who look on. */
import { figureOfTimes, MIB } from '../figures.mjs';
import { timed } from '../lanes.mjs';
import { watchMemory } from '../processes.mjs';

const TEXT = 'a line of output as a tool writes it';

export async function output(ground, { sizes }) {
  const replica = await ground.replica({}, 4);
  await replica.client.runToEnd({ kind: 'command', spec: { argv: ['true'] } });
  const { bytes } = sizes.output;
  const memory = await watchMemory(replica.pid);
  const argv = ['sh', '-c', `yes '${TEXT}' | head -c ${bytes}`];
  const { id, startedAt, endedAt } = await replica.client.runToEnd({ kind: 'command', spec: { argv } });
  const grownBytes = memory.stop();
  const took = Date.parse(endedAt) - Date.parse(startedAt);
  let seen = 0;
  const reading = await timed(async () => {
    seen = await bytesSeen(replica.client, id);
  });
  if (seen !== bytes) throw new Error(`the stream gave ${seen} of ${bytes} bytes`);
  const mb = bytes / 1_000_000;
  return [
    { key: 'outputIn', what: `output of one run, ${mb} MB`, value: (mb * 1_000) / took, unit: 'MB per second', n: 1 },
    { what: 'memory of the replica meanwhile, above idle', value: grownBytes / MIB, unit: 'MiB', n: memory.samples },
    {
      key: 'outputOut',
      what: 'the same out through /stream',
      value: (mb * 1_000) / reading,
      unit: 'MB per second',
      n: 1,
    },
  ];
}

/** The tool writes what time it is; a viewer at another replica sees how long ago that was. */
export async function viewer(ground, { sizes }) {
  const samples = await linesSeen(ground, { lines: sizes.isQuick ? 20 : 100, viewers: 1 });
  const { msPerItem: _, ...figure } = figureOfTimes(
    'a line, written to seen, by a viewer at another replica',
    samples.flat(),
  );
  return [figure];
}

/** The same for very many who look at one run. */
export async function viewers(ground, { sizes }) {
  const { n, lines } = sizes.viewers;
  const samples = await linesSeen(ground, { lines, viewers: n });
  const { msPerItem: _, ...figure } = figureOfTimes(`a line, written to seen, by ${n} viewers`, samples.flat());
  return [{ ...figure, key: 'viewers' }];
}

async function linesSeen(ground, { lines, viewers: n }) {
  const runner = await ground.replica({ CAPSTAN_NAME: 'runner' });
  const other = await ground.replica({ CAPSTAN_SLOTS: '0', CAPSTAN_NAME: 'viewer' }, n);
  // It waits until all look on.
  const script = `setTimeout(() => { let n = ${lines}; const t = setInterval(() => {
    console.log(Date.now()); if (--n === 0) clearInterval(t); }, 100) }, 2000)`;
  const made = await runner.client.submit({ kind: 'command', spec: { argv: [process.execPath, '-e', script] } });
  const samples = await Promise.all(Array.from({ length: n }, () => agesOfLines(other.client, made.id)));
  const few = samples.find((each) => each.length !== lines);
  if (few) throw new Error(`a viewer saw ${few.length} of ${lines} lines`);
  return samples;
}

async function agesOfLines(client, id) {
  const samples = [];
  let text = '';
  for await (const { event, data } of client.stream(id)) {
    const seenAtMs = Date.now();
    if (event === 'end') break;
    if (event !== 'output') continue;
    const lines = (text + Buffer.from(JSON.parse(data).data, 'base64').toString('latin1')).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) samples.push(seenAtMs - Number(line));
  }
  return samples;
}

async function bytesSeen(client, id) {
  let seen = 0;
  for await (const { event, data } of client.stream(id)) {
    if (event === 'end') return seen;
    if (event === 'output') seen += Buffer.byteLength(JSON.parse(data).data, 'base64');
  }
  return seen;
}
