"""Budget of an outage from a flow's packets: those around it, or those between which it would be invisible.

Changes when other packets give more information about an outage. The rule itself: ``failover.analysis.budget``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpn.failover.analysis.budget import OutageBudget, outage_budget
from hpn.failover.analysis.metrics.outage import stopped_ns
from hpn.failover.analysis.metrics.trace import FlowTrace

NS_PER_MS = 1e6


def lossy(
    certain_ns: float, possible_ns: float, methods_ns: Sequence[float], noise_ms: float, clock_ms: float
) -> OutageBudget:
    """Return the budget of outages with missing packets; bounds as in ``outage``, the methods are PLBM and TBM."""
    methods_ms = [value / NS_PER_MS for value in methods_ns]
    return outage_budget(certain_ns / NS_PER_MS, possible_ns / NS_PER_MS, methods_ms, noise_ms, clock_ms)


def lossless(
    trace: FlowTrace, start_ns: int, end_ns: int, noise_ms: float, clock_ms: float, *, died: bool
) -> OutageBudget:
    """Return the budget of a flow that lost nothing sent in [start, end): the largest gap may hide an outage.

    An outage that begins in the window lasts no longer than to the packet after it: if that were lost, it would be the
    next edge's. A queue pair that has ``died`` sends no more; another one that stops sending could hide all the rest.
    """
    first, last = np.searchsorted(trace.received_sent_ns, (start_ns, end_ns))
    behind = trace.sent_clock[np.searchsorted(trace.sent_ns, end_ns) :][:1]
    silent = died and last == len(trace.received_sent_ns)
    ends = () if silent else behind if len(behind) else (trace.clock_at(end_ns),)
    stamped = trace.clock(trace.received_sent_ns[first:last])
    left = stamped + stopped_ns(trace, np.flatnonzero(trace.received)[first:last])
    starts = np.concatenate([[trace.clock_at(start_ns)], stamped])
    gaps = np.concatenate([left, ends]) - starts[: len(left) + len(ends)]
    return outage_budget(0.0, float(gaps.max(initial=0)) / NS_PER_MS, (0.0,), noise_ms, clock_ms)
