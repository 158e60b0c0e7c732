"""The noise floor: the method's reading on a healthy lab, printed next to every figure.

Changes when the measurement of an outage changes, because the floor is measured in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.failover.analysis.metrics.trace import FlowTrace
from hpn.failover.analysis.model import NoiseFloor

PSEUDO_EDGE_SPACING_S = 0.25


@dataclass(frozen=True, slots=True)
class _OfFlow:
    """Contribution of one flow to the noise floor."""

    gaps_ns: npt.NDArray[np.int64]
    outages_ns: tuple[float, ...]  # at each pseudo-edge
    delay_variation_ns: float
    lost: int


def noise_floor(
    traces: Iterable[FlowTrace],
    start_ns: int,
    end_ns: int,
    tick_ns: float = 0.0,
) -> NoiseFloor:
    """Measure the healthy phase [start, end) as if an edge were injected every quarter of a second.

    At each pseudo-edge and for each flow the outage is the larger of PLBM's count and TBM's longest hole up to the next
    pseudo-edge. The floor is the largest of them all. A hole that ``tick_ns`` of pacing alone makes is resolution, not
    noise.
    """
    starts = range(start_ns, end_ns, int(PSEUDO_EDGE_SPACING_S * 1e9))
    flows = [_of_flow(trace, starts, end_ns, tick_ns) for trace in traces]
    sender = np.concatenate([flow.gaps_ns for flow in flows]) if flows else np.empty(0)
    return NoiseFloor(
        noise_floor_ms=max((outage for flow in flows for outage in flow.outages_ns), default=0.0) / 1e6,
        send_gap_max_ms=float(sender.max()) / 1e6 if len(sender) else 0.0,
        send_gap_p99_ms=float(np.percentile(sender, 99)) / 1e6 if len(sender) else 0.0,
        delay_variation_ms=max((flow.delay_variation_ns for flow in flows), default=0.0) / 1e6,
        lost=sum(flow.lost for flow in flows),
        pseudo_edges=len(starts),
        window_s=max(end_ns - start_ns, 0) / 1e9,
    )


def _of_flow(trace: FlowTrace, starts: range, end_ns: int, tick_ns: float) -> _OfFlow:
    start_ns = starts.start
    delays = trace.delay_ns[_within(trace.received_sent_ns, start_ns, end_ns)]
    return _OfFlow(
        gaps_ns=np.diff(trace.burst_clock[_within(trace.burst_ns, start_ns, end_ns)]),
        outages_ns=tuple(
            _pseudo_outage_ns(trace, start_ns, at, min(at + starts.step, end_ns), tick_ns) for at in starts
        ),
        delay_variation_ns=float(np.ptp(delays)) if len(delays) else 0.0,
        lost=_missing_within(trace, start_ns, end_ns),
    )


def _within(times: np.typing.NDArray[np.int64], start_ns: int, end_ns: int) -> slice:
    first, last = np.searchsorted(times, (start_ns, end_ns), "left")
    return slice(int(first), int(last))


def _missing_within(trace: FlowTrace, start_ns: int, end_ns: int) -> int:
    span = trace.span(start_ns, end_ns)
    first, last = np.searchsorted(trace.missing, (span.start, span.stop), "left")
    return int(last - first)


def _pseudo_outage_ns(trace: FlowTrace, healthy_ns: int, start_ns: int, end_ns: int, tick_ns: float) -> float:
    """Return the outage at the pseudo-edge at ``start_ns``; a hole that was open then counts completely."""
    by_loss = _missing_within(trace, start_ns, end_ns) * trace.period_ns
    seen = _within(trace.received_sent_ns, start_ns, end_ns)
    earliest = _within(trace.received_sent_ns, healthy_ns, end_ns).start
    gaps = np.diff(trace.clock(trace.received_sent_ns[max(seen.start - 1, earliest) : seen.stop]))
    by_time = float(gaps.max()) - _paced_gap_ns(trace.period_ns, tick_ns) if len(gaps) else 0.0
    return max(by_loss, by_time, 0.0)


def _paced_gap_ns(period_ns: float, tick_ns: float) -> float:
    """Return the largest send gap when a packet leaves at the first tick after it is due."""
    return math.ceil(period_ns / tick_ns) * tick_ns if tick_ns else period_ns
