/** The database of this process: the one that was set, or a bundled one, whose address is known only once it runs. */
import type { Config } from './config/config.js';
import type { Logger } from './log/logger.js';
import { startEmbeddedPostgres } from './postgres/embedded.js';

const STOP_MS = 3_000;

/** How the database is reached by everybody, and past a pooler. */
interface Address {
  readonly shared: string;
  readonly direct: string;
}

/** Nothing can be sent yet. As for any other database that isn't there, the code says that it may pass. */
class NotOpen extends Error {
  override readonly name = 'NotOpen';
  readonly code = 'ECONNREFUSED';
}

export class Database {
  /** It came with this process. */
  readonly isBundled: boolean;
  private address: Address | undefined;
  private stop: () => Promise<void> = async () => undefined;

  constructor(
    private readonly config: Config,
    private readonly log: Logger,
  ) {
    const { databaseUrl, databaseDirectUrl } = config;
    this.isBundled = databaseUrl === undefined;
    if (databaseUrl !== undefined) this.address = { shared: databaseUrl, direct: databaseDirectUrl ?? databaseUrl };
  }

  get shared(): string {
    return this.known.shared;
  }

  get direct(): string {
    return this.known.direct;
  }

  /** False behind a pooler. */
  get isDirect(): boolean {
    return this.isBundled || this.shared === this.direct;
  }

  /** Starts the bundled server, if it is one. Throws as that does. */
  async open(): Promise<void> {
    if (!this.isBundled) return;
    const server = await startEmbeddedPostgres({
      dataDir: this.config.dataDir,
      databaseName: 'capstan',
      log: (line) => this.log.warn({ code: 'postgres' }, line),
    });
    this.stop = () => server.stop(STOP_MS);
    this.address = { shared: server.url, direct: server.url };
  }

  async close(): Promise<void> {
    await this.stop();
  }

  private get known(): Address {
    if (!this.address) throw new NotOpen('the bundled database does not run yet');
    return this.address;
  }
}
