"""Course of a base run: its events, from the first injection to the end, in two phases. Pure.

Changes when another kind of event counts as a moment of convergence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from hpn.failover.analysis.model import EdgeKind
from hpn.results.run.folder import RunFolder
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event, EventKind

TICK_NS = 256
"""Step of the clock in virtual time: two readings differ by as much (``testbed.vm.repeatable``)."""
_LATENCY_NS = 40_000
"""Assumed time from the due time of a fault to its injection in a run that does not tell when traffic began."""
_MOMENTS = frozenset(
    {
        EventKind.LINK,
        EventKind.LACP,
        EventKind.LAG,
        EventKind.NEIGHBOUR,
        EventKind.ROUTE,
        EventKind.BGP,
        EventKind.BFD,
        EventKind.PATH,
        EventKind.DAEMON,
        EventKind.QP,
    }
)


@dataclass(frozen=True, slots=True)
class Instant:
    """Events of one clock reading after the first injection. ``phase``: before or after the first repair."""

    at_ns: int
    phase: EdgeKind
    events: tuple[Event, ...]

    @property
    def words(self) -> str:
        """Text: 'lacp attached of p0.s0.h0 r0p0 and 2 more'."""
        event, more = self.events[0], len(self.events) - 1
        place = " ".join(filter(None, (event.node, event.subject)))
        return f"{event.kind} {event.what} of {place}{f' and {more} more' if more else ''}"


@dataclass(frozen=True, slots=True)
class Course:
    """A base run. Times in ns of its clock; ``at_ns`` and ``repair_at_ns`` are due times after ``start_ns``."""

    events: tuple[Event, ...]
    start_ns: int
    at_ns: int
    injected_ns: int
    repair_at_ns: int | None
    repaired_ns: int | None
    end_ns: int

    @property
    def latency_ns(self) -> int:
        """Time from the due time of the first fault to its injection."""
        return self.injected_ns - self.start_ns - self.at_ns

    @property
    def instants(self) -> tuple[Instant, ...]:
        """Moments of convergence and return, in order."""
        after = (e for e in self.events if e.kind in _MOMENTS and self.injected_ns <= e.at_ns <= self.end_ns)
        return tuple(
            Instant(at_ns, self.phase(at_ns), tuple(found)) for at_ns, found in groupby(after, lambda e: e.at_ns)
        )

    def phase(self, at_ns: int) -> EdgeKind:
        """Return the phase of a time: failure until the first fault is repaired."""
        is_back = self.repaired_ns is not None and at_ns >= self.repaired_ns
        return EdgeKind.REPAIR if is_back else EdgeKind.FAILURE


def course_of(run: RunFolder, at_ns: int, repair_at_ns: int | None) -> Course:
    """Return the course of a run whose first fault is due ``at_ns`` after the start, and repaired ``repair_at_ns``.

    InputError when the run has no edge or a damaged record.
    """
    edges = [result.edge for result in run.metrics().edges]
    failures = [edge for edge in edges if edge.kind is EdgeKind.FAILURE]
    if not failures:
        raise InputError(f"{run.path} has no failure of a fault; there is nothing to explore")
    repairs = [edge for edge in edges if edge.kind is EdgeKind.REPAIR]
    injected_ns = failures[0].inject_before_ns
    return Course(
        events=tuple(sorted(run.events(), key=lambda event: event.at_ns)),
        start_ns=next((path.at_ns for path in run.paths()), injected_ns - at_ns - _LATENCY_NS),
        at_ns=at_ns,
        injected_ns=injected_ns,
        repair_at_ns=repair_at_ns,
        repaired_ns=repairs[0].inject_before_ns if repairs else None,
        end_ns=max(edge.window_end_ns for edge in edges),
    )


def until(events: Iterable[Event], end_ns: int) -> Sequence[Event]:
    """Return the events before a time, in order."""
    return [event for event in events if event.at_ns < end_ns]
