"""What the kernel says over rtnetlink: links, neighbours, routes, and the answer to a route look-up. Pure decoders.

Changes when the lab listens to something new.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from socket import AF_INET, AF_UNSPEC, inet_ntoa

from testbed.kernel import rtnl

_U32 = struct.Struct("=I")


@dataclass(frozen=True, slots=True)
class LinkEvent:
    """State of an interface. ``carrier`` is IFF_LOWER_UP; ``gone`` when it was deleted."""

    at_ns: int
    ifindex: int
    name: str
    up: bool
    carrier: bool
    gone: bool


@dataclass(frozen=True, slots=True)
class NeighbourEvent:
    """An IPv4 neighbour entry. ``state`` is a NUD_* bit; ``gone`` when it was deleted."""

    at_ns: int
    ifindex: int
    ip: str
    mac: str | None
    state: int
    gone: bool


@dataclass(frozen=True, slots=True)
class RouteEvent:
    """An IPv4 route. ``kind`` is RTN_*, ``oifs`` every next hop's interface; ``gone`` when it was deleted."""

    at_ns: int
    prefix: str
    table: int
    protocol: int
    kind: int
    oifs: tuple[int, ...]
    gone: bool
    metric: int


def parse_event(at_ns: int, kind: int, body: bytes) -> LinkEvent | NeighbourEvent | RouteEvent | None:
    """What a link, neighbour or route message says; None for anything else."""
    if kind in (rtnl.RTM_NEWLINK, rtnl.RTM_DELLINK):
        family, _, ifindex, flags, _ = rtnl.IFINFO.unpack_from(body)
        if family != AF_UNSPEC:
            return None
        name = rtnl.attributes(body[rtnl.IFINFO.size :]).get(3, b"").rstrip(b"\0").decode(errors="replace")
        return LinkEvent(
            at_ns, ifindex, name, bool(flags & rtnl.IFF_UP), bool(flags & rtnl.IFF_LOWER_UP), kind == rtnl.RTM_DELLINK
        )
    if kind in (rtnl.RTM_NEWNEIGH, rtnl.RTM_DELNEIGH):
        family, ifindex, state, _, _ = rtnl.NDMSG.unpack_from(body)
        if family != AF_INET:
            return None
        found = rtnl.attributes(body[rtnl.NDMSG.size :])
        mac = found[2].hex(":") if len(found.get(2, b"")) == 6 else None
        return NeighbourEvent(at_ns, ifindex, inet_ntoa(found[1]), mac, state, kind == rtnl.RTM_DELNEIGH)
    if kind in (rtnl.RTM_NEWROUTE, rtnl.RTM_DELROUTE):
        return _parse_route(at_ns, kind, body)
    return None


def _parse_route(at_ns: int, kind: int, body: bytes) -> RouteEvent | None:
    family, _, _, _, table, protocol, _, route_kind, _ = rtnl.RTMSG.unpack_from(body)
    if family != AF_INET:
        return None
    found = rtnl.attributes(body[rtnl.RTMSG.size :])
    if 15 in found:
        table = _U32.unpack(found[15])[0]
    oifs = tuple(_nexthops(found[9])) if 9 in found else (_U32.unpack(found[4])[0],) if 4 in found else ()
    metric = _U32.unpack(found[6])[0] if 6 in found else 0
    return RouteEvent(at_ns, rtnl.prefix_of(body), table, protocol, route_kind, oifs, kind == rtnl.RTM_DELROUTE, metric)


def parse_hop(body: bytes) -> tuple[int, str | None]:
    """(out interface, gateway) of a route look-up's answer."""
    found = rtnl.attributes(body[rtnl.RTMSG.size :])
    gateway = inet_ntoa(found[5]) if 5 in found else None
    return _U32.unpack(found[4])[0] if 4 in found else 0, gateway


def _nexthops(data: bytes) -> Iterator[int]:
    at = 0
    while at + 8 <= len(data):
        size, _, _, ifindex = struct.unpack_from("=HBBi", data, at)
        if size < 8:
            return
        yield ifindex
        at += size + 3 & ~3
