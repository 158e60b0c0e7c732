"""A running ToR: an LACP speaker per access port (HPN's altered LACP), ARP to host routes, path control."""

from __future__ import annotations

from collections.abc import Collection

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Node
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent
from hpn.testbed.lab.reload import Reload
from hpn.testbed.lab.watch import Message
from hpn.testbed.lag.config import LacpConfig, PortConfig
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.speaker import SystemAt
from hpn.testbed.lag.speakers import HERE, Speakers, Speaking
from hpn.testbed.routing.hostroutes import HostRouteDaemon
from hpn.testbed.routing.pathcontrol.agent_io import AgentIo
from hpn.testbed.routing.pathcontrol.tor_agent import TorAgent

_MS = 1_000_000


class Tor:
    """Daemons of one ToR except BGP. They die together in ``crash`` and start empty in ``start``."""

    def __init__(self, fabric: Fabric, node: Node, space: NetNs, sink: EventSink, lacp: Speakers = HERE) -> None:
        self.node = node
        self._lacp = lacp
        self.alive = False
        self._frozen = False
        self._leaving = False
        self._refused: set[str] = set()  # drained access ports
        self._reload: Reload | None = None  # while it waits for BGP
        self._netlink = Netlink(space)
        self._fabric = fabric
        self._sink = sink
        self._space = space
        self._routes = self._make_routes()
        self._access = {link.upper.name: link for link in fabric.links_of(node.name) if link.kind is LinkKind.ACCESS}
        self._generation = 0  # a restarted agent must outrank the state that its hosts remember
        self._agent = self._make_agent()
        self._agent_io: AgentIo | None = None
        self.speakers = {name: self._speaker(fabric, link, space, sink) for name, link in self._access.items()}

    def _speaker(self, fabric: Fabric, link: Link, space: NetNs, sink: EventSink) -> Speaking:
        spec = fabric.spec.lacp
        config = LacpConfig(
            system=self.node.actor_system,
            key=link.upper.key,
            fast=spec.rate == "fast",
            aggregate_wait_ns=spec.aggregate_wait_ms * _MS,
            active=spec.mode == "active",
            independent=spec.mux == "independent",
            wait_to_restore_ns=spec.wait_to_restore_ms * _MS,
        )
        port = PortConfig(link.upper.name, link.upper.port_id)

        def active(ports: tuple[str, ...]) -> None:
            if not self._leaving:  # a ToR that leaves forwards to its hosts as long as it can
                self._routes.port_usable(link.upper.ifindex, bool(ports))

        return self._lacp.make(SystemAt(self.node.name, space, config, [port], sink, active))

    def _make_agent(self) -> TorAgent:
        self._generation += 1
        ports = {name: link.upper.ifindex for name, link in self._access.items()}
        return TorAgent(ports, self._generation, self._fabric.spec.path_control.gather_ms)

    def _make_routes(self) -> HostRouteDaemon:
        return HostRouteDaemon(self._fabric, self.node, self._netlink, self._sink)

    def start(self, *, reload: bool = False, behind: bool = False) -> None:
        """Start the daemons with empty state; ``behind``: the data plane will be without routes until ``on_fib``.

        A ``reload`` into a running fabric keeps hosts away until BGP has delivered. When a whole fabric starts, there
        is no traffic before it has converged.
        """
        self._routes = self._make_routes()
        self.alive, self._frozen, self._leaving = True, False, False
        self._refused.clear()
        for speaker in self.speakers.values():
            speaker.start()
        if reload and self._fabric.spec.lacp.reload_delay_s:
            self._reload = Reload(self._fabric, self.node, self._sink, self._released, behind=behind)
            self._refuse()
        self._routes.resync()
        if self._fabric.spec.path_control.chosen.agent is not None:
            self._agent = self._make_agent()
            hosts = {name: link.lower.mac for name, link in self._access.items()}
            self._agent_io = AgentIo(self.node.name, self._space, self._agent, tuple(hosts), self._sink, peers=hosts)
            self._agent_io.start()
            self._resync_agent()
            self._agent_io.perform(self._agent.hello())

    def _resync_agent(self) -> None:
        if self._agent_io is not None:
            state = self._agent.resync(self._netlink.links(), self._netlink.routes(), now_ns())
            self._agent_io.perform(state)

    def _released(self) -> None:
        self._reload = None
        self._refuse()

    def _refuse(self) -> None:
        """Put LACP out of Synchronization with every host while leaving or reloading, else back."""
        for name, speaker in self.speakers.items():
            speaker.refuse(self._leaving or self._reload is not None or name in self._refused)

    def crash(self) -> None:
        """Kill the daemons without a farewell."""
        self.alive = self._frozen = False
        self._routes.stop()
        if self._reload is not None:
            self._reload.stop()
            self._reload = None
        for speaker in self.speakers.values():
            speaker.stop()
        self._lacp.settle()
        if self._agent_io is not None:
            self._agent_io.stop()
            self._agent_io = None

    def freeze(self) -> None:
        """Freeze the daemons: they stop sending and receiving, and keep their state."""
        if self.alive and not self._frozen:
            self._frozen = True
            self._routes.stop()
            if self._reload is not None:
                self._reload.pause()
            for speaker in self.speakers.values():
                speaker.freeze()
            self._lacp.settle()
            if self._agent_io is not None:
                self._agent_io.stop()

    def thaw(self, up: Collection[str]) -> None:
        """Resume the daemons: timers are overdue, and changes meanwhile are read from the kernel.

        ``up`` are the ports with carrier according to the lab's monitor. It reports only changes from its own state, so
        the kernel's newer state of a port must not be used here.
        """
        if not self._frozen:
            return
        self._frozen = False
        for name, speaker in self.speakers.items():
            speaker.thaw()
            speaker.carrier(name, name in up)
        self._lacp.settle()
        self._drop_unused()
        if self._agent_io is not None:
            self._agent_io.start()
        if self._reload is not None:
            self._reload.resume(up)
        self.resync()

    def leave(self) -> None:
        """Put LACP out of Synchronization with every partner; routes and forwarding stay."""
        self._leaving = True
        self._refuse()

    def rejoin(self) -> None:
        """Aggregate again; no-op for a ToR that has restarted since."""
        if self._leaving:
            self._leaving = False
            self._refuse()
            self._lacp.settle()
            self._drop_unused()

    def refuse(self, port: str, refused: bool) -> None:
        """Put LACP out of Synchronization at one access port, or back; its host leaves it for another port."""
        if self.running:
            (self._refused.add if refused else self._refused.discard)(port)
            self._refuse()
            self._lacp.settle()

    def _drop_unused(self) -> None:
        """Remove routes through ports whose partner went while the ToR was leaving."""
        if self.running and not self._leaving:
            for name, speaker in self.speakers.items():
                if not speaker.active_ports:
                    self._routes.port_usable(self._access[name].upper.ifindex, False)

    @property
    def running(self) -> bool:
        """True if the daemons are alive and not frozen."""
        return self.alive and not self._frozen

    @property
    def condition(self) -> str:
        """State of the daemons in a word; '' when normal."""
        if not self.alive:
            return "dead"
        if self._frozen:
            return "hung"
        return "leaving" if self._leaving else "waiting for BGP" if self._reload is not None else ""

    def on_messages(self, messages: list[Message]) -> None:
        """Handle messages of the ToR's netlink monitor."""
        if self.running:
            self._routes.on_events(messages)
            if self._reload is not None:
                self._reload.on_messages(messages)
            if self._agent_io is not None:
                self._agent_io.perform(self._agent.on_events(messages, now_ns()))

    def on_link(self, event: LinkEvent) -> None:
        """Handle a carrier change of the ToR's interface."""
        speaker = self.speakers.get(event.name)
        if speaker is not None and self.running:
            speaker.carrier(event.name, event.up and event.carrier)
        if self._reload is not None and self.running:
            self._reload.on_carrier(event.name, event.up and event.carrier)

    def on_session(self, event: Event) -> None:
        """Handle a BGP session that came up or went down; ``event`` is from the ToR's BGP daemon."""
        if self._reload is not None and event.kind is EventKind.BGP:
            self._reload.on_session(event.subject, event.what == "established")

    def on_fib(self) -> None:
        """Handle the data plane's news that it has the routes."""
        if self._reload is not None:
            self._reload.on_fib()

    def resync(self) -> None:
        """Read everything again after the monitor lost messages."""
        if self.running:
            self._routes.resync()
            self._resync_agent()
            if self._reload is not None:
                self._reload.on_messages(self._netlink.routes())

    def status(self) -> dict[str, PortStatus]:
        """Return LACP of each access port by interface name; empty when the ToR is dead."""
        return {name: speaker.status()[0] for name, speaker in self.speakers.items()} if self.alive else {}

    def collecting(self, port: str) -> bool:
        """Return True if this access port collects and distributes."""
        return self.alive and bool(self.speakers[port].active_ports)
