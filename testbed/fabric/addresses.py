"""Addresses, MACs and numbers of a fabric: pure arithmetic on coordinates.

* NICs: 10.0.0.0/8, split rail / segment / host; at the usual sizes 10.RAIL.SEGMENT.HOST with a /24 per segment.
* Switch-switch links: /31s (RFC 3021) from 172.16.0.0/12. Router IDs: from 192.168.0.0/16.
* MACs are locally administered: 02:01 NICs, 02:02 gateways (shared by the ToRs of a set), 06 switch ports.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface, IPv4Network

from hpn.testbed.errors import InputError

_LINK_BASE = 172 << 24 | 16 << 16
LINKS = IPv4Network((_LINK_BASE, 12))
"""Network of switch-switch links."""
_LINK_COUNT = 1 << 19  # /31s in a /12
_ROUTER_BASE = 192 << 24 | 168 << 16


def interface_in(text: str) -> IPv4Interface | None:
    """Return an address with its subnet, as '10.0.0.1/24' in a user's file; None if it is none."""
    try:
        return IPv4Interface(text)
    except ValueError:
        return None


def dotted(value: int) -> str:
    """Format a 32-bit number as 'a.b.c.d'."""
    return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


def _mac(prefix: int, value: int) -> str:
    raw = f"{prefix << 32 | value & 0xFFFFFFFF:012x}"
    return ":".join(raw[i : i + 2] for i in range(0, 12, 2))


def switch_port_mac(ifindex: int) -> str:
    """Return the MAC of a routed switch port."""
    return _mac(0x0600, ifindex)


def router_id(index: int) -> str:
    """Return the BGP router ID of the ``index``-th switch. InputError when there are more than 65,534."""
    if index >= 65_534:
        raise InputError("more than 65,534 switches; lower pods, segments, rails or aggs")
    return dotted(_ROUTER_BASE + index + 1)


def link_addresses(index: int) -> tuple[str, str]:
    """Return both ends, 'a.b.c.d/31', of the ``index``-th switch-switch link. InputError past 524,288 links."""
    if index >= _LINK_COUNT:
        raise InputError(f"more than {_LINK_COUNT:,} links between switches; lower pods, segments or aggs")
    base = _LINK_BASE + 2 * index
    return dotted(base) + "/31", dotted(base + 1) + "/31"


@dataclass(frozen=True, slots=True)
class NicPlan:
    """Split of the 24 bits below 10/8 into rail, segment and host. Widths in bits; ``first`` is rail 0's number."""

    rail_bits: int
    segment_bits: int
    host_bits: int
    first: int = 0

    @classmethod
    def for_sizes(cls, rails: int, segments: int, hosts: int) -> NicPlan:
        """Use octets where they fit, otherwise the narrowest split. InputError when 24 bits are too few."""
        need = [max(1, (n - 1).bit_length()) for n in (rails, segments)] + [(hosts + 2).bit_length()]
        if max(need) <= 8:
            return cls(8, 8, 8)
        if sum(need) > 24:
            raise InputError(
                f"{rails} rails x {segments} segments x {hosts} hosts do not fit into 10.0.0.0/8; lower one of them"
            )
        return cls(24 - need[1] - need[2], need[1], need[2])

    def clear_of(self, taken: Collection[IPv4Network], rails: int, segments: int) -> NicPlan:
        """Return the plan with the first numbers of rails whose subnets are in none of these networks.

        InputError when every one is taken.
        """
        ranges = [(int(each.network_address), int(each.broadcast_address)) for each in taken]
        for first in range((1 << self.rail_bits) - rails + 1):
            plan = replace(self, first=first)
            subnets = [(plan._base(rail, 0), plan._base(rail, segments) - 1) for rail in range(rails)]
            if not any(low <= last and start <= high for low, high in subnets for start, last in ranges):
                return plan
        raise InputError("addresses of switches leave hosts no subnet in 10.0.0.0/8; give each NIC an ip")

    @property
    def prefix_len(self) -> int:
        """Length of one segment's subnet on one rail."""
        return 32 - self.host_bits

    def _base(self, rail: int, segment: int) -> int:
        return (10 << 24) + ((self.first + rail) << (24 - self.rail_bits)) + (segment << self.host_bits)

    def nic_ip(self, rail: int, segment: int, host: int) -> str:
        """Return the IP of a NIC."""
        return dotted(self._base(rail, segment) + host + 1)

    def gateway(self, rail: int, segment: int) -> str:
        """Return the last usable address of the subnet."""
        return dotted(self._base(rail, segment) + (1 << self.host_bits) - 2)

    def rail_network(self, rail: int) -> str:
        """Return the network of all NICs on one rail."""
        return f"{dotted(self._base(rail, 0))}/{8 + self.rail_bits}"

    def nic_mac(self, rail: int, segment: int, host: int) -> str:
        """Return the MAC of a NIC, equal on all its ports: 02:01 and the low 24 bits of the IP."""
        return _mac(0x0201, (self._base(rail, segment) + host + 1) & 0xFFFFFF)

    def gateway_mac(self, rail: int, segment: int) -> str:
        """Return the MAC of the gateway, equal on every ToR that serves the subnet."""
        return _mac(0x0202, (self._base(rail, segment) + 1) & 0xFFFFFF)
