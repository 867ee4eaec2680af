/** Faults of a network that no database reports: a proxy between a client and its server, in the test's hands. */
import { once } from 'node:events';
import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net';

/** A TCP proxy that can go silent as a cut network does: it stops forwarding both ways, without FIN or RST. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private readonly upstreams = new Set<Socket>();
  private isSilent = false;
  /** Connections it was asked for. */
  accepted = 0;

  private constructor(
    private readonly server: Server,
    private readonly port: number,
    private readonly targetPort: number,
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

  /** New connections are accepted, as by a kernel, and go nowhere. */
  goSilent(): void {
    this.isSilent = true;
    for (const socket of this.sockets) socket.pause().unpipe();
  }

  /** What is sent arrives, what is answered doesn't; new connections are as usual. */
  swallowAnswers(): void {
    for (const upstream of this.upstreams) upstream.unpipe().resume();
  }

  /** New connections get through again; the silent ones stay so. */
  speak(): void {
    this.isSilent = false;
  }

  /** As if the server were gone: resets what there is and refuses what comes. */
  async goDown(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const socket of this.sockets) socket.resetAndDestroy();
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
  }

  private accept(socket: Socket): void {
    this.accepted += 1;
    this.keep(socket);
    if (this.isSilent) return;
    const upstream = tcpConnect(this.targetPort, '127.0.0.1');
    this.keep(upstream);
    this.upstreams.add(upstream);
    socket.pipe(upstream).pipe(socket);
    socket.on('close', () => upstream.destroy());
    upstream.on('close', () => {
      this.upstreams.delete(upstream);
      socket.destroy();
    });
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.sockets.delete(socket));
  }
}
