"""Table of the links' offered load on a run's page. Pure.

Changes when a page tells more of offered load.
"""

from __future__ import annotations

from collections.abc import Sequence

from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.offered import FULL, OfferedLink
from hpn.results.page.sections import Table
from hpn.results.text.values import value_text

_MOST_SPANS = 8
_MOST_LINKS = 16
_SEEN = 0.001
"""Smallest visible change, as a share of the link's rate."""


def offered_table(metrics: DrillMetrics) -> Table | None:
    """Return the offered load of the busiest links, before the faults and after each; None if it is unknown."""
    offered = metrics.offered
    if offered is None or not offered.links:
        return None
    columns = offered.settled[:_MOST_SPANS]
    ranked = sorted(offered.links, key=lambda link: -max(_shares(link, columns)))
    telling = [link for link in ranked if _tells(link, columns)]
    shown = (telling or ranked)[:_MOST_LINKS]
    rows = tuple(
        (
            f"{link.sender} to {link.towards}",
            value_text(link.rate_bps, "bit/s"),
            *("dead" if (share := link.shares[at]) is None else f"{100 * share:.1f} %" for at in columns),
        )
        for link in shown
    )
    titles = (f">after {after}" if (after := offered.spans[at].after) else ">before" for at in columns)
    which = "links where it changed or is too high" if telling else "busiest links"
    left_out = len(ranked) - len(shown)
    more = f"; {left_out} more {'links are' if left_out != 1 else 'link is'} left out" if left_out else ""
    return Table(f"Offered load of the {which}, % of the link's rate{more}", ("link", ">rate", *titles), rows)


def _shares(link: OfferedLink, columns: Sequence[int]) -> list[float]:
    return [link.shares[at] or 0.0 for at in columns] or [0.0]


def _tells(link: OfferedLink, columns: Sequence[int]) -> bool:
    """Return True if a fault or repair changed the load visibly, or the load exceeds the link's rate."""
    shares = _shares(link, columns)
    changed = any(link.shares[at] is None for at in columns) or max(shares) - min(shares) >= _SEEN
    return changed or max(shares) > FULL
