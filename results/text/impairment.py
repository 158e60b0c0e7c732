"""The table of what came too late, for runs in which delay says something that loss does not. Pure.

Changes when a figure of impairment is shown in another way.
"""

from __future__ import annotations

from rich.table import Table

from hpn.failover.analysis.model import DrillMetrics, EdgeResult
from hpn.results.text.tables import table


def impairment_table(metrics: DrillMetrics) -> Table | None:
    """Impaired packets and receive gaps of every edge; None when they are what the outages say already."""
    if not any(_differs(result, metrics) for result in metrics.edges):
        return None
    columns = ("edge", ">impaired", ">late", ">worst impairment", ">worst receive gap")
    rows = [
        (
            result.edge.label,
            str(result.impairment.packets),
            str(result.impairment.late),
            f"{result.impairment.worst_ms:.2f}",
            f"{result.impairment.worst_receive_gap_ms:.2f}",
        )
        for result in metrics.edges
    ]
    late_ms = metrics.settings.forwarding_delay_threshold_ms
    title = f"impairment in ms = (missing + later than {late_ms:g} ms) / rate; receive gap: TBM by receive stamps"
    return table(title, columns, rows)


def _differs(result: EdgeResult, metrics: DrillMetrics) -> bool:
    """Whether something was late, or nothing arrived for longer than packets were missing, by more than can be told."""
    found = result.impairment
    reach_ms = 2 * max(result.resolution_ms, result.send_gap_ms) + metrics.noise.delay_variation_ms
    return found.late > 0 or found.worst_receive_gap_ms > result.worst_outage_tbm_ms + reach_ms
