"""Linux bonding as bytes: rtnetlink requests for an 802.3ad bond, the driver's answers, and its hash.

Pure. Attribute numbers: linux/if_link.h (IFLA_BOND_*, IFLA_BOND_SLAVE_*).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from socket import inet_aton

from hpn.testbed.kernel.rtnetlink import nlmsg, rtnl
from hpn.testbed.lag.lacpdu import PortState
from hpn.testbed.lag.states import Mux, Rx

_NLM_F_EXCL, _NLM_F_CREATE = 0x200, 0x400
_MODE_8023AD, _LAYER34 = 4, 1
_MODE, _MIIMON, _XMIT_HASH_POLICY, _LACP_RATE, _AD_INFO, _BROADCAST_NEIGHBOUR = 1, 3, 14, 21, 23, 33
_MEMBER_STATE, _MEMBER_MII_STATUS, _MEMBER_AGGREGATOR, _MEMBER_ACTOR_STATE = 1, 2, 6, 7
_DISTRIBUTING = PortState.COLLECTING | PortState.DISTRIBUTING
_IFINFO = struct.Struct("=BxHiII")
_RUNNING = rtnl.IFF_UP | rtnl.IFF_LOWER_UP
_TCP, _UDP = 6, 17
MIIMON_MS = 10
"""How often the driver looks at carrier, unless a topology sets it."""


@dataclass(frozen=True, slots=True)
class BondState:
    """The driver's state of a bond: its active Aggregator's number; True if ARP goes to every port."""

    aggregator: int
    broadcasts_neighbour: bool


@dataclass(frozen=True, slots=True)
class MemberState:
    """The driver's state of a member port; ``up`` is miimon's last result, ``lacp`` its Actor_State.

    A ``distributing`` port carries traffic if its Aggregator is the bond's. ``running``: it is up and has carrier. The
    driver drops other ports from its slave array as soon as the interface reports it (NETDEV_DOWN and
    NETDEV_CHANGE in bond_slave_netdev_event, bond_slave_can_tx). Miimon comes later, and with it ``up`` and ``lacp``.
    """

    aggregator: int
    up: bool
    running: bool
    distributing: bool
    lacp: PortState

    @property
    def settled(self) -> bool:
        """True if no change is pending: it distributes, or it is down and the driver's 100 ms machines have left it."""
        return self.distributing if self.up else not self.lacp & _DISTRIBUTING


def make(
    name: str, ifindex: int, members: Sequence[int], *, mac: str, mtu: int, fast: bool, miimon_ms: int = MIIMON_MS
) -> list[bytes]:
    """Return the requests that create a bond, up, over existing interfaces given by ifindex."""
    requests = [create_bond(name, ifindex, mac=mac, mtu=mtu, fast=fast, miimon_ms=miimon_ms)]
    for member in members:
        requests += [rtnl.set_link(member, up=False), enslave(member, ifindex)]
    return [*requests, rtnl.set_link(ifindex, up=True)]


def create_bond(name: str, ifindex: int, *, mac: str, mtu: int, fast: bool, miimon_ms: int = MIIMON_MS) -> bytes:
    """Return a request for an 802.3ad bond: layer3+4 hash, no delays, ARP to every port from Linux 6.17 on.

    Its MAC address is also its Actor System; ad_select is the default, stable. GSO bursts are segmented before they
    enter it (FACTS trap 7).
    """
    options = b"".join(
        (
            rtnl.attribute(_MODE, struct.pack("=B", _MODE_8023AD)),
            rtnl.attribute(_MIIMON, struct.pack("=I", miimon_ms)),
            rtnl.attribute(_XMIT_HASH_POLICY, struct.pack("=B", _LAYER34)),
            rtnl.attribute(_LACP_RATE, struct.pack("=B", fast)),
            rtnl.attribute(_BROADCAST_NEIGHBOUR, struct.pack("=B", 1)),
        )
    )
    info = rtnl.attribute(1, b"bond\0") + rtnl.attribute(2, options)  # IFLA_INFO_KIND, IFLA_INFO_DATA
    attributes = rtnl.attribute(3, name.encode() + b"\0") + rtnl.attribute(1, rtnl.mac_bytes(mac))
    attributes += rtnl.attribute(4, struct.pack("=I", mtu))  # IFLA_MTU
    attributes += rtnl.attribute(40, struct.pack("=I", 1))  # IFLA_GSO_MAX_SEGS
    attributes += rtnl.attribute(18, info)  # IFLA_LINKINFO
    return _link_message(rtnl.RTM_NEWLINK, _NLM_F_CREATE | _NLM_F_EXCL, ifindex, attributes)


def enslave(ifindex: int, bond_ifindex: int) -> bytes:
    """Return a request to make an interface, which must be down, a member; the driver brings it up."""
    return _link_message(rtnl.RTM_NEWLINK, 0, ifindex, rtnl.attribute(10, struct.pack("=I", bond_ifindex)))


def get_link(ifindex: int) -> bytes:
    """Return a request for one interface."""
    return _link_message(rtnl.RTM_GETLINK, 0, ifindex, b"")


def bond_state(body: bytes) -> BondState:
    """Parse the body of a RTM_NEWLINK about a bond. KeyError when it is about something else."""
    options = nlmsg.attributes(_link_info(body)[2])
    active = nlmsg.attributes(options.get(_AD_INFO, b"")).get(1, bytes(2))
    return BondState(struct.unpack("=H", active)[0], options.get(_BROADCAST_NEIGHBOUR) == b"\1")


def member_state(body: bytes) -> MemberState:
    """Parse the body of a RTM_NEWLINK about a member port. KeyError when it is about something else."""
    options = nlmsg.attributes(_link_info(body)[5])  # IFLA_INFO_SLAVE_DATA
    flags = _IFINFO.unpack_from(body)[3]
    running = flags & _RUNNING == _RUNNING
    up = options[_MEMBER_MII_STATUS][0] == 0
    # Until the driver's machines first run, a port has no aggregator and is reported without a state.
    told = _MEMBER_ACTOR_STATE in options
    lacp = PortState(options[_MEMBER_ACTOR_STATE][0]) if told else PortState.DEFAULTED
    # Without any Partner the driver still keeps one port active; LACP does not call that distributing.
    agreed = lacp & _DISTRIBUTING == _DISTRIBUTING
    distributing = up and running and agreed and options[_MEMBER_STATE][0] == 0
    aggregator = struct.unpack("=H", options.get(_MEMBER_AGGREGATOR, bytes(2)))[0]
    return MemberState(aggregator, up, running, distributing, lacp)


def receive_state(up: bool, lacp: PortState) -> Rx:
    """Return the state of the driver's Receive machine, inferred from the Actor_State (IEEE 802.1AX-2014, 6.4.12)."""
    if not up:
        return Rx.PORT_DISABLED
    if PortState.EXPIRED in lacp:
        return Rx.EXPIRED
    return Rx.DEFAULTED if PortState.DEFAULTED in lacp else Rx.CURRENT


def mux_state(selected: bool, lacp: PortState) -> Mux:
    """Return the state of the driver's Mux machine, inferred from the bits it sets (6.4.15); WAITING sets none."""
    if lacp & _DISTRIBUTING == _DISTRIBUTING:
        return Mux.COLLECTING_DISTRIBUTING
    if PortState.SYNCHRONIZATION in lacp:
        return Mux.ATTACHED
    return Mux.WAITING if selected else Mux.DETACHED


def layer34_hash(src_ip: str, dst_ip: str, sport: int, dport: int, proto: int) -> int:
    """Return the driver's layer3+4 hash (FACTS trap 12); the port is this modulo the number of active ports."""
    native = struct.Struct("=I")
    ports = struct.pack("!HH", sport, dport) if proto in (_TCP, _UDP) else bytes(4)
    word: int = native.unpack(ports)[0]
    for ip in (src_ip, dst_ip):
        word ^= native.unpack(inet_aton(ip))[0]
    word ^= word >> 16
    word ^= word >> 8
    return word >> 1


def _link_message(kind: int, flags: int, ifindex: int, attributes: bytes) -> bytes:
    body = _IFINFO.pack(0, 0, ifindex, 0, 0) + attributes
    return rtnl.message(kind, flags, body)


def _link_info(body: bytes) -> dict[int, bytes]:
    return nlmsg.attributes(nlmsg.attributes(body[_IFINFO.size :])[18])
