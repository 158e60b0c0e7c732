"""Which faults may overlap in time and place, and why others may not. Pure.

Two faults compose when each has an effect of its own while both are there, and they come off in any order. They
contradict each other when they are one and the same thing twice, when both are about what one switch does, or when one
leaves nothing of the other. A new fault that hides others has its case in ``_hides``.
"""

from __future__ import annotations

from failover.faults.base import Fault, PlannedFault
from failover.faults.control import BgpReset, TorControlHang, TorDrain
from failover.faults.impair import (
    ArpLoss,
    BitCorruption,
    Dropped,
    LacpLoss,
    LinkDelay,
    OneWayLoss,
    RateDrop,
    SilentDrop,
)
from failover.faults.link import LinkFlap
from failover.faults.node import TorCrash, TorDataplaneDeath
from failover.faults.stack import StackUpgrade
from failover.faults.storm import FlapStorm
from failover.model import EdgeKind
from testbed.fabric.model import Fabric, Role

_COMES_AND_GOES = (LinkFlap, FlapStorm, StackUpgrade)
"""They take a carrier, but not all the time."""

_ON_A_LINK = (OneWayLoss, SilentDrop, LacpLoss, ArpLoss, BitCorruption, LinkDelay, RateDrop)

_HALVES = (TorControlHang, TorDataplaneDeath)
"""Control plane and data plane of a ToR: with both dead nothing of it works, and its carrier stays."""


def clash(one: PlannedFault, other: PlannedFault, fabric: Fabric) -> str:
    """Why two faults contradict each other: '... on p0.s0.t0.0'; '' when they compose or never meet."""
    links, others = (frozenset(link.name for link in each.fault.links_hit(fabric)) for each in (one, other))
    if not links & others or not one.meets(other):
        return ""
    kind, its = one.fault.KIND, other.fault.KIND
    if kind == its and one.fault.target == other.fault.target:
        return f"both are {kind} on {one.fault.target}"
    if links == others and one.fault.TAKES_CARRIER and other.fault.TAKES_CARRIER:
        return f"both take the carrier of {min(links)}"
    switch = _switch_of_both(one.fault, other.fault, fabric)
    if switch and not _at_one_switch(one, other):
        return f"both decide what {switch} does"
    for reset, rest in ((one.fault, other.fault), (other.fault, one.fault)):
        if isinstance(reset, BgpReset) and _keeps_down(rest):
            return f"{rest.KIND} leaves no BGP session to reset on {reset.link}"
    for cover, covered, within in ((one, other, others <= links), (other, one, links <= others)):
        if any(part.covers(covered) and _hides(part.fault, covered.fault, within) for part in _parts(cover)):
            return f"{cover.fault.KIND} leaves nothing of {covered.fault.KIND} on {min(links & others)}"
    return ""


def _parts(planned: PlannedFault) -> tuple[PlannedFault, ...]:
    """The fault, and what it becomes in its last step: a drained ToR goes down."""
    last = planned.edges_of(EdgeKind.FAILURE)[-1]
    if not isinstance(planned.fault, TorDrain) or last.part is None:
        return (planned,)
    for_ns = None if planned.for_ns is None else planned.at_ns + planned.for_ns - last.at_ns
    return planned, PlannedFault(planned.id, last.part, last.at_ns, for_ns)


def _switch_of_both(one: Fault, other: Fault, fabric: Fabric) -> str:
    """A switch that both hit as a whole; '' when there is none."""
    shared = set(one.nodes_hit()) & set(other.nodes_hit())
    return min((name for name in shared if fabric.node(name).role is not Role.HOST), default="")


def _at_one_switch(one: PlannedFault, other: PlannedFault) -> bool:
    """Whether they compose although both hit one switch."""
    if isinstance(one.fault, _HALVES) and isinstance(other.fault, _HALVES):
        return True  # they are different ones: one kind on one target was looked for before
    drain, crash = (one, other) if isinstance(one.fault, TorDrain) else (other, one)
    if not isinstance(drain.fault, TorDrain) or not isinstance(crash.fault, TorCrash):
        return False
    # A ToR that dies while it is drained, and is not back before its hour has come; or one that does not come back.
    last_ns = drain.edges_of(EdgeKind.FAILURE)[-1].at_ns
    stays = crash.over_at_ns is None or crash.over_at_ns >= last_ns
    hidden = crash.at_ns >= last_ns and drain.covers(crash)
    return crash.at_ns > drain.at_ns and stays and not hidden


def _keeps_down(fault: Fault) -> bool:
    """Whether BGP sessions over the links of ``fault`` may be down, or one end's daemon not listening."""
    return fault.TAKES_CARRIER or isinstance(fault, TorControlHang | TorDrain)


def _hides(cover: Fault, covered: Fault, within: bool) -> bool:
    """Whether nothing of ``covered`` shows while ``cover`` is there. ``within``: all its links are links of that."""
    if cover.TAKES_CARRIER:
        return within and not isinstance(cover, _COMES_AND_GOES)
    match cover, covered:
        case SilentDrop(share=1.0, traffic=Dropped.EVERYTHING), _:
            return isinstance(covered, _ON_A_LINK)
        case SilentDrop(share=1.0), BitCorruption():
            return True
        case SilentDrop(share=1.0, traffic=Dropped.NOT_CONTROL), ArpLoss():
            return True
        case OneWayLoss(direction=direction), LacpLoss(direction=lost) | ArpLoss(direction=lost):
            return lost.value == direction.value
        case TorControlHang(), LacpLoss():
            return True
        case TorDataplaneDeath(), BitCorruption():
            return True
        case TorDataplaneDeath(), SilentDrop(traffic=traffic):
            return traffic is not Dropped.EVERYTHING
    return False
