"""Record of host routes that a converged lab has with fewer next hops than its links allow.

Changes when a run records another property of its routes before any fault.
"""

from __future__ import annotations

from hpn.failover.analysis.short_routes import SHORT
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.lab.expected_routes import ShortRoute, short_routes
from hpn.testbed.lab.lab import Lab


def short_route_events(lab: Lab) -> list[Event]:
    """Return an event for each; none unless switches have configurations of their own: else convergence waits."""
    if not own_configs(lab.fabric):
        return []
    return [_event(each, now_ns()) for each in short_routes(lab.fabric, lab.watcher.next_hops)]


def _event(route: ShortRoute, at_ns: int) -> Event:
    detail = {"next_hops": route.next_hops, "links_allow": route.links_allow}
    return Event(at_ns, EventKind.ROUTE, route.switch, route.prefix, SHORT, detail)
