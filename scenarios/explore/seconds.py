"""Second faults that exploration tries: what each is, given the first one. Pure.

Changes when another second fault is worth trying: one entry of ``SECONDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import MS, AggCrash, ArpLoss, LacpLoss, LinkDown, PlannedFault, TorControlHang, TorCrash
from hpn.scenarios.campaign.plan import FaultStep
from hpn.scenarios.explore.steps import step_of
from hpn.testbed.entries import Registry
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Role
from hpn.traffic.flows.flow import FlowSpec

LASTS_NS = 500 * MS
"""Time from a second fault to its repair: longer than the steps of Linux bonding, shorter than LACP's timers."""

LOSS_LASTS_NS = 4000 * MS
"""Time for which a protocol's frames are lost: past the kernel's three ARP requests, and LACP's three periods."""

LATE_NS = 20 * MS
"""Time for which a late control plane does nothing: longer than others need to react to one event."""


@dataclass(frozen=True, slots=True)
class Scene:
    """First fault of a drill, on its fabric, with the drill's flows."""

    fabric: Fabric
    first: PlannedFault
    flows: tuple[FlowSpec, ...]

    @property
    def links(self) -> tuple[Link, ...]:
        """Links that the first fault hits."""
        return self.first.fault.links_hit(self.fabric)

    @property
    def nics(self) -> tuple[Nic, ...]:
        """NICs with a port on such a link, in the order of the fabric."""
        found = (self.fabric.nic_of_link(link.name) for link in self.links if link.kind is LinkKind.ACCESS)
        return tuple({nic.name: nic for nic in found}.values())

    @property
    def others(self) -> tuple[Link, ...]:
        """The other links of these NICs."""
        hit = {link.name for link in self.links}
        return tuple(link for nic in self.nics for link in nic.links if link.name not in hit)


@dataclass(frozen=True, slots=True)
class Second:
    """Kind of a second fault. ``phases``: after the first failure, after its repair, or both.

    ``steps`` yields candidates, of which the first is tried; their times are set later. ``undoes``: it is the first
    fault's own repair, at another time, and has no step.
    """

    name: str
    summary: str
    steps: Callable[[Scene], Iterator[FaultStep]]
    phases: tuple[EdgeKind, ...] = (EdgeKind.FAILURE, EdgeKind.REPAIR)
    undoes: bool = False


def _other_port(scene: Scene) -> Iterator[FaultStep]:
    return (_step(LinkDown.KIND, link.name) for link in scene.others)


def _sibling_tor(scene: Scene) -> Iterator[FaultStep]:
    hit = set(scene.first.fault.nodes_hit())
    return (_step(TorCrash.KIND, link.upper.node) for link in scene.others if link.upper.node not in hit)


def _late_tor(scene: Scene) -> Iterator[FaultStep]:
    """Yield the ToRs that the first fault's links are on, unless the fault is theirs: a dead ToR is not late."""
    hit = set(scene.first.fault.nodes_hit())
    ends = [port.node for link in scene.links for port in (link.lower, link.upper)]
    return (
        FaultStep(TorControlHang.KIND, name, 0, LATE_NS)
        for name in ends
        if scene.fabric.node(name).role is Role.TOR and name not in hit
    )


def _late_sibling(scene: Scene) -> Iterator[FaultStep]:
    return (replace(step, kind=TorControlHang.KIND, for_ns=LATE_NS) for step in _sibling_tor(scene))


def _agg(scene: Scene) -> Iterator[FaultStep]:
    """Yield Aggs above what is hit; for a fault of an Agg the others of its plane."""
    fabric, hit = scene.fabric, set(scene.first.fault.nodes_hit())
    ends = {port.node for link in scene.links for port in (link.lower, link.upper)}
    tors = [name for name in ends if fabric.node(name).role is Role.TOR]
    above = {link.upper.node for tor in tors for link in fabric.links_of(tor) if link.kind is LinkKind.FABRIC}
    return (
        _step(AggCrash.KIND, node.name)
        for node in fabric.switches
        if node.name in above - hit and node.role is Role.AGG
    )


def _uplink(scene: Scene) -> Iterator[FaultStep]:
    """Yield the uplinks of the ToRs that the hit NICs have left."""
    for other in scene.others:
        above = (link for link in scene.fabric.links_of(other.upper.node) if link.kind is LinkKind.FABRIC)
        yield from (_step(LinkDown.KIND, link.name) for link in above)


def _peer_port(scene: Scene) -> Iterator[FaultStep]:
    """Yield ports of NICs that exchange packets with a hit one, on the ToRs that the hit one has left."""
    mine = {nic.name for nic in scene.nics}
    left = {scene.fabric.node(link.upper.node).plane for link in scene.others}
    for flow in scene.flows:
        peer = flow.dst_nic if flow.src_nic in mine else flow.src_nic if flow.dst_nic in mine else ""
        if peer and peer not in mine:
            links = scene.fabric.nic(peer).links
            yield from (
                _step(LinkDown.KIND, link.name) for link in links if scene.fabric.node(link.upper.node).plane in left
            )


def _protocol_loss(kind: str) -> Callable[[Scene], Iterator[FaultStep]]:
    """Return the candidates of a fault that loses one protocol's frames on the access links that are hit."""

    def steps(scene: Scene) -> Iterator[FaultStep]:
        access = (link for link in scene.links if link.kind is LinkKind.ACCESS)
        return (FaultStep(kind, link.name, 0, LOSS_LASTS_NS) for link in access)

    return steps


def _again(scene: Scene) -> Iterator[FaultStep]:
    yield replace(step_of(scene.first), at_ns=0)


def _early_return(scene: Scene) -> Iterator[FaultStep]:
    if scene.first.for_ns is not None and not scene.first.fault.REPAIRS_ITSELF:
        yield replace(step_of(scene.first), at_ns=0)


def _step(kind: str, target: str) -> FaultStep:
    return FaultStep(kind, target, 0, LASTS_NS)


SECONDS: Registry[Second] = Registry(
    "second fault",
    lambda second: second.name,
    (
        Second("early-return", "the first fault is repaired at that moment", _early_return, (EdgeKind.FAILURE,), True),
        Second("again", "the first fault happens again", _again, (EdgeKind.REPAIR,)),
        Second("other-port", "the other port of the same LAG is cut", _other_port),
        Second("sibling-tor", "the other ToR of the NIC crashes", _sibling_tor),
        Second("late-tor", "the link's ToR reacts 20 ms late: after all others, in the place of before", _late_tor),
        Second("late-sibling", "the other ToR of the NIC reacts 20 ms late", _late_sibling),
        Second("uplink", "an uplink of the other ToR is cut", _uplink),
        Second("agg", "an Agg of the same plane crashes", _agg),
        Second("arp-loss", "ARP is lost on the first fault's link", _protocol_loss(ArpLoss.KIND)),
        Second("lacp-loss", "LACP is lost on the first fault's link", _protocol_loss(LacpLoss.KIND)),
        Second("peer-port", "the peer loses the port of the plane that is left", _peer_port),
    ),
    of=Second,
)
"""Second faults, in the order in which they are tried."""


def chosen(scene: Scene, second: Second) -> FaultStep | None:
    """Return the step of a second fault, or None if the fabric has no such part."""
    return next(second.steps(scene), None)
