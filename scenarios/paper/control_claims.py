"""Claim about congestion control over lossless switches, by a paper other than HPN's, with its judge. Pure.

Li et al., HPCC (SIGCOMM 2019), sections 1 and 5: against DCQCN queues are next to empty, and PFC hardly stops anybody.
"""

from __future__ import annotations

from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.measures import ClaimEvidence, Finding, towards_nics
from hpn.testbed.errors import MachineError

_HPCC, _DCQCN = "incast-pfc-hpcc", "incast-pfc-dcqcn"


def _p99_ms(metrics: DrillMetrics) -> float:
    """Return the 99th percentile of the longest queue towards a NIC."""
    return max(port.queue_p99_ms for port in towards_nics(metrics))


def _stops(metrics: DrillMetrics) -> int:
    """Return the XOFF that switches sent. MachineError for a run without buffers."""
    if metrics.buffers is None:
        raise MachineError("the claim is about PFC, and the drill's topology has no switch:")
    return sum(each.xoff_sent for each in metrics.buffers if each.is_switch)


def shorter_queue(found: ClaimEvidence) -> Finding:
    """Judge the queue and the pauses of an incast: shorter by more than half, and fewer."""
    ours, other = found.drills[_HPCC], found.drills[_DCQCN]
    queue, longer = _p99_ms(ours), _p99_ms(other)
    stops, more = _stops(ours), _stops(other)
    text = f"p99 of the queue {queue:.2f} ms, else {longer:.2f} ms; XOFF sent by switches {stops}, else {more}"
    return Finding(text, queue < longer / 2 and stops < more)


CLAIMS = (
    Claim(
        "hpcc-queue",
        "HPCC instead of DCQCN: an incast leaves the queue next to empty, and PFC stops fewer (SIGCOMM 2019)",
        "near 0, fewer",
        "three senders with SimAI's DCQCN, 200 times slower; shorter by half is ours; the paper has tens of senders",
        (_HPCC, _DCQCN),
        shorter_queue,
        without=(Without("telemetry (DCQCN)", {_HPCC: _DCQCN}),),
    ),
)
