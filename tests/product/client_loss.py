"""What a fault cost a job, of whatever kind it is, in the same units: from when its iterations ended. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from hpn.failover.analysis.edge import Edge
from hpn.failover.analysis.job import JobMetrics


@dataclass(frozen=True, slots=True)
class Loss:
    """``period_ms``: from the end of an iteration to that of the next before the first fault, the median.

    ``stall_ms``: the longest such time from this fault on, less that. ``lost``: iterations that there would have been
    at that period from the last one before the fault to the last one before the next, less those that there were.
    ``unfinished``: the longest time is that to the next fault or the run's end, in which no iteration ended.
    ``died_s``: seconds from the fault to the job's death, ``why`` its words.
    """

    period_ms: float
    stall_ms: float
    lost: float
    unfinished: bool = False
    died_s: float | None = None
    why: str = ""


def losses_of(job: JobMetrics, edges: Sequence[Edge]) -> Mapping[str, Loss]:
    """By fault, up to the first after which no iteration ended any more before the next came: what that one cost on top
    nobody can tell. None at all when no two iterations ended before the first.
    """
    ends = sorted(each.end_ns for each in job.iterations)
    begins = {edge.fault: edge.inject_before_ns for edge in sorted(edges, key=_begin, reverse=True)}
    faults = sorted(begins, key=lambda fault: begins[fault])
    before = [at for at in ends if faults and at <= begins[faults[0]]]
    if len(before) < 2:
        return {}
    period_ns = median(later - earlier for earlier, later in pairwise(before))
    limits = [*(begins[fault] for fault in faults), max(edge.window_end_ns for edge in edges)]
    found: dict[str, Loss] = {}
    for fault, window in zip(faults, pairwise(limits), strict=True):
        found[fault] = _dead(_loss(ends, period_ns, window), job, window)
        if found[fault].unfinished:
            break
    return found


def _begin(edge: Edge) -> int:
    return edge.inject_before_ns


def _dead(loss: Loss, job: JobMetrics, window: tuple[int, int]) -> Loss:
    """With the job's death, if it came then."""
    for death in job.deaths[:1]:
        if window[0] <= death.at_ns < window[1]:
            return replace(loss, unfinished=True, died_s=(death.at_ns - window[0]) / 1e9, why=death.queue_pair)
    return loss


def _loss(ends: Sequence[int], period_ns: float, window: tuple[int, int]) -> Loss:
    fault_ns, next_ns = window
    last = max(at for at in ends if at <= fault_ns)
    after = [at for at in ends if fault_ns < at <= next_ns]
    gaps = [later - earlier for earlier, later in pairwise((last, *after))]
    open_ns = next_ns - (after or [last])[-1]
    unfinished = open_ns > max((*gaps, 2 * period_ns))
    longest_ns = open_ns if unfinished else max(gaps, default=period_ns)
    until_ns = next_ns if unfinished else (after or [last])[-1]
    return Loss(
        period_ns / 1e6,
        max(0.0, (longest_ns - period_ns) / 1e6),
        (until_ns - last) / period_ns - len(after),
        unfinished,
    )
