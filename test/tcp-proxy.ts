/** Faults of a network that no database reports: a proxy between a client and its server, in the test's hands. */
import { once } from 'node:events';
import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net';
import { Transform } from 'node:stream';

/** Two ends of one connection through the proxy. */
interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
}

/** A TCP proxy that can go silent as a cut network does: it stops forwarding both ways, without FIN or RST. */
export class TcpProxy {
  private readonly clients = new Set<Socket>();
  private readonly links = new Set<Link>();
  private isSilent = false;
  /** What is sent arrives this much later, each way; for connections opened from now on. */
  latencyMs = 0;
  /** Connections it was asked for. */
  accepted = 0;

  private constructor(
    private readonly server: Server,
    readonly port: number,
    private targetPort: number,
    readonly through: string,
  ) {
    server.on('connection', (socket) => this.accept(socket));
  }

  /** In front of the database of `url`; `through` is that URL by way of the proxy. */
  static async start(url: string): Promise<TcpProxy> {
    const target = new URL(url);
    const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (typeof address !== 'object' || !address) throw new Error('no address');
    const targetPort = Number(target.port);
    target.port = String(address.port);
    return new TcpProxy(server, address.port, targetPort, target.href);
  }

  /** The ports by which the server knows the clients of now. */
  get ports(): number[] {
    return [...this.links].flatMap(({ upstream }) => upstream.localPort ?? []);
  }

  /** New connections lead to another server; those there are stay where they are. */
  retarget(port: number): void {
    this.targetPort = port;
  }

  /** New connections are accepted, as by a kernel, and go nowhere. */
  goSilent(): void {
    this.isSilent = true;
    for (const link of this.links) hold(link);
  }

  /** New connections get through again; the silent ones stay so. */
  speak(): void {
    this.isSilent = false;
  }

  /** New connections get through again, and what the silent ones held back arrives now, however late. */
  letGo(): void {
    this.isSilent = false;
    for (const link of this.links) this.forward(link);
  }

  /** What is sent arrives, what is answered doesn't; new connections are as usual. */
  swallowAnswers(): void {
    for (const { upstream } of this.links) upstream.unpipe().resume();
  }

  /** Connections are reset; new ones get through. */
  reset(): void {
    for (const socket of this.clients) socket.resetAndDestroy();
  }

  /** As if the server were gone: resets what there is and refuses what comes. */
  async goDown(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.reset();
    await closed;
  }

  /** New connections are refused; those there are stay as they are. */
  refuse(): void {
    this.server.close();
  }

  async comeUp(): Promise<void> {
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  async close(): Promise<void> {
    if (this.server.listening) await this.goDown();
    else this.reset();
  }

  private accept(client: Socket): void {
    this.accepted += 1;
    this.clients.add(client);
    client.on('error', () => undefined);
    client.on('close', () => this.clients.delete(client));
    if (this.isSilent) return;
    const link = { client, upstream: tcpConnect(this.targetPort, '127.0.0.1') };
    this.links.add(link);
    link.upstream.on('error', () => undefined);
    client.on('close', () => link.upstream.destroy());
    link.upstream.on('close', () => {
      this.links.delete(link);
      client.destroy();
    });
    this.forward(link);
  }

  private forward({ client, upstream }: Link): void {
    if (this.latencyMs === 0) client.pipe(upstream).pipe(client);
    else client.pipe(later(this.latencyMs)).pipe(upstream).pipe(later(this.latencyMs)).pipe(client);
  }
}

function hold({ client, upstream }: Link): void {
  client.pause().unpipe();
  upstream.pause().unpipe();
}

/** Passes everything on in its order, each part `ms` after it came. */
function later(ms: number): Transform {
  return new Transform({
    transform(chunk, _encoding, taken) {
      setTimeout(() => this.push(chunk), ms);
      taken();
    },
    flush(done) {
      setTimeout(done, ms);
    },
  });
}
