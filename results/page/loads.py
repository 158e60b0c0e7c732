"""The offered load of links as a table of a run's page. Pure.

Changes when a page tells more of offered load.
"""

from __future__ import annotations

from failover.analysis.model import DrillMetrics
from results.page.sections import Table
from results.text.values import rate

_MOST_SPANS = 8
_MOST_LINKS = 16


def offered_table(metrics: DrillMetrics) -> Table | None:
    """The offered load of the busiest links, before the faults and after each; None where nobody knows it."""
    offered = metrics.offered
    if offered is None or not offered.links:
        return None
    columns = offered.settled[:_MOST_SPANS]
    shown = sorted(offered.links, key=lambda link: -max(share or 0.0 for share in link.shares))[:_MOST_LINKS]
    rows = tuple(
        (
            f"{link.sender} to {link.towards}",
            rate(link.rate_bps),
            *("dead" if (share := link.shares[at]) is None else f"{100 * share:.1f} %" for at in columns),
        )
        for link in shown
    )
    titles = (f">after {after}" if (after := offered.spans[at].after) else ">before" for at in columns)
    over = ": above 100 % a queue fills and drops the rest, which is congestion"
    return Table(f"Offered load, % of the link's rate{over}", ("link", ">bit/s", *titles), rows)
