"""A reference interpreter of uSID tables: RFC 9800's shift, and longest-prefix look-ups in a plan's entries."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network

from hpn.testbed.fabric.model import Fabric
from hpn.testbed.routing.srv6.plan import Behaviour, Entry, UsidPlan

_BLOCK, _USID = 32, 16
_TTL = 32


def walked(plan: UsidPlan, source: str, port: int, carrier: str) -> tuple[list[str], str]:
    """The links that a packet crosses from a port of a NIC, and the NIC whose host removes the header; '' if none."""
    fabric, address = plan.fabric, int(IPv6Address(carrier))
    link = fabric.nic(source).links[port]
    crossed, node = [link.name], link.upper.node
    for _ in range(_TTL):
        entry = lookup(plan, node, address)
        while entry is not None and entry.behaviour is Behaviour.END:
            address = shifted(address)
            entry = lookup(plan, node, address)
        if entry is not None and entry.behaviour is Behaviour.END_X:
            address, entry = shifted(address), lookup(plan, node, int(IPv6Address(entry.nh6)))
        if entry is None:
            return crossed, ""
        if entry.behaviour is Behaviour.END_DT6:
            return crossed, _nic_at(fabric, node, entry)
        link = next(each for each in fabric.links_of(node) if each.end_at(node).name == entry.port)
        crossed.append(link.name)
        assert entry.mac == link.far_end(node).mac
        node = link.far_end(node).node
    return crossed, ""


def shifted(address: int) -> int:
    """The address without its first uSID, zeros behind (RFC 9800 section 4.1.1)."""
    rest = 128 - _BLOCK
    return address >> rest << rest | (address << _USID) & ((1 << rest) - 1)


def lookup(plan: UsidPlan, node: str, address: int) -> Entry | None:
    """The entry with the longest prefix of an address."""
    table = _table(plan, node)
    sizes = sorted({size for size, _ in table}, reverse=True)
    fitting = (table.get((size, address >> 128 - size)) for size in sizes)
    return next((each for each in fitting if each is not None), None)


@lru_cache(256)
def _table(plan: UsidPlan, node: str) -> dict[tuple[int, int], Entry]:
    """Entries by length and bits of their prefixes."""
    nets = ((IPv6Network(entry.prefix), entry) for entry in plan.table(node))
    return {(net.prefixlen, int(net.network_address) >> 128 - net.prefixlen): entry for net, entry in nets}


def _nic_at(fabric: Fabric, host: str, entry: Entry) -> str:
    return next(nic.name for nic in fabric.nics_of(host) if nic.lag == entry.port)
