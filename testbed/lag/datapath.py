"""Interface of LAG datapaths: how the LAG of a NIC gets its LACP and forwards its frames (DESIGN rule 4).

A datapath is a module alongside this that ends in its ``LagKind``, and one line in ``testbed.lag.datapaths``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hpn.testbed.events import EventSink
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.bonding import Bonding
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.fabric.spec import FabricSpec, LacpSpec
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.speakers import HERE, Speakers

UDP = 17
ETHERTYPE_PATH_CONTROL = 0x88B5
"""Host-switch path control, an IEEE local experimental ethertype; like LACP it belongs to one member port."""

OnActive = Callable[[tuple[str, ...], Mapping[str, float]], None]
"""Callback for the ports that collect and distribute from now on, and the uncertainty of that moment.

The decision was up to ``late_ms`` before now, or ``early_ms`` after; empty: it was made in this call.
"""


PortOf = Callable[[Fabric, Nic, str, int, int, int], int]
"""LAG hash of a NIC's UDP packets: fabric, NIC, destination IP, source and destination port, number of active ports.

The result is the index of the packet's port among the active ones.
"""


class HostLag(Protocol):
    """The LAG of one NIC. It reports the ports that collect and distribute by ``on_active`` of its place."""

    def start(self) -> None:
        """Start, with no port active: only control frames of a member port pass."""

    def close(self) -> None:
        """Stop and close the sockets; the interfaces stay as they are."""

    def carrier(self, port: str, up: bool) -> None:
        """Handle a carrier change of this member port, as the link monitor reported it."""

    def look(self) -> None:
        """Handle a kernel message about an interface of this LAG."""

    def set_active(self, ports: Sequence[str]) -> None:
        """Send and receive traffic on exactly these ports."""

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """Return the packet's egress port while ``active`` (in configured order, not empty) are active."""

    def status(self) -> tuple[PortStatus, ...]:
        """Return LACP of each port, in the order of the NIC's links."""

    def driver_text(self) -> str:
        """Return a driver's status text, evidence for a run folder; '' without a driver."""


@dataclass(frozen=True, slots=True)
class LagPlace:
    """Environment of a NIC's LAG: ``space`` is the host's namespace, ``nft`` is shared by all its NICs.

    Datapaths that use our LACP machines create their speaker by ``lacp``.
    """

    fabric: Fabric
    nic: Nic
    space: NetNs
    nft: Nft
    sink: EventSink
    on_active: OnActive
    lacp: Speakers = HERE


@dataclass(frozen=True, slots=True)
class LagKind:
    """A LAG datapath: everything that wiring, hosts and checks need from it.

    ``problem``: why a kernel does not support it, with a remedy, tested in a throw-away namespace. ``contradictions``:
    parts of a specification that it cannot honour. ``interfaces``: requests issued together with those for the cables,
    given the host's namespace. ``raised``: requests in the host once the cables exist, which complete the LAG
    interface. Both are for one NIC. ``at_failure``, ``at_repair``: the components of its switching time, a clause each
    for comparison reports; ``failure_within_ms``, ``repair_within_ms``: its upper bounds in a lab, others by
    ``failure_ms`` and ``repair_ms``. ``port_of``: its hash, for ``hpn model``; None: the model does not support it.
    """

    name: str
    unasked: bool  # 'auto' may choose it
    problem: Callable[[NetNs], str | None]
    contradictions: Callable[[FabricSpec], Iterable[Problem]]
    interfaces: Callable[[Fabric, Nic, NetNs], Iterable[bytes]]
    raised: Callable[[Fabric, Nic], Iterable[bytes]]
    make: Callable[[LagPlace], HostLag]
    moves_itself: bool  # traffic has moved when ``on_active`` is called; else it moves in ``set_active``
    numbered: bool  # its LACPDUs carry the key and port numbers of the fabric; else only the system ID is known
    at_failure: str
    at_repair: str
    failure_within_ms: float
    repair_within_ms: float
    port_of: PortOf | None = None

    def failure_ms(self, bonding: Bonding) -> float:
        """Return how late LACP may learn of a lost port with these options."""
        return (self.failure_within_ms if bonding.miimon_ms is None else bonding.miimon_ms) + bonding.down_delay_ms

    def repair_ms(self, bonding: Bonding) -> float:
        """Return how late a repaired port may carry traffic with these options; ours waits as it is told."""
        waits_ms = bonding.aggregate_wait_ms - LacpSpec().aggregate_wait_ms if self.numbered else 0
        return self.repair_within_ms + max(waits_ms, 0) + (bonding.miimon_ms or 0) + bonding.up_delay_ms


def arp_rules(ports: Sequence[str]) -> list[str]:
    """Return nftables rules that send an ARP to each of ``ports``.

    Every ToR must receive every ARP: its host route depends on its own neighbour entry.
    """
    copies = [f'ether type arp dup to "{port}"' for port in ports[1:]]
    return copies + [f'ether type arp fwd to "{port}"' for port in ports[:1]]
