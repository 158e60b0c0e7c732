"""How long a job stood still for a host that a spare replaced: death to the last stand-in at work.

Changes when that is counted differently. Nothing shorter than a packet period can be told of a flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from failover.analysis.downtime import Downtime
from failover.analysis.metrics.trace import FlowTrace
from failover.analysis.model import Edge, EdgeKind

_Arrival = tuple[int, FlowTrace]
"""When, and of which flow."""


def downtime(traces: Sequence[FlowTrace], edges: Sequence[Edge], packets: int) -> Downtime | None:
    """Return the downtime at a takeover, the last of ``edges`` in order of time; None when that is no takeover.

    At work is a stand-in of which ``packets`` in order have arrived, or another that stands in for it: a peer may be
    replaced as well.
    """
    edge = edges[-1]
    deaths = [e for e in edges if e.kind is EdgeKind.FAILURE and set(e.faults) & set(edge.taken_over)]
    if not deaths:
        return None
    since_ns = deaths[0].inject_before_ns
    before = edges[-2].absent
    begun = [t for t in traces if t.spec.id in before and t.spec.id not in edge.absent]
    successors = {replaced: t for t in traces if (replaced := t.spec.replaces) is not None}
    came = [_at_work(trace, successors, packets) for trace in begun]
    resolution_ms = max((trace.resolution_ns for trace in begun), default=0.0) / 1e6
    idle = [trace.spec.name for trace, arrival in zip(begun, came, strict=True) if arrival is None]
    if idle or not begun:
        reason = f"{len(idle)} of {len(begun)} stand-ins did not get {packets} packets through in order, first"
        reason = f"{reason} {idle[0]}" if idle else "no queue pair was replaced"
        return Downtime(None, since_ns, None, len(begun), "", resolution_ms, reason)
    until_ns, last = max((arrival for arrival in came if arrival is not None), key=lambda arrival: arrival[0])
    return Downtime((until_ns - since_ns) / 1e6, since_ns, until_ns, len(begun), last.spec.name, resolution_ms)


def _at_work(trace: FlowTrace, successors: Mapping[int, FlowTrace], packets: int) -> _Arrival | None:
    """When the last of the first ``packets`` in order arrived, and whose they were."""
    here: FlowTrace | None = trace
    while here is not None:
        at_ns = _in_order_at(here, packets)
        if at_ns is not None:
            return at_ns, here
        here = successors.get(here.spec.id)
    return None


def _in_order_at(trace: FlowTrace, packets: int) -> int | None:
    good = (trace.received & ~trace.reordered).astype(np.int64)
    if len(good) < packets:
        return None
    runs = np.flatnonzero(np.convolve(good, np.ones(packets, np.int64), "valid") == packets)
    return int(trace.arrival_ns[runs[0] : runs[0] + packets].max()) if len(runs) else None
