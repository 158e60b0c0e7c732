"""Flows that an edge harmed most, each as a bar on one logarithmic time axis. Pure.

Changes when a bar tells more of a flow. A bar is a flow's outage; for scattered loss it is its longest hole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpn.failover.analysis.budget import Interval, around
from hpn.failover.analysis.model import FlowEdgeResult, LossPattern
from hpn.failover.analysis.phrases import about_ms, packets
from hpn.results.page.axis import Tick, logarithmic_ms, time_text
from hpn.results.page.names import Names
from hpn.results.text.bounds import NEVER, at_least

_MOST_FLOWS = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """One flow's outage on a logarithmic axis, from the minimum to the maximum that it may have lasted, in per cent."""

    name: str
    words: str
    text: str
    low_pct: float
    high_pct: float
    open_ended: bool


@dataclass(frozen=True, slots=True)
class WorstFlows:
    """The flows that an edge harmed most, in descending order."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    left_out: int  # flows that were harmed less


def harmed(of: Sequence[FlowEdgeResult], names: Names) -> WorstFlows | None:
    """Return the flows that lost packets; None if no flow did."""
    hurt = sorted(
        (flow for flow in of if flow.lost + flow.corrupted or flow.stopped_by_error),
        key=lambda flow: (-flow.outage_plbm_ms, flow.name),
    )
    if not hurt:
        return None
    shown = hurt[:_MOST_FLOWS]
    axis = logarithmic_ms([at for flow in shown for at in _lasted(flow)])
    bars = tuple(
        Bar(
            flow.name,
            names.words(flow.name),
            _bar_text(flow),
            axis.at(_lasted(flow).low),
            100.0 if _is_open(flow) else axis.at(_lasted(flow).high),
            _is_open(flow),
        )
        for flow in shown
    )
    return WorstFlows(bars, axis.ticks(), len(hurt) - len(shown))


def _is_open(flow: FlowEdgeResult) -> bool:
    return not flow.recovered or flow.stopped_by_error


def _is_scattered(flow: FlowEdgeResult) -> bool:
    return flow.pattern is LossPattern.SCATTERED and flow.congestion is None and not _is_open(flow)


def _lasted(flow: FlowEdgeResult) -> Interval:
    """Return the interval of the outage; a hole of scattered loss is uncertain by one period either way."""
    if _is_scattered(flow):
        return around(flow.worst_outage_ms, flow.resolution_ms + flow.budget.machine_ms + flow.budget.clock_ms)
    return flow.budget.interval


def _bar_text(flow: FlowEdgeResult) -> str:
    lasted = at_least(time_text(flow.outage_plbm_ms), open_ended=_is_open(flow))
    if flow.stopped_by_error:
        return f"{lasted if flow.outage_plbm_ms else NEVER}, queue pair died"
    if _is_scattered(flow):
        return f"{packets(flow.lost + flow.corrupted)} lost, longest hole {about_ms(flow.worst_outage_ms)}"
    return f"{lasted}, {packets(flow.lost)} lost"
