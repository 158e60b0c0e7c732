"""What a LAG datapath is: who speaks LACP for the LAG of a NIC, and what moves its frames (DESIGN rule 4).

A datapath is a module beside this that ends in its ``LagKind``, and one line in ``testbed.lag.datapaths``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hpn.testbed.events import EventSink
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.speakers import HERE, Speakers

UDP = 17
ETHERTYPE_PATH_CONTROL = 0x88B5
"""Host-switch path control, an IEEE local experimental ethertype; like LACP it belongs to one member port."""

OnActive = Callable[[tuple[str, ...], Mapping[str, float]], None]
"""Told the ports that collect and distribute from now on, and how far off now may be from when that was decided
(``late_ms``, ``early_ms``; empty: the decision was taken in this call)."""


class HostLag(Protocol):
    """The LAG of one NIC. It says which ports collect and distribute by calling ``on_active`` of its place."""

    def start(self) -> None:
        """Begin, with no port active: nothing but control frames that belong to a member port passes."""

    def close(self) -> None:
        """Stop and close the sockets; the interfaces stay as they are."""

    def carrier(self, port: str, up: bool) -> None:
        """The link monitor saw a change of this member port's carrier."""

    def look(self) -> None:
        """The kernel said something about an interface of this LAG."""

    def set_active(self, ports: Sequence[str]) -> None:
        """Have exactly these ports carry what leaves and arrives."""

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """The port that such a packet leaves by while ``active`` (in configured order, not empty) are active."""

    def status(self) -> tuple[PortStatus, ...]:
        """LACP of each port, in the order of the NIC's links."""

    def driver_text(self) -> str:
        """What a driver says of it, evidence for a run folder; '' where there is none."""


@dataclass(frozen=True, slots=True)
class LagPlace:
    """Where the LAG of a NIC is to work: in ``space``, the host's namespace, with the ``nft`` of all its NICs.

    Who speaks LACP by our machines has ``lacp`` make its speaker.
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
    """A LAG datapath: all that wiring, hosts and checks ask of it.

    ``problem``: why it cannot be had in a kernel, with the way out, found by trying in a throw-away namespace.
    ``contradictions``: what of a specification it cannot honour. ``interfaces``: requests made beside those for the
    cables, given the host's namespace. ``raised``: requests in the host once the cables are there; after these the LAG
    interface stands. Both are of one NIC. ``at_failure``, ``at_repair``: what its time consists of, a clause each for
    reports that hold it against another; ``failure_within_ms``, ``repair_within_ms``: how long that is at most.
    """

    name: str
    unasked: bool  # 'auto' may take it
    problem: Callable[[NetNs], str | None]
    contradictions: Callable[[FabricSpec], Iterable[Problem]]
    interfaces: Callable[[Fabric, Nic, NetNs], Iterable[bytes]]
    raised: Callable[[Fabric, Nic], Iterable[bytes]]
    make: Callable[[LagPlace], HostLag]
    moves_itself: bool  # traffic has moved when ``on_active`` is told; else it moves in ``set_active``
    numbered: bool  # its LACPDUs carry the key and port numbers of the fabric; else only the system ID is known
    at_failure: str
    at_repair: str
    failure_within_ms: float
    repair_within_ms: float


def arp_rules(ports: Sequence[str]) -> list[str]:
    """nftables rules that send an ARP to each of ``ports``.

    Every ToR must hear every ARP: its host route stands on its own neighbour entry.
    """
    copies = [f'ether type arp dup to "{port}"' for port in ports[1:]]
    return copies + [f'ether type arp fwd to "{port}"' for port in ports[:1]]
