/**
 * Which addresses a request may go to. Invariant: without a setting only public unicast addresses; whatever the library
 * has no name for, or cannot read, is refused.
 */
import ipaddr from 'ipaddr.js';

/** Of IPv6 only this has been given out as public; what lies beside it and has no name yet is not for us. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Of the public range by their number, and still a service of the machine's own platform, which takes whoever comes
 * from the machine for its owner: 168.63.129.16 answers Azure's virtual machines alone and hands out their certificates
 * and the configuration of their extensions. The like of other clouds is in ranges that are not public (link-local,
 * carrier NAT, 192.0.0.0/24, unique local).
 */
const PLATFORM_ADDRESSES: ReadonlySet<string> = new Set(['168.63.129.16']);

/** Whether an address, in any of its spellings, may be connected to. */
export type AddressRule = (address: string) => boolean;

/** The rule that lets public addresses pass, and those of `allow` (IP addresses and CIDR ranges; `*` alone: all). */
export function addressRule(allow: readonly string[]): AddressRule {
  if (allow.length === 1 && allow[0] === '*') return (address) => ipaddr.isValid(address);
  const ranges = allow.map(rangeOf);
  return (address) => {
    if (!ipaddr.isValid(address)) return false;
    // An IPv4 address written as IPv6 is the IPv4 address it reaches.
    const parsed = ipaddr.process(address);
    return isPublic(parsed) || ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base, bits));
  };
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== 'unicast' || PLATFORM_ADDRESSES.has(address.toString())) return false;
  return address.kind() === 'ipv4' || address.match(...GLOBAL_IPV6);
}

function rangeOf(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (text.includes('/')) return ipaddr.parseCIDR(text);
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}
