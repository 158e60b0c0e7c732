"""Fault schedule for the model: links that are down or slow at each moment. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import Fault, PlannedFault
from hpn.failover.faults.moments import Moment, moments
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
    unmodelled: tuple[Fault, ...] = ()  # without ``rate_left``, so their effect on paths is unknown


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


def _repairs(key: tuple[str, Fault], planned: str, part: Fault | None) -> bool:
    return key[0] == planned and part in (None, key[1])


def _state(there: Iterable[Fault], fabric: Fabric) -> tuple[frozenset[str], Mapping[str, float], tuple[Fault, ...]]:
    down: set[str] = set()
    slow: dict[str, float] = {}
    unmodelled: list[Fault] = []
    for fault in there:
        names, left = [link.name for link in fault.links_hit(fabric)], fault.rate_left()
        if left is None:
            unmodelled.append(fault)
        elif left:
            slow.update({name: min(left, slow.get(name, 1.0)) for name in names})
        else:
            down.update(names)
    return frozenset(down), slow, tuple(unmodelled)
