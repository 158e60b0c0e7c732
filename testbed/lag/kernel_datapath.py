"""A LAG by the Linux bonding driver, mode 4: the driver runs LACP and chooses ports; this monitors it.

Before Linux 6.17 the driver sends an ARP through one port only and ignores the option that would change it. So the
driver's answer is read back. If needed, ARP that leaves the bond is copied to every active port: by nftables, or by
traffic control if nftables cannot.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.kernel.nftables.nft import Nft, NftError
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import nlmsg, rtnl
from hpn.testbed.lag import bond, bond_proc
from hpn.testbed.lag.datapath import arp_rules
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.states import Mux, Rx
from hpn.testbed.lag.tc_mirror import TcMirror


@dataclass(frozen=True, slots=True)
class Member:
    """An interface."""

    name: str
    ifindex: int


@dataclass(frozen=True, slots=True)
class BondPorts:
    """The driver's state: ``active`` ports collect and distribute; ``settled``: its machines have nothing pending.

    ``running`` ports have carrier and are up, so LACP has decided about them; about the others, their carrier.
    """

    active: tuple[str, ...]
    running: frozenset[str]
    settled: bool
    machines: Mapping[str, tuple[Rx, Mux]]


class KernelDatapath:
    """Bond of one NIC, which exists already (``bond.make``); ``members`` in the order of their enslavement."""

    def __init__(
        self, ns: NetNs, nft: Nft, lag: Member, members: Sequence[Member], chooses: bond.XmitHash, min_links: int = 0
    ) -> None:
        self._ns = ns
        self._chooses = chooses
        self._min_links = min_links
        self._nft = nft
        self._lag = lag
        self._members = tuple(members)
        self._mirror: NftMirror | TcMirror | None = None
        self._queries = ns.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)

    def setup(self) -> None:
        """Check whether the driver sends ARP to every port, else mirror it. OSError when that is impossible."""
        if bond.bond_state(self._query(self._lag)).broadcasts_neighbour:
            return
        try:
            self._mirror = NftMirror(self._nft, self._lag.name)
        except NftError:  # no netdev family, or no egress hook (Linux 5.16)
            self._mirror = TcMirror(self._ns, self._lag.ifindex, {m.name: m.ifindex for m in self._members})

    def ports(self) -> BondPorts:
        """Return the driver's state of the member ports. OSError when the bond is gone."""
        aggregator = bond.bond_state(self._query(self._lag)).aggregator
        states = {member.name: bond.member_state(self._query(member)) for member in self._members}
        ours = {name for name, state in states.items() if state.aggregator == aggregator}
        active = tuple(name for name, state in states.items() if state.distributing and name in ours)
        return BondPorts(
            active=active if len(active) >= self._min_links else (),  # the driver takes the bond's carrier away
            running=frozenset(name for name, state in states.items() if state.running),
            settled=all(state.settled for state in states.values()),
            machines={
                name: (bond.receive_state(state.up, state.lacp), bond.mux_state(name in ours, state.lacp))
                for name, state in states.items()
            },
        )

    def status(self) -> tuple[PortStatus, ...]:
        """Return LACP of each member port, as far as the driver reports it."""
        return bond_proc.parse(self.text())

    def text(self) -> str:
        """Return /proc/net/bonding/NAME. OSError when the bond is gone."""
        with self._ns.entered():
            return Path(f"/proc/thread-self/net/bonding/{self._lag.name}").read_text()

    def set_active(self, ports: Sequence[str]) -> None:
        """Direct the ARP mirror, if any, to these ports; the driver moves all other traffic."""
        if self._mirror is not None:
            self._mirror.set_active(ports)

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """Return the active port by the driver's hash."""
        return active[self._chooses(src_ip, dst_ip, sport, dport, proto) % len(active)]

    def close(self) -> None:
        """Release the bond, which stays as it is, without its ARP mirror."""
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None
        self._queries.close()

    def _query(self, link: Member) -> bytes:
        """Return the body of the kernel's answer about one interface. OSError when it is gone."""
        self._queries.send(bond.get_link(link.ifindex))
        for kind, _, _, body in nlmsg.split(self._queries.recv(1 << 16)):
            if kind == rtnl.RTM_NEWLINK:
                return body
        raise OSError(f"{self._ns.name}: {link.name} is gone")


class NftMirror:
    """ARP mirror to every port by an nftables egress chain on the bond. NftError if the kernel has none."""

    def __init__(self, nft: Nft, lag: str) -> None:
        self._nft = nft
        self._table = f"lag_{lag}"
        nft.run(mirror_setup(self._table, lag))

    def set_active(self, ports: Sequence[str]) -> None:
        """Copy to these ports from now on; if there are none, leave ARP to the driver."""
        self._nft.run(mirror_rules(self._table, ports))

    def close(self) -> None:
        """Remove the mirror."""
        self._nft.run(f"delete table netdev {self._table}")


def mirror_setup(table: str, lag: str) -> str:
    """Return an egress chain on the bond (Linux 5.16)."""
    return f'table netdev {table} {{ chain mirror {{ type filter hook egress device "{lag}" priority 0; }}; }}'


def mirror_rules(table: str, ports: Sequence[str]) -> str:
    """Return rules that send every ARP to each of ``ports`` instead of the driver's one, in one transaction."""
    rules = [f"add rule netdev {table} mirror {rule}" for rule in arp_rules(ports)]
    return "\n".join([f"flush chain netdev {table} mirror", *rules])
