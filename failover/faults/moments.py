"""Grouping of simultaneous edges of planned faults: faults of one instant are one event (a correlated failure). Pure.

Changes when the order of edges does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import Fault, PlannedEdge, PlannedFault


@dataclass(frozen=True, slots=True)
class Due:
    """One edge of one fault."""

    planned: PlannedFault
    edge: PlannedEdge

    @property
    def fault(self) -> Fault:
        """The fault to inject or repair, or the part of it that this edge is about."""
        return self.planned.fault if self.edge.part is None else self.edge.part


@dataclass(frozen=True, slots=True)
class Moment:
    """Failures, or repairs, of one instant; relative to the start of traffic."""

    at_ns: int
    kind: EdgeKind
    due: tuple[Due, ...]  # in the order of the drill file

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults to inject or repair."""
        return tuple(due.fault for due in self.due)

    @property
    def takeovers(self) -> Mapping[str, str]:
        """Dead hosts and the spares that take over from them now."""
        return dict(fault.takes_over for fault in self.faults if fault.takes_over is not None)


def moments(faults: Iterable[PlannedFault]) -> tuple[Moment, ...]:
    """Return every edge in order of time; at the same instant repairs come before failures."""
    found: dict[tuple[int, bool], list[Due]] = {}
    for planned in faults:
        for edge in planned.edges:
            found.setdefault((edge.at_ns, edge.kind is EdgeKind.FAILURE), []).append(Due(planned, edge))
    return tuple(Moment(key[0], found[key][0].edge.kind, tuple(found[key])) for key in sorted(found))
