"""Numbers of SRv6 in a fabric: uSIDs, and the IPv6 addresses that NICs and next hops have. Pure.

A uSID has 16 bits. Of the global block (GIB, 0x0001 to 0xdfff) every switch has one, its uN, and every NIC one. Of the
local block (LIB, 0xe000 to 0xffff) a switch numbers its ends of parallel links, each a uA; other switches use the same
numbers for theirs. RFC 9800 leaves the split to the operator. Zero ends a carrier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Network
from socket import AF_INET6, inet_ntop

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Port
from hpn.testbed.fabric.srv6_spec import BLOCK_BITS, Srv6Spec

USID_BITS = 16
SID_BITS = BLOCK_BITS + USID_BITS
"""Bits that a switch looks up: the block and the first uSID."""
MOST_USIDS = (128 - BLOCK_BITS) // USID_BITS
"""uSIDs that one address carries; a longer list would need a segment routing header."""
GIB = range(0x0001, 0xE000)
LIB = range(0xE000, 0x10000)
_INNER, _ADJACENT, _WAY, _LINK_LOCAL = 0xFD00 << 112, 0xFD01 << 112, 0xFD02 << 112, 0xFE80 << 112


@dataclass(frozen=True)
class Numbers:
    """uSIDs of a fabric. ``adjacency``: those of ports, by label; only where a pair has parallel links."""

    block: int
    node: Mapping[str, int]
    nic: Mapping[str, int]
    adjacency: Mapping[str, int]

    def carrier(self, usids: Sequence[int]) -> str:
        """Return the IPv6 destination address that carries these uSIDs, the first in front. ValueError if too many."""
        if len(usids) > MOST_USIDS:
            raise ValueError(f"{len(usids)} uSIDs, and a carrier holds {MOST_USIDS}")
        value = self.block
        for place, usid in enumerate(usids, 1):
            value |= usid << 128 - BLOCK_BITS - USID_BITS * place
        return ip6(value)

    @property
    def whole(self) -> str:
        """The locator block: 'fc00::/32'."""
        return f"{ip6(self.block)}/{BLOCK_BITS}"

    def prefix(self, usid: int) -> str:
        """Return the prefix that a switch looks up for a uSID: 'fc00:0:1::/48'."""
        return f"{self.carrier((usid,))}/{SID_BITS}"


def numbered(fabric: Fabric) -> Numbers:
    """Number a fabric, with the default block if it has none. InputError where 16 bits are too few."""
    block = int(IPv6Network((fabric.spec.srv6 or Srv6Spec()).block).network_address)
    if len(fabric.switches) + len(fabric.nics) > len(GIB):
        text = f"srv6: {len(fabric.switches):,} switches and {len(fabric.nics):,} NICs"
        raise InputError(f"{text} are more than {len(GIB):,} uSIDs; lower pods, segments, hosts or rails")
    usids = iter(GIB)
    nodes = {node.name: next(usids) for node in fabric.switches}
    nics = {nic.name: next(usids) for nic in fabric.nics}
    return Numbers(block, nodes, nics, _adjacencies(fabric))


def _adjacencies(fabric: Fabric) -> Mapping[str, int]:
    """Return the uAs of ports by label."""
    count = Counter(_pair(fabric, link) for link in fabric.links)
    found: dict[str, int] = {}
    used: Counter[str] = Counter()
    for link in fabric.links:
        if link.kind is LinkKind.PEER or count[_pair(fabric, link)] == 1:
            continue
        for port in (link.upper,) if link.kind is LinkKind.ACCESS else (link.lower, link.upper):
            if used[port.node] == len(LIB):
                raise InputError(f"srv6: {port.node} has more than {len(LIB):,} parallel links; lower uplinks")
            found[port.label] = LIB[used[port.node]]
            used[port.node] += 1
    return found


def _pair(fabric: Fabric, link: Link) -> tuple[str, str]:
    """Return what a link joins: two switches, or a NIC and its ToR."""
    if link.kind is LinkKind.ACCESS:
        return fabric.nic_of_link(link.name).name, link.upper.node
    first, second = sorted((link.lower.node, link.upper.node))
    return first, second


def inner_addresses(fabric: Fabric) -> Mapping[str, str]:
    """Return the IPv6 address of each NIC inside the carriers: fd00::/16 and its number, the same on every plane."""
    return {nic.name: ip6(_INNER | number) for number, nic in enumerate(fabric.nics, 1)}


def gateway(there: Port) -> str:
    """Return the link-local address by which a switch knows the far end of a link; no device has it."""
    return ip6(_LINK_LOCAL | there.ifindex)


def adjacent(there: Port) -> str:
    """Return the address by which End.X looks up the far end of a link, of all links of the switch."""
    return ip6(_ADJACENT | there.ifindex)


def way(number: int) -> str:
    """Return the address by whose route a host sends along static path ``number``, from 0; nobody has it."""
    return ip6(_WAY | number)


def ip6(value: int) -> str:
    """Format a 128-bit number as the kernel does."""
    return inet_ntop(AF_INET6, value.to_bytes(16, "big"))
