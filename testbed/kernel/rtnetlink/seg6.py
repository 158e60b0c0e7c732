"""IPv6 for static SRv6: requests for addresses, neighbours and routes that treat segments, and routes read back. Pure.

Layouts: linux/rtnetlink.h, linux/lwtunnel.h, linux/seg6_local.h. Linux has NEXT-CSID since 6.1 (End) and 6.6 (End.X).
Entries that shift uSIDs count packets, bytes and errors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from socket import AF_INET6, inet_ntop, inet_pton

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.nlmsg import attributes
from hpn.testbed.kernel.rtnetlink.rtnl import attribute, message

_EXCL, _CREATE, _REPLACE = 0x200, 0x400, 0x100
_NESTED = 0x8000
RTN_UNICAST, RTN_LOCAL = 1, 2
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_TABLE, _RTA_ENCAP_TYPE, _RTA_ENCAP = 1, 4, 5, 15, 21, 22
_ENCAP_SEG6, _ENCAP_SEG6_LOCAL = 5, 7
_SRH, _ENCAP_REDUCED = 1, 3  # SEG6_IPTUNNEL_SRH, SEG6_IPTUN_MODE_ENCAP_RED
_ONE_SEGMENT = bytes([0, 2, 4, 0, 0, 0, 0, 0])  # of a routing header (linux/seg6.h): length, type 4, none left
_RULE_PRIORITY = 1000
_RTPROT_BOOT = 3
_ACTION, _TABLE, _NH6, _COUNTERS, _FLAVORS = 1, 3, 5, 10, 11  # SEG6_LOCAL_*
_OPERATION, _BLOCK_BITS, _USID_BITS = 1, 2, 3  # SEG6_LOCAL_FLV_*
_NEXT_CSID = 1 << 4
_PACKETS, _BYTES, _ERRORS = 2, 3, 4  # SEG6_LOCAL_CNT_*
END, END_X, END_DT6 = 1, 2, 7  # SEG6_LOCAL_ACTION_*
_NODAD = 0x02
_U16, _U32, _U64 = struct.Struct("=H"), struct.Struct("=I"), struct.Struct("=Q")


@dataclass(frozen=True, slots=True)
class Seg6Local:
    """Treatment of packets by segment. ``bits``: of block and uSID, for NEXT-CSID; None: the whole address is one SID.

    ``nh6``: of End.X. ``table``: of End.DT6.
    """

    action: int
    bits: tuple[int, int] | None = None
    nh6: str = ""
    table: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of an entry since it was added."""

    packets: int
    octets: int
    errors: int


@dataclass(frozen=True, slots=True)
class Route6:
    """An IPv6 route as the kernel reports it. ``local``: the packet ends here, or is treated here."""

    prefix: str
    table: int
    protocol: int
    local: bool
    oif: int
    gateway: str
    treatment: Seg6Local | None
    counts: Counts | None


def add_address6(ifindex: int, address: str) -> bytes:
    """Return a request to add an IPv6 address of its own ('fd00::1'), without duplicate address detection."""
    raw = inet_pton(AF_INET6, address)
    body = struct.pack("=BBBBI", AF_INET6, 128, _NODAD, 0, ifindex) + attribute(2, raw) + attribute(1, raw)
    return message(rtnl.RTM_NEWADDR, _CREATE | _EXCL, body)


def add_neighbour6(ifindex: int, address: str, mac: str) -> bytes:
    """Return a request to add a permanent neighbour, for which nothing is asked on the wire."""
    body = rtnl.NDMSG.pack(AF_INET6, ifindex, rtnl.NUD_PERMANENT, 0, 0)
    body += attribute(1, inet_pton(AF_INET6, address)) + attribute(2, rtnl.mac_bytes(mac))
    return message(rtnl.RTM_NEWNEIGH, _CREATE | _REPLACE, body)


def add_route6(
    prefix: str,
    oif: int,
    *,
    gateway: str = "",
    treatment: Seg6Local | None = None,
    local: bool = False,
    table: int = rtnl.RT_TABLE_MAIN,
) -> bytes:
    """Return a request to add or replace a route; ``local``: one that no port takes away."""
    address, _, length = prefix.partition("/")
    kind = RTN_LOCAL if local else RTN_UNICAST
    body = rtnl.RTMSG.pack(AF_INET6, int(length), 0, 0, 0, rtnl.RTPROT_STATIC, 0, kind, 0)
    body += attribute(_RTA_DST, inet_pton(AF_INET6, address)) + attribute(_RTA_TABLE, _U32.pack(table))
    body += attribute(_RTA_OIF, _U32.pack(oif))
    if gateway:
        body += attribute(_RTA_GATEWAY, inet_pton(AF_INET6, gateway))
    if treatment is not None:
        body += attribute(_RTA_ENCAP_TYPE, _U16.pack(_ENCAP_SEG6_LOCAL))
        body += attribute(_RTA_ENCAP | _NESTED, _encoded(treatment))
    return message(rtnl.RTM_NEWROUTE, _CREATE | _REPLACE, body)


def _encoded(treatment: Seg6Local) -> bytes:
    body = attribute(_ACTION, _U32.pack(treatment.action))
    if treatment.nh6:
        body += attribute(_NH6, inet_pton(AF_INET6, treatment.nh6))
    if treatment.table:
        body += attribute(_TABLE, _U32.pack(treatment.table))
    if treatment.bits is not None:
        block, usid = treatment.bits
        flavors = attribute(_OPERATION, _U32.pack(_NEXT_CSID)) + attribute(_BLOCK_BITS, bytes([block]))
        body += attribute(_FLAVORS | _NESTED, flavors + attribute(_USID_BITS, bytes([usid])))
    zeros = b"".join(attribute(each, bytes(8)) for each in (_PACKETS, _BYTES, _ERRORS))
    return body + attribute(_COUNTERS | _NESTED, zeros)


def look_up_marked(mark: int, table: int) -> bytes:
    """Return a request to look up IPv6 packets of sockets with that mark in ``table``."""
    return rtnl.add_rule(table, _RULE_PRIORITY, mark=mark, family=AF_INET6)


def carry(address: str, oif: int, carrier: str) -> bytes:
    """Return a request to send what is routed to ``address`` in IPv6 to ``carrier``, without a routing header."""
    segments = _ONE_SEGMENT + inet_pton(AF_INET6, carrier)
    encap = attribute(_SRH, _U32.pack(_ENCAP_REDUCED) + segments)
    body = _way(address, oif) + attribute(_RTA_ENCAP_TYPE, _U16.pack(_ENCAP_SEG6))
    return message(rtnl.RTM_NEWROUTE, _CREATE | _REPLACE, body + attribute(_RTA_ENCAP | _NESTED, encap))


def carry_no_more(address: str, oif: int) -> bytes:
    """Return a request to remove the route that ``carry`` adds."""
    return message(rtnl.RTM_DELROUTE, 0, _way(address, oif))


def _way(address: str, oif: int) -> bytes:
    """Return a host route. Its protocol keeps it apart from the tables of a lab, which are static."""
    table, kind = rtnl.RT_TABLE_MAIN, RTN_UNICAST
    body = rtnl.RTMSG.pack(AF_INET6, 128, 0, 0, table, _RTPROT_BOOT, rtnl.RT_SCOPE_UNIVERSE, kind, 0)
    return body + attribute(_RTA_DST, inet_pton(AF_INET6, address)) + attribute(_RTA_OIF, _U32.pack(oif))


def dump_routes6() -> bytes:
    """Return a request for every IPv6 route."""
    return message(rtnl.RTM_GETROUTE, rtnl.NLM_F_DUMP, rtnl.RTMSG.pack(AF_INET6, 0, 0, 0, 0, 0, 0, 0, 0))


def dump_neighbours6() -> bytes:
    """Return a request for every IPv6 neighbour."""
    return message(rtnl.RTM_GETNEIGH, rtnl.NLM_F_DUMP, rtnl.NDMSG.pack(AF_INET6, 0, 0, 0, 0))


def parse_neighbour6(body: bytes) -> tuple[int, str, str] | None:
    """Return interface, address and MAC of a permanent IPv6 neighbour, None for any other."""
    family, ifindex, state, _, _ = rtnl.NDMSG.unpack_from(body)
    found = attributes(body[rtnl.NDMSG.size :])
    if family != AF_INET6 or not state & rtnl.NUD_PERMANENT or len(found.get(2, b"")) != 6:
        return None
    return ifindex, inet_ntop(AF_INET6, found[1]), found[2].hex(":")


def parse_route6(body: bytes) -> Route6 | None:
    """Decode an IPv6 route with one next hop, None for anything else."""
    family, length, _, _, table, protocol, _, kind, _ = rtnl.RTMSG.unpack_from(body)
    found = attributes(body[rtnl.RTMSG.size :])
    if family != AF_INET6 or _RTA_OIF not in found:
        return None
    treatment, counts = _decoded(found) if _RTA_ENCAP in found else (None, None)
    return Route6(
        prefix=f"{inet_ntop(AF_INET6, found.get(_RTA_DST, bytes(16)))}/{length}",
        table=_U32.unpack(found[_RTA_TABLE])[0] if _RTA_TABLE in found else table,
        protocol=protocol,
        local=kind == RTN_LOCAL,
        oif=_U32.unpack(found[_RTA_OIF])[0],
        gateway=inet_ntop(AF_INET6, found[_RTA_GATEWAY]) if _RTA_GATEWAY in found else "",
        treatment=treatment,
        counts=counts,
    )


def _decoded(found: dict[int, bytes]) -> tuple[Seg6Local | None, Counts | None]:
    if _U16.unpack(found[_RTA_ENCAP_TYPE])[0] != _ENCAP_SEG6_LOCAL:
        return None, None
    parts = attributes(found[_RTA_ENCAP])
    flavors = attributes(parts.get(_FLAVORS, b""))
    treatment = Seg6Local(
        action=_U32.unpack(parts[_ACTION])[0],
        bits=(flavors[_BLOCK_BITS][0], flavors[_USID_BITS][0]) if _BLOCK_BITS in flavors else None,
        nh6=inet_ntop(AF_INET6, parts[_NH6]) if _NH6 in parts else "",
        table=_U32.unpack(parts[_TABLE])[0] if _TABLE in parts else 0,
    )
    counted = attributes(parts.get(_COUNTERS, b""))
    if not counted.keys() >= {_PACKETS, _BYTES, _ERRORS}:
        return treatment, None
    packets, octets, errors = (_U64.unpack(counted[each])[0] for each in (_PACKETS, _BYTES, _ERRORS))
    return treatment, Counts(packets, octets, errors)
