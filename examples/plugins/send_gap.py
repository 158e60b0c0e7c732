"""A metric: how long a sender itself stood still."""

from __future__ import annotations

from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.expect.choose import chosen_flows, nothing
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure
from hpn.scenarios.expect.metric import Larger, Metric, Needs, Slowed, Takes, Unit
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.selection import Selection


def _worst(expectation: Selection, metrics: DrillMetrics) -> Figure:
    chosen = list(chosen_flows(expectation, metrics))
    if not chosen:
        return nothing(expectation)
    worst = max(chosen, key=lambda at: at.result.send_gap_ms)
    return Figure(worst.result.send_gap_ms, worst.label)


METRICS.add(
    Metric(
        "worst_send_gap",
        Unit.MS,
        Takes.FLOWS,
        Slowed.STRETCHED,
        Needs(fault=True),
        "the longest time at an edge in which a flow's sender sent nothing",
        from_metrics(_worst),
        larger=Larger.WORSE,
    )
)
