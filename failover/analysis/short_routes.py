"""Note on host routes that had fewer next hops than links allow before any fault. Pure.

Changes when a run records such routes otherwise. Only runs of switches with configurations of their own record them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpn.failover.analysis.phrases import many
from hpn.testbed.events import Event, EventKind

SHORT = "short"
"""Event: a route of a converged lab has ``next_hops`` where its links allow ``links_allow``."""


def short_route_notes(events: Sequence[Event]) -> Iterator[str]:
    """Yield a line for each switch with such routes, in the order of the fabric."""
    found: dict[str, list[Event]] = {}
    for event in events:
        if event.kind is EventKind.ROUTE and event.what == SHORT:
            found.setdefault(event.node, []).append(event)
    for switch, short in found.items():
        worst = min(short, key=lambda event: event.detail["next_hops"])
        example = f"{worst.subject} by {worst.detail['next_hops']} of {worst.detail['links_allow']} links"
        yield f"before any fault {switch} lacks next hops of {many(len(short), 'host route')}: {example}"
