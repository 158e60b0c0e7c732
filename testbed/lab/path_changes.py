"""Moments at which a lab's flows may have changed their paths.

Changes when something else moves a flow.
"""

from __future__ import annotations

from collections.abc import Callable

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.lab.lab import Lab

_MOVING = frozenset({EventKind.LINK, EventKind.LAG, EventKind.ROUTE, EventKind.BGP, EventKind.PATH})


def on_path_changes(lab: Lab, tell: Callable[[int], None]) -> Callable[[], None]:
    """Call ``tell`` with the time (CLOCK_MONOTONIC) of each event or route change that may move flows.

    Call the result to end it.
    """

    def heard(event: Event) -> None:
        if event.kind in _MOVING:
            tell(event.at_ns)

    def routed(_node: str) -> None:
        tell(now_ns())

    quiet = lab.subscribe(heard)
    lab.route_listeners.append(routed)

    def end() -> None:
        quiet()
        lab.route_listeners.remove(routed)

    return end
