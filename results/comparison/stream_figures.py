"""Goodput of a run's streams during the first fault, absolute and in % of that before, each with its interval. Pure.

Changes when another rate of streams is compared. Pages tell its change in a sentence, whether or not an expectation
limits it.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.failover.analysis.budget import Interval, around
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult
from hpn.results.comparison.job_figures import BITS

STREAMS, IN_FAULT = "streams", "goodput during the first fault"
OF_BEFORE, SHARE = f"{IN_FAULT}, of that before", "%"


def stream_figures(run: DrillMetrics) -> Iterator[tuple[str, str, str, float, Interval]]:
    """Yield the goodput of all flows from the first failure to the next edge: place, figure, unit, value, interval.

    More is better in both. Nothing for a run without a failure, or without goodput before it.
    """
    first = next((result for result in run.edges if result.edge.kind is EdgeKind.FAILURE), None)
    if first is None or not first.goodput.before_bps:
        return
    before, during = first.goodput.before_bps, first.goodput.during_bps
    share, (now, then) = during / before, _off(run, first)
    yield STREAMS, IN_FAULT, BITS, during, around(during, before * now)
    yield STREAMS, OF_BEFORE, SHARE, 100 * share, around(100 * share, 100 * (now + share * then))


def _off(run: DrillMetrics, first: EdgeResult) -> tuple[float, float]:
    """Return the uncertainty during and before the fault, as shares of the goodput before.

    Each window may hold a packet (a burst) more or less. In the fault, what the machine adds may be lost too.
    """
    sending = run.transfers.plan.sending_share if run.transfers is not None else 1.0
    now_ms = (first.edge.window_end_ns - first.edge.inject_before_ns) / 1e6 * sending
    then_ms = min(run.settings.goodput_window_s, run.noise.window_s) * 1e3 * sending
    packet_ms, added_ms = first.resolution_ms, first.resolution_ms + run.noise.noise_floor_ms
    return added_ms / max(now_ms, added_ms, 1e-6), packet_ms / max(then_ms, packet_ms, 1e-6)
