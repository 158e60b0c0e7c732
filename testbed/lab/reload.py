"""Reload delay: a booted ToR stays out of its hosts' LAGs until it has routes for their traffic.

Vendors delay the ports of a switch that reloads for a fixed time (MLAG's reload delay, 300 s is usual). Here the wait
ends as soon as BGP has delivered, and that time is its limit. Meanwhile ports have carrier and LACP runs, out of
Synchronization, so that the partners know each other when the wait ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.routing.daemons import DAEMONS
from hpn.testbed.routing.delivery import Delivery

_SECOND_NS = 1_000_000_000


class Reload:
    """The wait of one ToR on the running event loop; ``release`` is called once, unless ``stop`` comes first."""

    def __init__(self, fabric: Fabric, node: Node, sink: EventSink, release: Callable[[], None]) -> None:
        """Start the wait, with the ToR's uplinks down."""
        uplinks = [link.end_at(node.name) for link in fabric.links_of(node.name) if link.is_routed]
        bgp = fabric.spec.bgp
        self._delivery = Delivery(
            {end.name: end.ifindex for end in uplinks},
            bgp.keepalive_s * _SECOND_NS,
            DAEMONS[bgp.daemon].route_protocol,
        )
        self._began_ns = now_ns()
        self._limit_ns = self._began_ns + fabric.spec.lacp.reload_delay_s * _SECOND_NS
        self._node, self._sink, self._release = node.name, sink, release
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._say("held")
        self._arm()

    def stop(self) -> None:
        """Cancel the wait without a release."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def pause(self) -> None:
        """Pause while the daemons hang; the time limit runs on."""
        self._paused = True
        self.stop()

    def resume(self, up: Collection[str]) -> None:
        """Resume with the daemons; ``up`` are the interfaces that have carrier now."""
        self._paused = False
        self._delivery.carriers(up)
        self._arm()

    def on_carrier(self, port: str, up: bool) -> None:
        """Handle a carrier change of the ToR's interface."""
        self._delivery.carrier(port, up)
        self._arm()

    def on_session(self, port: str, established: bool) -> None:
        """Handle a change of the ToR's BGP session."""
        self._delivery.session(port, established, now_ns())
        self._arm()

    def on_messages(self, messages: Iterable[object]) -> None:
        """Handle messages of the ToR's netlink monitor, or all its routes after a message loss."""
        self._delivery.routes(messages, now_ns())
        self._arm()

    def _arm(self) -> None:
        """Set the timer to when the wait would end without further messages."""
        self.stop()
        if not self._paused:
            due = self._delivery.due()
            at = self._limit_ns if due is None else min(due, self._limit_ns)
            self._timer = asyncio.get_running_loop().call_at(at / _SECOND_NS, self._over, at == due)

    def _over(self, delivered: bool) -> None:
        self._timer = None
        self._say("released", reason="BGP delivered" if delivered else "reload delay over")
        self._release()

    def _say(self, what: str, **detail: str | int | float) -> None:
        now = now_ns()
        if what == "released":
            detail["held_ms"] = (now - self._began_ns) // 1_000_000
        self._sink(Event(now, EventKind.DAEMON, self._node, "lacp", what, detail))
