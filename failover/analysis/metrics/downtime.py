"""Downtime of a job whose host was replaced by a spare: from the failure to the last replacement flow at work.

Changes when that is counted differently. Nothing shorter than a packet period is visible in a flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpn.failover.analysis.downtime import Downtime
from hpn.failover.analysis.metrics.trace import FlowTrace, Traces
from hpn.failover.analysis.model import Edge, EdgeKind
from hpn.traffic.flows.flow import FlowSpec


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A flow that may begin at a takeover, and the arrival of the last of its first packets in order, if any."""

    spec: FlowSpec
    resolution_ns: float
    at_ns: int | None


def downtime(traces: Traces, edges: Sequence[Edge], packets: int) -> Downtime | None:
    """Return the downtime at a takeover, the last of ``edges`` in order of time; None when that is no takeover.

    A replacement flow is at work when ``packets`` in order have arrived, of itself or of its own replacement: a peer
    may be replaced as well.
    """
    edge = edges[-1]
    deaths = [e for e in edges if e.kind is EdgeKind.FAILURE and set(e.faults) & set(edge.taken_over)]
    if not deaths:
        return None
    since_ns, new = deaths[0].inject_before_ns, set(edges[-2].absent) - set(edge.absent)
    later = [
        _Replacement(trace.spec, trace.resolution_ns, _in_order_at(trace, packets))
        for trace in traces
        if trace.spec.id in new or trace.spec.replaces is not None
    ]
    begun = [each for each in later if each.spec.id in new]
    successors = {replaced: each for each in later if (replaced := each.spec.replaces) is not None}
    came = [_at_work(each, successors) for each in begun]
    resolution_ms = max((each.resolution_ns for each in begun), default=0.0) / 1e6
    idle = [each.spec.name for each, last in zip(begun, came, strict=True) if last is None]
    if idle or not begun:
        reason = f"{len(idle)} of {len(begun)} replacement flows did not get {packets} packets through in order, first"
        reason = f"{reason} {idle[0]}" if idle else "no queue pair was replaced"
        return Downtime(None, since_ns, None, len(begun), "", resolution_ms, reason)
    until_ns, last = max((arrival for arrival in came if arrival is not None), key=lambda arrival: arrival[0])
    return Downtime((until_ns - since_ns) / 1e6, since_ns, until_ns, len(begun), last.name, resolution_ms)


def _at_work(begun: _Replacement, successors: Mapping[int, _Replacement]) -> tuple[int, FlowSpec] | None:
    """Return the arrival of the last of the first packets in order, and their flow."""
    here: _Replacement | None = begun
    while here is not None:
        if here.at_ns is not None:
            return here.at_ns, here.spec
        here = successors.get(here.spec.id)
    return None


def _in_order_at(trace: FlowTrace, packets: int) -> int | None:
    good = (trace.received & ~trace.reordered).astype(np.int64)
    if len(good) < packets:
        return None
    runs = np.flatnonzero(np.convolve(good, np.ones(packets, np.int64), "valid") == packets)
    return int(trace.arrival_ns[runs[0] : runs[0] + packets].max()) if len(runs) else None
