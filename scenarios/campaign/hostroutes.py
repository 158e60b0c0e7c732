"""Check host routes: find times in which a port distributes without its host route, from a run's timeline. PURE.

Time counts while both ends use a link, the ToR has not learned the NIC there, and no fault acts on the link. A fault
may block ARP. ``testbed.lab.convergence`` checks the final state; this module checks the time before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hpn.failover.analysis.model import Edge, EdgeKind
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.model import Fabric, Link, Nic
from hpn.testbed.lag.states import Mux
from hpn.testbed.routing.retry import LONGEST_S

WITHIN_NS = int(3 * LONGEST_S * 1e9)
"""Time limit in ns; without ARP loss both ends send a request at least once in half of it.

The kernel's own three requests are included.
"""

_MUX = frozenset(state.value for state in Mux)


@dataclass(frozen=True, slots=True)
class Without:
    """Link whose ends both distributed for ``lasted_ns`` while the ToR had no host route through it."""

    link: str
    start_ns: int
    lasted_ns: int


@dataclass(slots=True)
class _Port:
    """State of one access link; a lab is healthy when its record begins."""

    link: Link
    nic: Nic
    host_uses: bool = True
    tor_uses: bool = True
    learned: bool = True
    faults: set[str] = field(default_factory=set)
    since_ns: int | None = None

    @property
    def lacks(self) -> bool:
        return self.host_uses and self.tor_uses and not self.learned and not self.faults

    def hear(self, event: Event) -> None:
        port = self.link.upper
        match event.kind:
            case EventKind.LAG if (event.node, event.subject) == (self.nic.host, self.nic.lag):
                self.host_uses = self.link.lower.name in str(event.detail["ports"]).split(",")
            case EventKind.LACP if (event.node, event.subject) == (port.node, port.name) and event.what in _MUX:
                self.tor_uses = event.what == Mux.COLLECTING_DISTRIBUTING.value
            case EventKind.NEIGHBOUR if (event.node, event.subject) == (port.node, self.nic.ip):
                self.learned = event.what == "learned"
            case EventKind.LINK if (event.node, event.subject, event.what) == (port.node, port.name, "admin-down"):
                self.learned = False  # a ToR that crashes tells nothing of what it forgets

    def hit(self, edge: Edge) -> None:
        if any(link.name == self.link.name for link in edge.links):
            if edge.kind is EdgeKind.FAILURE:
                self.faults.update(edge.faults)
            else:
                self.faults.difference_update(edge.faults)


def without(fabric: Fabric, events: Iterable[Event], edges: Iterable[Edge], end_ns: int) -> Iterator[Without]:
    """Yield every interval longer than ``WITHIN_NS`` up to ``end_ns``, ordered by its end."""
    ports = [_Port(link, nic) for nic in fabric.nics for link in nic.links]
    told = [(event.at_ns, event) for event in events] + [(edge.inject_before_ns, edge) for edge in edges]
    for at_ns, news in sorted(told, key=lambda each: each[0]):
        for port in ports:
            if isinstance(news, Event):
                port.hear(news)
            else:
                port.hit(news)
        yield from _over(ports, at_ns)
    for port in ports:
        port.learned = True
    yield from _over(ports, end_ns)


def _over(ports: Iterable[_Port], at_ns: int) -> Iterator[Without]:
    for port in ports:
        if port.lacks and port.since_ns is None:
            port.since_ns = at_ns
        elif not port.lacks and port.since_ns is not None:
            if at_ns - port.since_ns > WITHIN_NS:
                yield Without(port.link.name, port.since_ns, at_ns - port.since_ns)
            port.since_ns = None
