"""Table of late packets, for runs whose delays add something to their losses. Pure.

Changes when a figure of impairment is shown in another way.
"""

from __future__ import annotations

from rich.table import Table

from hpn.failover.analysis.model import DrillMetrics, EdgeResult
from hpn.results.text.tables import table


def impairment_table(metrics: DrillMetrics) -> Table | None:
    """Return impaired packets and receive gaps of every edge; None if they add nothing to the outages."""
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
    """Return True if packets were late, or a receive gap exceeds the outage by more than the resolution."""
    found = result.impairment
    reach_ms = 2 * max(result.resolution_ms, result.send_gap_ms) + metrics.noise.delay_variation_ms
    return found.late > 0 or found.worst_receive_gap_ms > result.worst_outage_tbm_ms + reach_ms
