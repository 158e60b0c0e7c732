"""Linux bonding as bytes: rtnetlink requests for an 802.3ad bond, the driver's answers, and its hash.

Pure. Attribute numbers: linux/if_link.h (IFLA_BOND_*, IFLA_BOND_SLAVE_*).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from socket import inet_aton

from hpn.testbed.fabric.bonding import AD_SELECT, Bonding, HashPolicy
from hpn.testbed.kernel.rtnetlink import nlmsg, rtnl
from hpn.testbed.lag.lacpdu import PortState
from hpn.testbed.lag.states import Mux, Rx

_NLM_F_EXCL, _NLM_F_CREATE = 0x200, 0x400
_MODE_8023AD = 4
_MODE, _MIIMON, _UPDELAY, _DOWNDELAY, _XMIT_HASH_POLICY, _MIN_LINKS = 1, 3, 4, 5, 14, 18
_LACP_RATE, _AD_SELECT, _AD_INFO, _BROADCAST_NEIGHBOUR = 21, 22, 23, 33
_MEMBER_STATE, _MEMBER_MII_STATUS, _MEMBER_AGGREGATOR, _MEMBER_ACTOR_STATE = 1, 2, 6, 7
_DISTRIBUTING = PortState.COLLECTING | PortState.DISTRIBUTING
_IFINFO = struct.Struct("=BxHiII")
_RUNNING = rtnl.IFF_UP | rtnl.IFF_LOWER_UP
_NATIVE = struct.Struct("=I")
_TCP, _UDP = 6, 17
_ETHERTYPE_IPV4 = 0x0800
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


def make(name: str, ifindex: int, members: Sequence[int], *, mac: str, mtu: int, bonding: Bonding) -> list[bytes]:
    """Return the requests that create a bond, up, over existing interfaces given by ifindex."""
    requests = [create_bond(name, ifindex, mac=mac, mtu=mtu, bonding=bonding)]
    for member in members:
        requests += [rtnl.set_link(member, up=False), enslave(member, ifindex)]
    return [*requests, rtnl.set_link(ifindex, up=True)]


def create_bond(name: str, ifindex: int, *, mac: str, mtu: int, bonding: Bonding) -> bytes:
    """Return a request for an 802.3ad bond with these options, and ARP to every port from Linux 6.17 on.

    Its MAC address is also its Actor System. GSO bursts are segmented before they enter it (FACTS trap 7).
    """
    miimon_ms = MIIMON_MS if bonding.miimon_ms is None else bonding.miimon_ms
    options = b"".join(
        (
            rtnl.attribute(_MODE, struct.pack("=B", _MODE_8023AD)),
            rtnl.attribute(_MIIMON, struct.pack("=I", miimon_ms)),
            *_unusual(bonding),
            rtnl.attribute(_XMIT_HASH_POLICY, struct.pack("=B", bonding.hash_policy.number)),
            rtnl.attribute(_LACP_RATE, struct.pack("=B", bonding.lacp_rate == "fast")),
            rtnl.attribute(_BROADCAST_NEIGHBOUR, struct.pack("=B", 1)),
        )
    )
    info = rtnl.attribute(1, b"bond\0") + rtnl.attribute(2, options)  # IFLA_INFO_KIND, IFLA_INFO_DATA
    attributes = rtnl.attribute(3, name.encode() + b"\0") + rtnl.attribute(1, rtnl.mac_bytes(mac))
    attributes += rtnl.attribute(4, struct.pack("=I", mtu))  # IFLA_MTU
    attributes += rtnl.attribute(40, struct.pack("=I", 1))  # IFLA_GSO_MAX_SEGS
    attributes += rtnl.attribute(18, info)  # IFLA_LINKINFO
    return _link_message(rtnl.RTM_NEWLINK, _NLM_F_CREATE | _NLM_F_EXCL, ifindex, attributes)


def _unusual(bonding: Bonding) -> Iterator[bytes]:
    """Yield options that differ from the driver's defaults; delays are none without miimon, which it would refuse."""
    delays = ((_UPDELAY, bonding.up_delay_ms), (_DOWNDELAY, bonding.down_delay_ms))
    for number, value in (*delays, (_MIN_LINKS, bonding.min_links)):
        if value:
            yield rtnl.attribute(number, struct.pack("=I", value))
    if select := AD_SELECT.index(bonding.ad_select):
        yield rtnl.attribute(_AD_SELECT, struct.pack("=B", select))


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


@dataclass(frozen=True, slots=True)
class XmitHash:
    """The driver's choice of a port for IPv4 packets of one bond: the port is the hash modulo the active ones."""

    policy: HashPolicy
    src_mac: str
    dst_mac: str

    def __call__(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int) -> int:
        """Return the hash of a packet (bond_main.c: __bond_xmit_hash)."""
        if self.policy.layer > 3:
            return layer34_hash(src_ip, dst_ip, sport, dport, proto)
        if self.policy.layer > 2:
            return _folded(self._ethernet(), src_ip, dst_ip)
        return self._ethernet() if self.policy.number == 0 else self._source()

    def _ethernet(self) -> int:
        """Return the hash of layer 2 (bond_eth_hash)."""
        return rtnl.mac_bytes(self.src_mac)[5] ^ rtnl.mac_bytes(self.dst_mac)[5] ^ _ETHERTYPE_IPV4

    def _source(self) -> int:
        """Return the hash of a frame without VLAN tag by vlan+srcmac (bond_vlan_srcmac_hash)."""
        mac = rtnl.mac_bytes(self.src_mac)
        return int.from_bytes(mac[:3], "big") ^ int.from_bytes(mac[3:], "big")


def layer34_hash(src_ip: str, dst_ip: str, sport: int, dport: int, proto: int) -> int:
    """Return the driver's layer3+4 hash (FACTS trap 12)."""
    ports = struct.pack("!HH", sport, dport) if proto in (_TCP, _UDP) else bytes(4)
    return _folded(_NATIVE.unpack(ports)[0], src_ip, dst_ip) >> 1


def _folded(word: int, src_ip: str, dst_ip: str) -> int:
    """Return a hash with both addresses in it (bond_ip_hash)."""
    for ip in (src_ip, dst_ip):
        word ^= _NATIVE.unpack(inet_aton(ip))[0]
    word ^= word >> 16
    return word ^ word >> 8


def _link_message(kind: int, flags: int, ifindex: int, attributes: bytes) -> bytes:
    body = _IFINFO.pack(0, 0, ifindex, 0, 0) + attributes
    return rtnl.message(kind, flags, body)


def _link_info(body: bytes) -> dict[int, bytes]:
    return nlmsg.attributes(nlmsg.attributes(body[_IFINFO.size :])[18])
