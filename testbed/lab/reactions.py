"""Event routing in a running lab: the only place that decides which part reacts to which event.

Kernel messages go to the ToRs' and hosts' daemons, and BGP session changes to the ToR that waits for them. Moves of
queue pairs go to the traffic, and all events to the timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hpn.testbed.events import Event
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent
from hpn.testbed.lab.host_nic import HostNic
from hpn.testbed.lab.srv6 import Srv6
from hpn.testbed.lab.timeline import Timeline
from hpn.testbed.lab.tor import Tor
from hpn.testbed.lab.watch import Listeners, Message
from hpn.testbed.routing.pathcontrol.actions import Move


class Reactions:
    """Dispatcher to the NICs and ToRs of one lab, which may still be starting: both mappings fill up meanwhile."""

    def __init__(
        self, fabric: Fabric, timeline: Timeline, nics: Mapping[str, HostNic], tors: Mapping[str, Tor]
    ) -> None:
        self._fabric = fabric
        self._timeline = timeline
        self._nics = nics
        self._tors = tors
        self.move_listeners: list[Callable[[Move], None]] = []
        self.route_listeners: list[Callable[[str], None]] = []
        self.srv6: Srv6 | None = None  # of labs that have it, once the links of the start have been heard

    @property
    def listeners(self) -> Listeners:
        """Callbacks for the kernel monitors."""
        return Listeners(self._on_messages, self._on_link, self._on_route, self._on_resync)

    def on_daemon(self, event: Event) -> None:
        """Handle a BGP daemon or session that came up or went down."""
        self._timeline.emit(event)
        if event.node in self._tors:
            self._tors[event.node].on_session(event)

    def on_move(self, move: Move) -> None:
        """Forward path control's move of a queue pair."""
        for listener in self.move_listeners:
            listener(move)

    def _on_messages(self, node: str, messages: list[Message]) -> None:
        tor = self._tors.get(node)
        if tor is not None:
            tor.on_messages(messages)
        for nic in self._fabric.nics_of(node):
            self._nics[nic.name].on_messages(messages)

    def _on_link(self, node: str, event: LinkEvent) -> None:
        if self.srv6 is not None:
            self.srv6.on_link(node, event)
        tor = self._tors.get(node)
        if tor is not None:
            tor.on_link(event)
            return
        for nic in self._fabric.nics_of(node):
            if any(link.lower.name == event.name for link in nic.links):
                self._nics[nic.name].carrier(event.name, event.up and event.carrier)

    def _on_route(self, node: str) -> None:
        self._timeline.touch()
        for listener in self.route_listeners:
            listener(node)

    def _on_resync(self, node: str) -> None:
        if self.srv6 is not None:
            self.srv6.resync(node)
        tor = self._tors.get(node)
        if tor is not None:
            tor.resync()
        for nic in self._fabric.nics_of(node):
            self._nics[nic.name].look()
