"""Figures about delay: impairment, gaps at the receiver, impaired packets. One function per metric. Pure.

``scenarios.expect.choose`` selects the flows; ``failover.analysis.impairment`` computes the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hpn.failover.analysis.model import FlowEdgeResult
from hpn.failover.analysis.phrases import packets, plain
from hpn.scenarios.expect.choose import FlowAt
from hpn.scenarios.expect.figure import Figure, lower_bound, of_figures, rank


def impaired(chosen: Sequence[FlowAt], _stamps_ms: float) -> Figure:
    """Return the longest impairment of a flow in ms."""
    found = [_impairment(at) for at in chosen]
    worst, figure = max(zip(chosen, found, strict=True), key=lambda each: rank(each[1]))
    seen = worst.result.impairment
    if not seen.packets and not figure.open_ended:
        return of_figures(found, max, f"every packet came in time at {worst.edge.edge.label}")
    over = "" if seen.over else ", never in time again"
    said = f"{packets(worst.lost)} lost, {worst.result.late:,} late, by timestamps {plain(seen.tbm_ms, 5)} ms{over}"
    return of_figures(found, max, f"{worst.label}: {said}")


def _impairment(at: FlowAt) -> Figure:
    """Return impaired packets / rate.

    If it had no end, at least the time from the first impaired packet to the end of the window.
    """
    found = at.result.impairment
    if found.over and not at.result.stopped_by_error:
        return Figure(found.plbm_ms, at.label, found.low_ms, found.high_ms)
    first_ns, end_ns = found.first_at_ns, at.edge.edge.window_end_ns
    lasted_ms = at.open_ms if first_ns is None or found.over else (end_ns - first_ns) / 1e6
    return lower_bound(max(found.low_ms, lasted_ms), at.label, never=at.never)


def receive_gap(chosen: Sequence[FlowAt], stamps_ms: float) -> Figure:
    """Return the longest time without an arrival of a flow, less one period, in ms.

    Its uncertainty is the normal variation of timestamps plus one packet interval. It may also be shorter by the time
    that the sender itself was paused.
    """
    found = [_gap(at, at.result.resolution_ms + stamps_ms) for at in chosen]
    worst, _ = max(zip(chosen, found, strict=True), key=lambda each: rank(each[1]))
    pause = worst.result.impairment.sender_pause_ms
    said = worst.label + (f", its sender paused for {plain(pause)} ms of it" if pause else "")
    return of_figures(found, max, f"{said}: it never came back" if worst.open_ended else said)


def _gap(at: FlowAt, off_ms: float) -> Figure:
    found = at.result.impairment
    low_ms = max(found.receive_gap_ms - found.sender_pause_ms - off_ms, 0.0)
    if at.open_ended:
        return lower_bound(max(low_ms, at.open_ms - off_ms), at.label, never=at.never)
    return Figure(found.receive_gap_ms, at.label, low_ms, found.receive_gap_ms + off_ms)


def packets_impaired(counted: Figure, results: Sequence[FlowEdgeResult]) -> Figure:
    """Return the count; packets that their senders may have delayed themselves make it too high."""
    doubtful = sum(result.impairment.doubtful for result in results)
    if counted.value is None or not doubtful:
        return counted
    evidence = f"{counted.evidence}; {doubtful:,} may have been late at their senders"
    low = max(counted.value - doubtful, 0.0)
    if counted.open_ended:
        return lower_bound(low, evidence)
    return replace(counted, evidence=evidence, low=low, high=counted.value)
