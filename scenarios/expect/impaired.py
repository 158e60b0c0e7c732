"""Figures about delay: impairment, the receiver's gaps, impaired packets. One function per metric. Pure.

``scenarios.expect.measure`` chooses the flows; the figures themselves are ``failover.analysis.impairment``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from failover.analysis.impairment import Impairment
from failover.analysis.model import EdgeResult, FlowEdgeResult
from scenarios.expect.figure import Figure


@dataclass(frozen=True, slots=True)
class AtEdge:
    """One flow at one edge."""

    edge: EdgeResult
    result: FlowEdgeResult

    @property
    def impairment(self) -> Impairment:
        """Its impairment."""
        return self.result.impairment

    @property
    def open_ended(self) -> bool:
        """Whether packets in time did not come back."""
        return self.result.stopped_by_error or not self.impairment.over

    @property
    def impaired_ms(self) -> float:
        """Impaired / rate; without an end at least the time from the first impaired packet to that of the window."""
        first_ns = self.impairment.first_at_ns
        if not self.open_ended or first_ns is None:
            return self.impairment.plbm_ms
        return max(self.impairment.plbm_ms, (self.edge.edge.window_end_ns - first_ns) / 1e6)

    @property
    def label(self) -> str:
        """'FLOW at EDGE'."""
        return f"{self.result.name} at {self.edge.edge.label}"


def impaired(chosen: Sequence[AtEdge], _stamps_ms: float) -> Figure:
    """The longest impairment of a flow, ms."""
    worst = max(chosen, key=lambda at: (at.open_ended, at.impaired_ms))
    found = worst.impairment
    if not found.packets and not worst.open_ended:
        evidence = f"every packet came in time at {worst.edge.edge.label}"
    else:
        lost = worst.result.lost + worst.result.corrupted
        over = "" if found.over else ", never in time again"
        evidence = (
            f"{worst.label}: {lost} packets lost, {worst.result.late} late, by timestamps {found.tbm_ms:.5g} ms{over}"
        )
    if worst.open_ended:
        return Figure(worst.impaired_ms, evidence, open_ended=True)
    low = max(at.impairment.low_ms for at in chosen)
    return Figure(worst.impaired_ms, evidence, low, max(at.impairment.high_ms for at in chosen))


def receive_gap(chosen: Sequence[AtEdge], stamps_ms: float) -> Figure:
    """The longest time in which nothing of a flow arrived, less one period, ms.

    It may be as much shorter or longer as stamps may differ although nothing is wrong, and as packets are apart; and as
    much shorter as the sender itself stood still meanwhile.
    """
    worst = max(chosen, key=lambda at: (not at.result.recovered, at.impairment.receive_gap_ms))
    value, pause = worst.impairment.receive_gap_ms, worst.impairment.sender_pause_ms
    evidence = worst.label + (f", its sender paused for {pause:.3g} ms of it" if pause else "")
    if worst.result.stopped_by_error or not worst.result.recovered:
        return Figure(value, f"{evidence}: it never came back", open_ended=True)
    reach = [(at.impairment, at.result.resolution_ms + stamps_ms) for at in chosen]
    low = max(each.receive_gap_ms - each.sender_pause_ms - off for each, off in reach)
    return Figure(value, evidence, max(low, 0.0), max(each.receive_gap_ms + off for each, off in reach))


def packets_impaired(counted: Figure, results: Sequence[FlowEdgeResult]) -> Figure:
    """The count, which may be too high by those packets that their senders may have held back themselves."""
    doubtful = sum(result.impairment.doubtful for result in results)
    if counted.value is None or not doubtful:
        return counted
    evidence = f"{counted.evidence}; {doubtful} may have been late at their senders"
    return replace(counted, evidence=evidence, low=max(counted.value - doubtful, 0.0), high=counted.value)
