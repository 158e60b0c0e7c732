"""Decoders of the kernel's rtnetlink messages: links, neighbours, routes, and route look-up answers. Pure.

Changes when the lab listens to something new.

Most messages are about routes, and each repeats all next hops whenever one changes. So the total over a fabric's
switches grows with the square of its links. Next hops are therefore only counted, and decoded on demand.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from socket import AF_INET, AF_UNSPEC, inet_ntoa
from typing import overload

from hpn.testbed.kernel.rtnetlink import nlmsg, rtnl

_U16, _U32, _S32 = struct.Struct("=H"), struct.Struct("=I"), struct.Struct("=i")
_RTA_DST, _RTA_OIF, _RTA_PRIORITY, _RTA_MULTIPATH, _RTA_TABLE = 1, 4, 6, 9, 15
_RTNEXTHOP = 8  # bytes of struct rtnexthop, before its attributes


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
    """An IPv4 route. ``kind`` is RTN_*, ``oifs`` every next hop's interface; ``gone`` when it was deleted.

    Only the length of ``oifs`` is available without decoding.
    """

    at_ns: int
    prefix: str
    table: int
    protocol: int
    kind: int
    oifs: Sequence[int]
    gone: bool
    metric: int


class NextHops(Sequence[int]):
    """Interfaces of a multipath route's next hops, decoded from its message (RTA_MULTIPATH)."""

    __slots__ = ("_count", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = _count_hops(data)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return _nexthops(self._data)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def parse_event(at_ns: int, kind: int, body: bytes) -> LinkEvent | NeighbourEvent | RouteEvent | None:
    """Decode a link, neighbour or route message; None for anything else."""
    if kind in (rtnl.RTM_NEWLINK, rtnl.RTM_DELLINK):
        family, _, ifindex, flags, _ = rtnl.IFINFO.unpack_from(body)
        if family != AF_UNSPEC:
            return None
        name = nlmsg.attributes(body[rtnl.IFINFO.size :]).get(3, b"").rstrip(b"\0").decode(errors="replace")
        return LinkEvent(
            at_ns, ifindex, name, bool(flags & rtnl.IFF_UP), bool(flags & rtnl.IFF_LOWER_UP), kind == rtnl.RTM_DELLINK
        )
    if kind in (rtnl.RTM_NEWNEIGH, rtnl.RTM_DELNEIGH):
        family, ifindex, state, _, _ = rtnl.NDMSG.unpack_from(body)
        if family != AF_INET:
            return None
        found = nlmsg.attributes(body[rtnl.NDMSG.size :])
        mac = found[2].hex(":") if len(found.get(2, b"")) == 6 else None
        return NeighbourEvent(at_ns, ifindex, inet_ntoa(found[1]), mac, state, kind == rtnl.RTM_DELNEIGH)
    if kind in (rtnl.RTM_NEWROUTE, rtnl.RTM_DELROUTE):
        return _parse_route(at_ns, kind, body)
    return None


def parse_peer(body: bytes) -> tuple[int, int, int | None] | None:
    """Return an interface, its peer (IFLA_LINK) and the id of the peer's namespace, None for its own."""
    _, _, ifindex, _, _ = rtnl.IFINFO.unpack_from(body)
    found = nlmsg.attributes(body[rtnl.IFINFO.size :])
    if 5 not in found:
        return None
    netns_id = found.get(37)  # IFLA_LINK_NETNSID
    return ifindex, *_U32.unpack(found[5]), None if netns_id is None else _S32.unpack(netns_id)[0]


def _parse_route(at_ns: int, kind: int, body: bytes) -> RouteEvent | None:
    family, length, _, _, table, protocol, _, route_kind, _ = rtnl.RTMSG.unpack_from(body)
    if family != AF_INET:
        return None
    destination, metric = b"", 0
    oifs: Sequence[int] = ()
    at, end = rtnl.RTMSG.size, len(body) - 3
    while at < end:
        size, attribute = nlmsg.ATTR.unpack_from(body, at)
        if size < 4:
            break
        attribute &= nlmsg.ATTR_TYPE
        if attribute == _RTA_DST:
            destination = body[at + 4 : at + 8]
        elif attribute == _RTA_MULTIPATH:
            oifs = NextHops(body[at + 4 : at + size])
        elif attribute == _RTA_OIF:
            oifs = _U32.unpack_from(body, at + 4)
        elif attribute == _RTA_TABLE:
            (table,) = _U32.unpack_from(body, at + 4)
        elif attribute == _RTA_PRIORITY:
            (metric,) = _U32.unpack_from(body, at + 4)
        at += size + 3 & ~3
    return RouteEvent(
        at_ns, _prefix(destination, length), table, protocol, route_kind, oifs, kind == rtnl.RTM_DELROUTE, metric
    )


@lru_cache(1 << 16)
def _prefix(destination: bytes, length: int) -> str:
    """Return 'a.b.c.d/len'; cached, because a fabric has few prefixes and many messages about each."""
    return f"{inet_ntoa(destination) if destination else '0.0.0.0'}/{length}"


def parse_hop(body: bytes) -> tuple[int, str | None]:
    """Return (out interface, gateway) of a route look-up's answer."""
    found = nlmsg.attributes(body[rtnl.RTMSG.size :])
    gateway = inet_ntoa(found[5]) if 5 in found else None
    return _U32.unpack(found[4])[0] if 4 in found else 0, gateway


def _count_hops(data: bytes) -> int:
    """Return the number of next hops in RTA_MULTIPATH; nearly always all have one size: interface and gateway."""
    size = _U16.unpack_from(data)[0] if len(data) >= _RTNEXTHOP else 0
    if size >= _RTNEXTHOP and not (size & 3 or len(data) % size):
        count = len(data) // size
        if data[0::size] == data[0:1] * count and data[1::size] == data[1:2] * count:
            return count
    return sum(1 for _ in _nexthops(data))


def _nexthops(data: bytes) -> Iterator[int]:
    at = 0
    while at + _RTNEXTHOP <= len(data):
        size, _, _, ifindex = struct.unpack_from("=HBBi", data, at)
        if size < _RTNEXTHOP:
            return
        yield ifindex
        at += size + 3 & ~3
