"""rtnetlink messages as bytes: the lab's requests. Pure.

Changes when the lab needs a new request. ``testbed.kernel.rtnetlink.nlmsg`` takes messages of any family
apart, and ``testbed.kernel.rtnetlink.rtnl_events`` decodes the kernel's.
"""

from __future__ import annotations

import struct
from socket import AF_INET, AF_INET6, AF_UNSPEC, inet_aton, inet_ntoa, inet_ntop

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.nlmsg import ATTR, HEADER, attributes

NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
_NLM_F_REPLACE, _NLM_F_EXCL, _NLM_F_CREATE = 0x100, 0x200, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
RTM_NEWADDR = 20
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWNEIGH, RTM_DELNEIGH, RTM_GETNEIGH = 28, 29, 30
RTM_NEWRULE = 32
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38

RTN_UNICAST, RTN_BLACKHOLE = 1, 6
RT_TABLE_MAIN, RT_TABLE_LOCAL = 254, 255
RTPROT_STATIC = 4
PROTO_BIRD = 12
PROTO_BGP = 186  # of zebra
RT_SCOPE_UNIVERSE, RT_SCOPE_LINK = 0, 253
PROTO_HOST_ROUTE = 201
"""rtm_protocol of the /32s that a ToR's ARP-to-host-route daemon installs (unassigned in rtnetlink.h)."""

_IFLA_GROUP = 27
_FR_ACT_TO_TBL = 1
_NTF_USE = 0x01
NUD_REACHABLE, NUD_STALE, NUD_DELAY, NUD_PROBE, NUD_FAILED, NUD_PERMANENT = 0x02, 0x04, 0x08, 0x10, 0x20, 0x80
IFF_UP, _IFF_PROMISC, IFF_LOWER_UP = 0x1, 0x100, 0x10000

IFINFO = struct.Struct("=BxHiII")
RTMSG = struct.Struct("=BBBBBBBBI")
_RULE = struct.Struct("=BBBBBxxBI")
NDMSG = struct.Struct("=BxxxiHBB")
_U32 = struct.Struct("=I")
TCMSG_BYTES = 20

_NAMES = {
    RTM_NEWLINK: "link", RTM_DELLINK: "link removal", RTM_GETLINK: "link look-up", RTM_NEWADDR: "address",
    RTM_NEWROUTE: "route", RTM_NEWRULE: "policy rule",
    RTM_DELROUTE: "route removal", RTM_GETROUTE: "route look-up", RTM_NEWNEIGH: "neighbour",
    RTM_DELNEIGH: "neighbour removal", RTM_NEWQDISC: "queue", RTM_DELQDISC: "queue removal",
    RTM_GETQDISC: "look at queues",
}  # fmt: skip


def attribute(kind: int, value: bytes) -> bytes:
    """Encode a netlink attribute of any family, padded to whole words."""
    size = 4 + len(value)
    return ATTR.pack(size, kind) + value + bytes(-size % 4)


def _u32(kind: int, value: int) -> bytes:
    return ATTR.pack(8, kind) + _U32.pack(value)


def message(kind: int, flags: int, body: bytes) -> bytes:
    """Encode a request of any family; the sender numbers it."""
    return HEADER.pack(16 + len(body), kind, NLM_F_REQUEST | flags, 0, 0) + body


def mac_bytes(mac: str) -> bytes:
    """Return the six bytes of 'aa:bb:...'."""
    return bytes.fromhex(mac.replace(":", ""))


def add_veth(
    name: str,
    ifindex: int,
    ns: NetNs | None,
    peer_name: str,
    peer_ifindex: int,
    peer_ns: NetNs | None,
    *,
    mac: str,
    peer_mac: str,
    mtu: int,
    split_gso: bool = False,
    peer_promiscuous: bool = False,
    group: int = 0,
    peer_group: int = 0,
) -> bytes:
    """Return a request for a veth pair in its two namespaces, with final names, ifindexes, MACs and MTU; first end up.

    The kernel cannot bring up the second end before the pair is joined: ``set_link`` it from its own namespace.
    ``split_gso`` (first end) has the kernel cut GSO bursts into real packets before they leave (FACTS trap 7).
    The ends of a ``group`` of a namespace can be changed together (``set_group``).
    """
    promiscuous = _IFF_PROMISC if peer_promiscuous else 0
    peer = IFINFO.pack(AF_UNSPEC, 0, peer_ifindex, promiscuous, promiscuous)
    peer += _link_attributes(peer_name, peer_ns, peer_mac, mtu, peer_group)
    info = attribute(1, b"veth\0")  # IFLA_INFO_KIND
    info += attribute(2, attribute(1, peer))  # IFLA_INFO_DATA { VETH_INFO_PEER }
    body = IFINFO.pack(AF_UNSPEC, 0, ifindex, IFF_UP, IFF_UP) + _link_attributes(name, ns, mac, mtu, group)
    if split_gso:
        body += _u32(40, 1)  # IFLA_GSO_MAX_SEGS
    return message(RTM_NEWLINK, _NLM_F_CREATE | _NLM_F_EXCL, body + attribute(18, info))  # IFLA_LINKINFO


def _link_attributes(name: str, ns: NetNs | None, mac: str, mtu: int, group: int) -> bytes:
    body = attribute(3, name.encode() + b"\0") + attribute(1, mac_bytes(mac)) + _u32(4, mtu)
    body += _u32(31, 1) + _u32(32, 1)  # IFLA_NUM_TX_QUEUES, IFLA_NUM_RX_QUEUES: one queue keeps packets in order
    if group:
        body += _u32(_IFLA_GROUP, group)
    return body + _u32(28, ns.fd) if ns is not None else body  # IFLA_NET_NS_FD


def set_link(ifindex: int, *, up: bool) -> bytes:
    """Return a request to set the administrative state of an interface."""
    return message(RTM_NEWLINK, 0, IFINFO.pack(AF_UNSPEC, 0, ifindex, IFF_UP if up else 0, IFF_UP))


def delete_link(ifindex: int) -> bytes:
    """Return a request to remove an interface; the other end of a veth goes with it."""
    return message(RTM_DELLINK, 0, IFINFO.pack(AF_UNSPEC, 0, ifindex, 0, 0))


def set_group(group: int, *, up: bool) -> bytes:
    """Return one request to set the administrative state of a whole group, under one hold of the kernel's lock."""
    body = IFINFO.pack(AF_UNSPEC, 0, 0, IFF_UP if up else 0, IFF_UP) + _u32(_IFLA_GROUP, group)
    return message(RTM_NEWLINK, 0, body)


def get_link(ifindex: int, netns_id: int | None = None) -> bytes:
    """Return a request for one interface, of the namespace with this id in the socket's own; without statistics."""
    body = IFINFO.pack(AF_UNSPEC, 0, ifindex, 0, 0) + _u32(29, 1 << 3)  # IFLA_EXT_MASK: RTEXT_FILTER_SKIP_STATS
    if netns_id is not None:
        body += _u32(46, netns_id)  # IFLA_TARGET_NETNSID
    return message(RTM_GETLINK, 0, body)


def add_address(ifindex: int, address: str) -> bytes:
    """Return a request to add 'a.b.c.d/len' to an interface."""
    ip, _, length = address.partition("/")
    raw = inet_aton(ip)
    body = struct.pack("=BBBBI", AF_INET, int(length), 0, 0, ifindex) + attribute(2, raw) + attribute(1, raw)
    return message(RTM_NEWADDR, _NLM_F_CREATE | _NLM_F_EXCL, body)


def add_route(
    prefix: str,
    *,
    oif: int = 0,
    gateway: str | None = None,
    kind: int = RTN_UNICAST,
    protocol: int = RTPROT_STATIC,
    table: int = RT_TABLE_MAIN,
) -> bytes:
    """Return a request to add or replace a route; its scope is link without a gateway, else universe."""
    return message(RTM_NEWROUTE, _NLM_F_CREATE | _NLM_F_REPLACE, _route(prefix, oif, gateway, kind, protocol, table))


def delete_route(
    prefix: str,
    *,
    oif: int = 0,
    gateway: str | None = None,
    kind: int = RTN_UNICAST,
    protocol: int = RTPROT_STATIC,
) -> bytes:
    """Return a request to remove the route of the main table with exactly these properties."""
    return message(RTM_DELROUTE, 0, _route(prefix, oif, gateway, kind, protocol, RT_TABLE_MAIN))


def _route(prefix: str, oif: int, gateway: str | None, kind: int, protocol: int, table: int) -> bytes:
    ip, _, length = prefix.partition("/")
    scope = RT_SCOPE_LINK if gateway is None and kind == RTN_UNICAST else RT_SCOPE_UNIVERSE
    body = RTMSG.pack(AF_INET, int(length), 0, 0, 0, protocol, scope, kind, 0) + attribute(1, inet_aton(ip))
    body += _u32(15, table)  # RTA_TABLE
    if oif:
        body += _u32(4, oif)
    if gateway is not None:
        body += attribute(5, inet_aton(gateway))
    return body


def add_rule(table: int, priority: int, *, iif: str = "", src: str = "", mark: int = 0, family: int = AF_INET) -> bytes:
    """Return a request to look up packets from ``iif``, with source ``src`` or with ``mark`` in ``table`` before main.

    Packets without a usable route there continue with the next rule. Layout: linux/fib_rules.h.
    """
    body = _RULE.pack(family, 0, 32 if src else 0, 0, 0, _FR_ACT_TO_TBL, 0)
    if src:
        body += attribute(2, inet_aton(src))
    if iif:
        body += attribute(3, iif.encode() + b"\0")
    if mark:
        body += _u32(10, mark)
    return message(RTM_NEWRULE, _NLM_F_CREATE | _NLM_F_EXCL, body + _u32(6, priority) + _u32(15, table))


def add_neighbour(ifindex: int, ip: str, mac: str, state: int = NUD_PERMANENT) -> bytes:
    """Return a request to add a neighbour; permanent ones do not count against gc_thresh3 (FACTS trap 4)."""
    body = NDMSG.pack(AF_INET, ifindex, state, 0, 0) + attribute(1, inet_aton(ip)) + attribute(2, mac_bytes(mac))
    return message(RTM_NEWNEIGH, _NLM_F_CREATE | _NLM_F_REPLACE, body)


def solicit_neighbour(ifindex: int, ip: str) -> bytes:
    """Return a request that makes the kernel send ARP for ``ip``, as if it had a packet for it (NTF_USE)."""
    body = NDMSG.pack(AF_INET, ifindex, 0, _NTF_USE, 0) + attribute(1, inet_aton(ip))
    return message(RTM_NEWNEIGH, _NLM_F_CREATE, body)


def add_tbf(ifindex: int, rate_bps: int, burst_bytes: int, limit_bytes: int) -> bytes:
    """Return a request to shape egress: token bucket of ``burst_bytes``, queue of ``limit_bytes``, then tail drop."""
    rate = min(rate_bps // 8, 0xFFFFFFFF)
    spec = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, rate)  # linklayer Ethernet: the kernel needs no rate table
    parameters = spec + bytes(12) + struct.pack("=III", limit_bytes, 0, 0)
    options = attribute(1, parameters) + _u32(6, burst_bytes)  # TCA_TBF_PARMS, TCA_TBF_BURST
    if rate_bps // 8 > 0xFFFFFFFF:
        options += attribute(4, struct.pack("=Q", rate_bps // 8))  # TCA_TBF_RATE64
    body = struct.pack("=BxxxiIII", AF_UNSPEC, ifindex, 0x10000, 0xFFFFFFFF, 0)
    return message(RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_REPLACE, body + attribute(1, b"tbf\0") + attribute(2, options))


def dump_request(kind: int) -> bytes:
    """Return a request for every link, neighbour, route (IPv4) or queue."""
    if kind == RTM_GETLINK:
        return message(kind, NLM_F_DUMP, IFINFO.pack(AF_UNSPEC, 0, 0, 0, 0))
    if kind == RTM_GETNEIGH:
        return message(kind, NLM_F_DUMP, NDMSG.pack(AF_INET, 0, 0, 0, 0))
    if kind == RTM_GETQDISC:
        return message(kind, NLM_F_DUMP, bytes(TCMSG_BYTES))
    return message(kind, NLM_F_DUMP, RTMSG.pack(AF_INET, 0, 0, 0, 0, 0, 0, 0, 0))


def route_get(dst: str, src: str | None, iif: int, sport: int, dport: int, proto: int) -> bytes:
    """Return a request for the route of one packet."""
    body = RTMSG.pack(AF_INET, 32, 32 if src else 0, 0, 0, 0, 0, 0, 0) + attribute(1, inet_aton(dst))
    if src is not None:
        body += attribute(2, inet_aton(src))
    if iif:
        body += _u32(3, iif)
    body += attribute(27, bytes([proto]))
    if sport:
        body += attribute(28, struct.pack("!H", sport))
    if dport:
        body += attribute(29, struct.pack("!H", dport))
    return message(RTM_GETROUTE, 0, body)


def describe(message: bytes) -> str:
    """Describe a request in a few words, for error messages."""
    kind = struct.unpack_from("=H", message, 4)[0]
    name = _NAMES.get(kind, f"message {kind}")
    if kind in (RTM_NEWLINK, RTM_DELLINK):
        _, _, ifindex, _, _ = IFINFO.unpack_from(message, 16)
        label = attributes(message[16 + IFINFO.size :]).get(3, b"").rstrip(b"\0").decode(errors="replace")
        return f"{name} {label} (ifindex {ifindex})".replace("  ", " ")
    if kind in (RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE):
        return f"{name} {prefix_of(message[16:])}"
    return name


def prefix_of(body: bytes) -> str:
    """Return 'a.b.c.d/len' of a route message, or an IPv6 prefix."""
    destination = attributes(body[RTMSG.size :]).get(1)
    if body[0] == AF_INET6:
        return f"{inet_ntop(AF_INET6, destination or bytes(16))}/{body[1]}"
    return f"{inet_ntoa(destination) if destination else '0.0.0.0'}/{body[1]}"
