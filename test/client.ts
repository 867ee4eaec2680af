/** Runs of a real server over HTTP, as a program would use them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from './server.js';

export interface RunJson {
  readonly id: string;
  readonly state: string;
  readonly endedAt: string | null;
  readonly output: unknown;
  readonly progress: unknown;
  readonly end: { readonly code: string; readonly detail: string; readonly exitCode: number | null } | null;
}

export class Client {
  private constructor(
    private readonly url: string,
    private readonly authorization: string,
  ) {}

  /** With the token that an embedded installation keeps in its data folder. */
  static async of(server: { readonly url: string }, dataDir: string): Promise<Client> {
    const token = (await readFile(join(dataDir, 'admin-token'), 'utf8')).trim();
    return new Client(server.url, `Bearer ${token}`);
  }

  /** Whatever the method, the path below `/v1/runs`. */
  ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: this.authorization, ...(init.body ? { 'content-type': 'application/json' } : {}) };
    return fetch(`${this.url}/v1/runs${path}`, { ...init, headers });
  }

  /** A command for bash; returns the run's id. */
  async submit(script: string): Promise<string> {
    const body = JSON.stringify({ kind: 'command', spec: { argv: ['bash', '-c', script] } });
    return ((await (await this.ask('', { method: 'POST', body })).json()) as RunJson).id;
  }

  /** The run once it has ended; a server that can't answer now is asked again. */
  ended(id: string, withinMs: number): Promise<RunJson> {
    return until(
      `${id} ends`,
      async () => {
        const answer = await this.ask(`/${id}`);
        const run = answer.ok ? ((await answer.json()) as RunJson) : undefined;
        return run?.endedAt ? run : undefined;
      },
      withinMs,
    );
  }

  async output(id: string): Promise<string> {
    return (await this.ask(`/${id}/output`)).text();
  }
}
