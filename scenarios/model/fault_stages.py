"""Fault schedule for the model: links that are down or slow at each moment. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import Fault, PlannedFault, RateDrop, VisibleTo
from hpn.failover.faults.moments import Moment, moments
from hpn.failover.faults.stack import StackUpgrade
from hpn.testbed.fabric.model import Fabric


@dataclass(frozen=True, slots=True)
class FaultStage:
    """State of the fabric from ``at_ns`` (relative to the start of traffic) until the next stage.

    ``moment``: its cause; None for the first stage, without faults.
    """

    at_ns: int
    moment: Moment | None
    down: frozenset[str]  # links without carrier
    slow: Mapping[str, float]  # share of the rate left, by link
    unmodelled: tuple[Fault, ...] = ()  # not supported (``speaks_to``), so their effect on paths is unknown


def stages(faults: Iterable[PlannedFault], fabric: Fabric) -> tuple[FaultStage, ...]:
    """Return the healthy stage, and one stage for each moment of the faults."""
    found, there = [FaultStage(0, None, frozenset(), {})], dict[tuple[str, Fault], Fault]()
    for moment in moments(faults):
        for due in moment.due:
            if moment.kind is EdgeKind.FAILURE:
                there[due.planned.id, due.fault] = due.fault
            else:
                for key in [key for key in there if _repairs(key, due.planned.id, due.edge.part)]:
                    del there[key]
        found.append(FaultStage(moment.at_ns, moment, *_state(there.values(), fabric)))
    return tuple(found)


def is_supported(fault: Fault) -> bool:
    """Return True if the model supports a fault: links lose their carrier or part of their rate while it lasts."""
    more = fault.REPLACES_HOST or isinstance(fault, StackUpgrade)  # spares start, or a stack decides
    return (fault.TELLS is VisibleTo.CARRIER and not more) or isinstance(fault, RateDrop)


def _repairs(key: tuple[str, Fault], planned: str, part: Fault | None) -> bool:
    return key[0] == planned and part in (None, key[1])


def _state(there: Iterable[Fault], fabric: Fabric) -> tuple[frozenset[str], Mapping[str, float], tuple[Fault, ...]]:
    down: set[str] = set()
    slow: dict[str, float] = {}
    unmodelled: list[Fault] = []
    for fault in there:
        names = list(_names(fault, fabric))
        if isinstance(fault, RateDrop):
            slow.update({name: min(fault.rate, slow.get(name, 1.0)) for name in names})
        elif is_supported(fault):
            down.update(names)
        else:
            unmodelled.append(fault)
    return frozenset(down), slow, tuple(unmodelled)


def _names(fault: Fault, fabric: Fabric) -> Iterator[str]:
    yield from (link.name for link in fault.links_hit(fabric))
