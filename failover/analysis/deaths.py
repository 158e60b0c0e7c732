"""State of failover when a queue pair died: later steps could not save it. Pure.

Changes when another step of failover can come too late. A death belongs to the edge with which its outage began, which
may come before the one in whose window it died.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult, FlowResult, Phases
from hpn.failover.analysis.phrases import in_ms, queue_pairs

NOTICED = "an end of the link noticed"


@dataclass(frozen=True, slots=True)
class TooLate:
    """A queue pair that died before a step of failover, which came too late for it. Times since the injection."""

    flow: int
    died_ms: float
    detect_ms: float | None  # the first sign of detection; None: there was none
    last: tuple[float, str] | None  # the last step of failover, if it came after the death

    @property
    def unnoticed(self) -> bool:
        """True if it died before the failure was detected."""
        return self.detect_ms is None or self.died_ms < self.detect_ms


def too_late(metrics: DrillMetrics, result: EdgeResult) -> Iterator[TooLate]:
    """Yield queue pairs that died of an outage that began with this failure, before failover was over."""
    at, edge, phases = metrics.edges.index(result), result.edge, result.phases
    if edge.kind is not EdgeKind.FAILURE:
        return
    last = max(steps(phases), default=None)
    for flow in metrics.flows:
        if flow.stopped_at_ns is None or began_at(flow) != at or not flow.edges[at].relation.is_touched:
            continue
        died_ms = (flow.stopped_at_ns - edge.inject_before_ns) / 1e6
        missed = last if last is not None and last[0] > died_ms else None
        found = TooLate(flow.flow, died_ms, phases.detect.ms, missed)
        if found.unnoticed or found.last is not None:
            yield found


def began_at(flow: FlowResult) -> int | None:
    """Return the number of the edge at which the outage began that a queue pair died of; None: it is alive."""
    at = next((number for number, seen in enumerate(flow.edges) if seen.stopped_by_error), None)
    while at and flow.edges[at].in_outage_at_injection:
        at -= 1
    return at


def unnoticed(found: Sequence[TooLate]) -> Iterator[str]:
    """Yield 'detection time: 2 queue pairs died 547 ms after it, before an end of the link noticed 2.18 s after it'."""
    for detect_ms in {each.detect_ms for each in found}:  # one value, as all are of one edge
        noticed = "and nothing that was hit noticed"
        if detect_ms is not None:
            noticed = f"before {NOTICED} {in_ms(detect_ms)} after it"
        yield f"detection time: {_died(found)}, {noticed}"


def before_it_was_over(found: Sequence[TooLate]) -> Iterator[str]:
    """Yield '2 queue pairs died 547 ms after it, before failover was over: the last route changed ... 1 s after it'."""
    for ms, what in {each.last for each in found if each.last is not None}:  # one
        yield f"{_died(found)}, before failover was over: {what} {in_ms(ms)} after it"


def steps(phases: Phases) -> list[tuple[float, str]]:
    """Return the failover steps of hosts and switches after an edge, with their times since the injection."""
    known = (
        (phases.path_last.ms, "path control moved the last queue pair"),
        (phases.converge.ms, "the last route changed (convergence)"),
        (_switched_ms(phases), "the last LAG changed its ports"),
        (phases.detect.ms, f"{NOTICED} (detection)"),
    )
    return [(ms, what) for ms, what in known if ms is not None]


def _died(found: Sequence[TooLate]) -> str:
    """Return '2 queue pairs died 547 ms to 1.2 s after it'."""
    times = dict.fromkeys(in_ms(bound(each.died_ms for each in found)) for bound in (min, max))
    return f"{queue_pairs(len(found))} died {' to '.join(times)} after it"


def _switched_ms(phases: Phases) -> float | None:
    """Return the time of the switch phase's end since the injection."""
    detect, switch = phases.detect.ms, phases.switch.ms
    return None if detect is None or switch is None else detect + switch
