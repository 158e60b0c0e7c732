"""Loss scattered over a window, as of a link that drops a share: reported as share and longest hole, not as outage.
Pure.

Changes when scattered loss is reported otherwise. The outage figures add up the holes of a flow (PLBM): for scattered
packets that sum is no time in which the flow stood still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpn.failover.analysis.edge import EdgeKind
from hpn.failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, LossPattern, Phase
from hpn.failover.analysis.phrases import about_ms, plain


@dataclass(frozen=True, slots=True)
class Scattered:
    """Loss of flows, of which the one that lost most lost single packets; flows that died are left out."""

    flows: int  # that lost anything
    packets: int  # missing
    sent: int  # by these flows, in the windows
    longest_ms: float  # the longest hole of any of them

    @property
    def share(self) -> str:
        """Share of packets lost: '1.1 %'."""
        return f"{plain(100 * self.packets / max(self.sent, 1), 2)} %"

    @property
    def hole(self) -> str:
        """Longest hole: '1.66 ms'."""
        return about_ms(self.longest_ms)

    @property
    def words(self) -> str:
        """Text: '2 of them lost 1.1 % of their packets (77), longest hole 1.66 ms'."""
        whose = "its packets" if self.flows == 1 else "their packets"
        return f"{self.flows} of them lost {self.share} of {whose} ({self.packets:,}), longest hole {self.hole}"


def scattered(metrics: DrillMetrics, edges: Sequence[EdgeResult]) -> Scattered | None:
    """Return the scattered loss; None if the worst flow had an outage, nothing was lost, or congestion took packets.

    Shares are of the time from a failure to its repair, if ``edges`` have both.
    """
    hurt = [flow for edge in edges for flow in _hurt(metrics, edge)]
    if not hurt or any(edge.congestion is not None for edge in edges):
        return None
    if max(hurt, key=lambda flow: flow.budget.high_ms).pattern is not LossPattern.SCATTERED:
        return None
    failures = [edge for edge in edges if edge.edge.kind is EdgeKind.FAILURE] or edges
    counted = [flow for edge in failures for flow in _hurt(metrics, edge)] or hurt
    return Scattered(
        flows=len({flow.flow for flow in counted}),
        packets=sum(map(_missing, counted)),
        sent=sum(flow.sent for flow in counted),
        longest_ms=max(flow.worst_outage_ms for flow in hurt),
    )


def recovery(metrics: DrillMetrics, edge: EdgeResult) -> Phase:
    """Return the last flow's recovery; none of flows that had died before.

    A pause in scattered loss is no recovery, unless queue pairs were moved.
    """
    found = edge.phases.recover
    if metrics.all_dead_before(edge):
        return Phase(None, reason="every flow that is hit had died before")
    if edge.edge.kind is not EdgeKind.FAILURE or found.at_ns is None or scattered(metrics, (edge,)) is None:
        return found
    quiet_ns = edge.edge.window_end_ns - found.at_ns
    if edge.phases.path_last.ms is not None and quiet_ns >= metrics.settings.validation_s * 1e9:
        return found
    return Phase(None, reason="scattered loss: a pause of it is no recovery")


def _hurt(metrics: DrillMetrics, edge: EdgeResult) -> list[FlowEdgeResult]:
    """Return the affected flows that lost packets and are alive."""
    found = zip(metrics.flows, metrics.flows_at(edge), strict=True)
    return [at for of, at in found if of.stopped_at_ns is None and at.relation.is_touched and _missing(at)]


def _missing(flow: FlowEdgeResult) -> int:
    return flow.lost + flow.corrupted
