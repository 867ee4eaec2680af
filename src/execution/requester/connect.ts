/**
 * Connects to allowed addresses only.
 * Invariant: every connection is a new one and judged by the address its socket is really connected to, before a byte
 * goes out. A name is resolved once for each, and only what that answer holds is tried: another answer a moment later
 * changes nothing.
 */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { isIP, type LookupFunction, connect as openSocket, type Socket } from 'node:net';
import { connect as secure } from 'node:tls';
import type { AddressRule } from './addresses.js';

/** Resolves a name to all of its addresses; `dns.lookup` is one. */
export type Lookup = (
  name: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface ConnectOptions {
  readonly isAllowed: AddressRule;
  readonly lookup: Lookup;
  /** Destroys the connection, also one that is only being made. */
  readonly signal: AbortSignal;
}

/** The address is not one that requests may go to; nothing was sent. */
export class AddressDenied extends Error {
  constructor(
    readonly host: string,
    readonly addresses: readonly string[],
  ) {
    super('denied address');
  }
}

/** The system's resolver: the hosts file, search domains and all. */
export const systemLookup: Lookup = (name, options, callback) => lookup(name, options, callback);

/** Where one address does not answer, the next is tried after this long. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

/** A connection to the server of `url`, secured where the URL says so. Calls back once. */
export function connect(
  url: URL,
  options: ConnectOptions,
  callback: (error: Error | null, socket: Socket) => void,
): void {
  const { isAllowed, signal } = options;
  const isSecure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const socket = openSocket({
    host,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    lookup: allowedOnly(options),
    noDelay: true,
    signal,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
  });
  let isConnected = false;
  socket.on('error', (error) => {
    // Later ones are heard by whoever has the connection then.
    if (!isConnected) callback(error, socket);
  });
  // A literal address is looked up by nobody. The attempt has not begun before the next turn.
  if (isIP(host) !== 0 && !isAllowed(host)) {
    socket.destroy(new AddressDenied(host, [host]));
    return;
  }
  socket.once('connect', () => {
    const { remoteAddress = 'unknown' } = socket;
    if (!isAllowed(remoteAddress)) {
      socket.destroy(new AddressDenied(host, [remoteAddress]));
      return;
    }
    isConnected = true;
    if (isSecure) shakeHands(socket, host, callback);
    else callback(null, socket);
  });
}

function shakeHands(socket: Socket, host: string, callback: (error: Error | null, socket: Socket) => void): void {
  // An address has no server name; its certificate is checked for the address.
  const servername = isIP(host) === 0 ? host : '';
  const secured = secure({ socket, host, servername, ALPNProtocols: ['http/1.1'] });
  let isSecured = false;
  secured.on('error', (error) => {
    if (!isSecured) callback(error, secured);
  });
  secured.once('secureConnect', () => {
    isSecured = true;
    callback(null, secured);
  });
}

/** Of what a name stands for, the addresses that are allowed; an error when there is none among them. */
function allowedOnly({ isAllowed, lookup }: ConnectOptions): LookupFunction {
  return (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, addresses) => {
      if (error !== null) {
        callback(error, '');
        return;
      }
      const allowed = addresses.filter(({ address }) => isAllowed(address));
      const [first] = allowed;
      if (first === undefined) {
        const denied = addresses.map(({ address }) => address);
        callback(new AddressDenied(name, denied), '');
      } else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}
