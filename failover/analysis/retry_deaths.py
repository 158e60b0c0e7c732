"""Note on the setting that decided when queue pairs of streams died. Pure.

Changes when another setting decides how long a queue pair waits for an acknowledgement.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpn.failover.analysis.model import DrillMetrics
from hpn.traffic.flows.flow import FlowSpec


def retry_notes(metrics: DrillMetrics, flows: Iterable[FlowSpec]) -> tuple[str, ...]:
    """Return a note with timeout and retries if stream queue pairs died without an acknowledgement; else nothing."""
    dead = {flow.flow for flow in metrics.flows if flow.stopped_at_ns is not None and flow.patience_ms}
    told = dict.fromkeys(
        f"ib_timeout {flow.ib_timeout}, retry_count {flow.retry_count}" for flow in flows if flow.id in dead
    )
    if not told:
        return ()
    which = "a queue pair" if len(dead) == 1 else f"{len(dead)} queue pairs"
    return (f"{which} died by the retry timer ({'; '.join(told)} in the drill): larger values outlive a longer outage",)
