"""Rules for faults that overlap in time and place: which may, and why others may not. Pure.

Two faults compose when each has its own effect while both are active, and they can be undone in any order. They
contradict each other when they are the same fault twice, when both control one switch, or when one hides the other. No
kind is named here: each defines what it hides and what it shows in.
"""

from __future__ import annotations

from hpn.failover.faults.base import Fault, PlannedFault, SwitchPart, VisibleTo
from hpn.testbed.fabric.model import Fabric, Role

_HALVES = {SwitchPart.CONTROL, SwitchPart.FORWARDING}
"""Both halves failed: the switch does nothing, and its carrier stays up."""


def clash(one: PlannedFault, other: PlannedFault, fabric: Fabric) -> str:
    """Return why two faults contradict each other: '... on p0.s0.t0.0'; '' when they compose or never meet."""
    links, others = (frozenset(link.name for link in each.fault.links_hit(fabric)) for each in (one, other))
    if not links & others or not one.meets(other):
        return ""
    kind, its = one.fault.KIND, other.fault.KIND
    if kind == its and one.fault.target == other.fault.target:
        return f"both are {kind} on {one.fault.target}"
    if links == others and one.fault.TELLS is other.fault.TELLS is VisibleTo.CARRIER:
        return f"both take the carrier of {min(links)}"
    for moved, rest in ((one.fault, other.fault), (other.fault, one.fault)):
        if moved.MOVES_CABLES and rest.TELLS is VisibleTo.CARRIER:
            return f"{rest.KIND} takes carrier where {moved.KIND} moves the cable of {min(links & others)}"
    switch = _switch_of_both(one.fault, other.fault, fabric)
    if switch and not _at_one_switch(one, other):
        return f"both decide what {switch} does"
    for reset, rest in ((one.fault, other.fault), (other.fault, one.fault)):
        if reset.WANTS_SESSIONS and rest.SESSIONS_DOWN:
            return f"{rest.KIND} leaves no BGP session to reset on {reset.target}"
    for cover, covered, within in ((one, other, others <= links), (other, one, links <= others)):
        if _leaves_nothing(cover, covered, within):
            return f"{cover.fault.KIND} leaves nothing of {covered.fault.KIND} on {min(links & others)}"
    return ""


def _leaves_nothing(cover: PlannedFault, covered: PlannedFault, within: bool) -> bool:
    """Return True if a fault hides another during its whole time. ``within``: ``cover`` acts on all links of
    ``covered``."""
    return any(part.covers(covered) and _hides(part.fault, covered.fault, within) for part in _parts(cover))


def _parts(planned: PlannedFault) -> tuple[PlannedFault, ...]:
    """Return the fault, and its last step: a drained ToR goes down."""
    last = planned.fault.last_step(planned)
    return (planned,) if last is None else (planned, last)


def _switch_of_both(one: Fault, other: Fault, fabric: Fabric) -> str:
    """Return a switch that both affect as a whole; '' when there is none."""
    shared = set(one.nodes_hit()) & set(other.nodes_hit())
    return min((name for name in shared if fabric.node(name).role is not Role.HOST), default="")


def _at_one_switch(one: PlannedFault, other: PlannedFault) -> bool:
    """Return True if they compose although both affect one switch."""
    if {one.fault.PART, other.fault.PART} == _HALVES:
        return True
    return one.fault.bears(one, other) or other.fault.bears(other, one)


def _hides(cover: Fault, covered: Fault, within: bool) -> bool:
    """Return True if ``covered`` is invisible during ``cover``. ``within``: ``cover`` acts on all its links."""
    if cover.TELLS is VisibleTo.CARRIER:
        return within and cover.STEADY
    shows = covered.shows_in()
    return bool(shows) and shows <= cover.silences()
