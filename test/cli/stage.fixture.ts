/** One run as a server keeps it, with its stream; a test moves it on and disturbs those who watch. */
import type { ServerResponse } from 'node:http';
import { at, type Call } from './cli.fixture.js';
import {
  type Answer,
  type Asked,
  outputReply,
  type Reply,
  RUN_ID,
  runJson,
  type StandIn,
  standIn,
} from './stand-in.fixture.js';

type Json = Readonly<Record<string, unknown>>;
type Name = 'stdout' | 'stderr';

interface Sent {
  readonly id: string | undefined;
  readonly stream: Name | undefined;
  readonly text: string;
}

export class Stage {
  run: Json = runJson();
  readonly output = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  /** Answers to the next looks at the run, its output or its stream. */
  readonly mishaps: Reply[] = [];
  /** Viewers of the stream right now. */
  readonly viewers = new Map<ServerResponse, Name | undefined>();
  /** The answer to a cancel, and what happens before it is given. */
  cancelReply: Reply = {};
  onCancel: () => void = () => undefined;
  private readonly sent: Sent[] = [];
  private batch = 0;

  readonly answer: Answer = (asked) => {
    if (asked.path.endsWith('/cancel')) return this.cancel();
    if (asked.method === 'POST') return { status: 201, body: this.run };
    const mishap = this.mishaps.shift();
    if (mishap) return mishap;
    if (asked.path === `/v1/runs/${RUN_ID}`) return { body: this.run };
    if (asked.path.endsWith('/stream')) return this.stream(asked);
    const stream = nameIn(asked);
    const both = Buffer.concat([this.output.stdout, this.output.stderr]);
    return outputReply(asked, stream === undefined ? both : this.output[stream]);
  };

  private cancel(): Reply {
    this.onCancel();
    return this.cancelReply;
  }

  write(stream: Name, data: string | Buffer): void {
    const bytes = Buffer.from(data);
    this.output[stream] = Buffer.concat([this.output[stream], bytes]);
    this.batch += 1;
    const at = '2026-03-02T10:00:02.000Z';
    const chunk = { fence: 1, batch: this.batch, stream, at, data: bytes.toString('base64') };
    this.publish('output', chunk, `1.1.${this.batch}`, stream);
  }

  /** A derived event has no `seq`, and no id. */
  event(type: string, data: Json, seq: number | null = null): void {
    const id = seq === null ? undefined : `${seq}.1.${this.batch}`;
    this.publish('event', { seq, type, at: '2026-03-02T10:00:01.000Z', data }, id);
  }

  cut(bytes: number | null): void {
    this.batch += 10;
    this.publish('cut', { fence: 1, after: this.batch - 10, next: this.batch + 1, bytes }, `1.1.${this.batch}`);
  }

  end(run: Json): void {
    this.run = run;
    this.publish('end', run);
    for (const viewer of this.viewers.keys()) viewer.end();
  }

  /** Every viewer loses its connection. */
  breakOff(): void {
    for (const viewer of this.viewers.keys()) viewer.socket?.destroy();
  }

  /** To be told as it stands, whatever it is. */
  raw(text: string): void {
    for (const viewer of this.viewers.keys()) viewer.write(text);
  }

  private publish(event: string, data: Json, id?: string, stream?: Name): void {
    const text = `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    this.sent.push({ id, stream, text });
    for (const [viewer, wanted] of this.viewers) if (!stream || !wanted || stream === wanted) viewer.write(text);
  }

  private stream(asked: Asked): Reply {
    const after = asked.headers['last-event-id'];
    const isNewOnly = asked.query.get('tail') === '0';
    const start = after === undefined ? 0 : this.sent.findLastIndex(({ id }) => id === after) + 1;
    const stream = nameIn(asked);
    return {
      headers: { 'content-type': 'text/event-stream' },
      live: (viewer) => {
        const due = this.sent.slice(start).filter((one) => one.stream === undefined || !isNewOnly);
        for (const one of due) if (!one.stream || !stream || one.stream === stream) viewer.write(one.text);
        if (this.run.endedAt !== null) {
          // A run that had ended from the start has published nothing.
          if (!this.sent.some(({ text }) => text.startsWith('event: end'))) {
            viewer.write(`event: end\ndata: ${JSON.stringify(this.run)}\n\n`);
          }
          viewer.end();
          return;
        }
        this.viewers.set(viewer, stream);
        viewer.on('close', () => this.viewers.delete(viewer));
      },
    };
  }
}

function nameIn({ query }: Asked): Name | undefined {
  const name = query.get('stream');
  return name === 'stdout' || name === 'stderr' ? name : undefined;
}

export async function onStage<T>(use: (stage: Stage, call: Call, server: StandIn) => Promise<T>): Promise<T> {
  const stage = new Stage();
  const server = await standIn(stage.answer);
  try {
    return await use(stage, at(server.url), server);
  } finally {
    await server.close();
  }
}
