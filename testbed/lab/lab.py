"""A running fabric: everything started, watched and joined together, and the levers that faults pull.

Belongs to one asyncio loop in the first process of a sandbox. What reacts to what is decided here and nowhere else:
kernel messages go to the ToRs' and hosts' daemons, LAG changes to path control, all of it to the timeline.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from testbed.errors import MachineError
from testbed.events import Event, EventSink
from testbed.fabric.model import Fabric, Link, Role
from testbed.kernel.netlink import Netlink
from testbed.kernel.nft import Nft
from testbed.kernel.nft import slot as nft_slot
from testbed.kernel.packet import finish_closing
from testbed.kernel.rtnl_events import LinkEvent
from testbed.lab.breaking.breakage import Breakage
from testbed.lab.breaking.impair import Impairments
from testbed.lab.convergence import Gap, expected_presets, expected_routes, gaps
from testbed.lab.host_nic import HostNic
from testbed.lab.stack import Stacks
from testbed.lab.tor import Tor
from testbed.lab.watch import Listeners, Message, Watcher
from testbed.lab.wire import Wiring, wire
from testbed.lag.choose import choose
from testbed.lag.datapath import LagKind
from testbed.routing.bgp import BgpDaemon
from testbed.routing.daemons import DAEMONS
from testbed.routing.pathcontrol.actions import Move
from testbed.routing.trace import Flow, trace
from testbed.routing.trace import Path as FlowPath

CONVERGE_S = 60.0
PROGRESS_S = 20.0
"""A lab that is not converged after CONVERGE_S goes on while it has got closer within so long: the machine is slow."""


class Lab:
    """One lab. ``start``, then ``converged``; it ends with its process."""

    def __init__(self, fabric: Fabric, sink: EventSink) -> None:
        self.fabric = fabric
        self.datapath = ""
        self.nics: dict[str, HostNic] = {}
        self.tors: dict[str, Tor] = {}
        self.birds: dict[str, BgpDaemon] = {}
        self._sinks: list[EventSink] = [sink]
        self._requests: dict[str, Netlink] = {}
        self.move_listeners: list[Callable[[Move], None]] = []
        self._tick = asyncio.Event()
        self.expected_routes = expected_routes(fabric)
        self.expected_presets = expected_presets(fabric)
        self.wiring: Wiring | None = None
        self.impairments: Impairments | None = None
        self.watcher: Watcher | None = None
        self.breakage = Breakage(self)
        self.stacks = Stacks(self)

    def emit(self, event: Event) -> None:
        """Put an event on the timeline and wake whoever waits for the lab's state."""
        for sink in self._sinks:
            sink(event)
        self._tick.set()

    def subscribe(self, sink: EventSink) -> Callable[[], None]:
        """Hear of every event from now on; call the result to stop."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def start(self) -> None:
        """Wire the fabric and start every daemon. MachineError, naming the way out, when the machine refuses."""
        nft_slot()  # while there are low descriptors
        kind = choose(self.fabric.spec.lag)
        self.datapath = kind.name
        self.wiring = wire(self.fabric, kind)
        spaces = self.wiring.namespaces
        self.impairments = Impairments(self.fabric, spaces, self.requests)
        self._start_hosts(kind)
        for node in self.fabric.switches:
            if node.role is Role.TOR:
                self.tors[node.name] = Tor(self.fabric, node, spaces[node.name], self.emit)
                self.tors[node.name].start()
        listeners = Listeners(self._on_messages, self._on_link, self._on_route, self._on_resync)
        self.watcher = Watcher(self.fabric, spaces, self.emit, listeners)
        self.watcher.start()
        bgp = DAEMONS[self.fabric.spec.bgp.daemon]
        bgp.folder.mkdir(parents=True, exist_ok=True)
        for node in self.fabric.switches:
            self.birds[node.name] = bgp.make(self.fabric, node, spaces[node.name], self._on_bird)
            self.birds[node.name].start()
        self.stacks.start()

    def _start_hosts(self, kind: LagKind) -> None:
        assert self.wiring is not None
        for host in self.fabric.hosts:
            space = self.wiring.namespaces[host.name]
            nft = Nft(space)
            for nic in self.fabric.nics_of(host.name):
                made = HostNic(self.fabric, nic, kind, space, nft, self.emit, self._on_move)
                made.start()
                self.nics[nic.name] = made

    async def converged(self, timeout_s: float | None = None) -> None:
        """Wait until LACP, BGP and host routes all stand. MachineError saying what did not, and why, otherwise.

        Without ``timeout_s`` a lab has CONVERGE_S, and longer while every PROGRESS_S fewer parts are missing than ever.
        """
        waited_s, fewest = 0.0, math.inf
        window_s = CONVERGE_S - PROGRESS_S if timeout_s is None else timeout_s
        while True:
            try:
                await self.wait_for(lambda: self.stands, window_s)
            except TimeoutError:
                waited_s += window_s
            else:
                return
            missing = self.missing()
            stuck = len(missing) >= fewest and waited_s >= CONVERGE_S
            if stuck or timeout_s is not None:
                raise MachineError(_not_converged(missing, waited_s))
            fewest, window_s = min(fewest, len(missing)), PROGRESS_S

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Look at ``condition`` after every event of the lab until it holds.

        TimeoutError when it does not in time, MachineError when a daemon is lost.
        """
        # Not asyncio.wait_for: in Python 3.11 it can swallow the cancellation that Ctrl-C is.
        async with asyncio.timeout(timeout_s):
            while not condition():
                if self.lost is not None:
                    raise MachineError(self.lost)
                self._tick.clear()
                await self._tick.wait()

    def close(self) -> None:
        """Let go of what the kernel is slow to take back; everything else goes with the process."""
        self.stacks.close()
        for tor in self.tors.values():
            tor.crash()
        for nic in self.nics.values():
            nic.close()
        finish_closing()

    def missing(self) -> list[Gap]:
        """What keeps the lab from being converged; empty when it is."""
        return list(gaps(self))

    @property
    def stands(self) -> bool:
        """Whether the lab is converged; asked after every event, it looks no further than the first gap."""
        return next(gaps(self), None) is None

    @property
    def lost(self) -> str | None:
        """Which daemon died though nobody here had asked for that, and how."""
        return next((daemon.trouble for daemon in self.birds.values() if daemon.trouble is not None), None)

    def path(self, flow: Flow) -> FlowPath:
        """The exact path of a UDP flow at this moment. InputError for a NIC that does not exist."""
        src, dst = self.fabric.nic(flow.src_nic), self.fabric.nic(flow.dst_nic)
        self.nics[src.name].look()
        port = self.nics[src.name].port_for(dst.ip, flow.sport, flow.dport)
        return trace(self.fabric, flow, port, self.requests, self.link_up)

    def link_up(self, link: str) -> bool:
        """Whether both ends of a link have carrier."""
        assert self.watcher is not None
        found = self.fabric.link(link)
        return all(self.watcher.carrier(end.node, end.ifindex) for end in (found.lower, found.upper))

    def requests(self, node: str) -> Netlink:
        """The kept-open netlink request socket of a node."""
        assert self.wiring is not None
        if node not in self._requests:
            self._requests[node] = Netlink(self.wiring.namespaces[node])
        return self._requests[node]

    def child_pids(self) -> set[int]:
        """Processes that this one must wait for itself."""
        return {pid for daemon in self.birds.values() for pid in daemon.pids}

    def cut(self, link: Link) -> None:
        """Take a link's carrier away at both ends: veth has no carrier switch, so the lower end is put down."""
        self.breakage.ports_down([(link, link.lower.node)])

    def mend(self, link: Link) -> None:
        """Give a link its carrier back, and what the kernel forgot when its end was put down."""
        self.breakage.ports_up([(link, link.lower.node)])

    def crash(self, switch: str) -> None:
        """A switch dies: its daemons say no farewell, all its ports lose carrier in one batch."""
        self.breakage.crash([switch])

    async def boot(self, switch: str) -> None:
        """A dead switch comes back with empty state: ports, LACP, BGP."""
        await self.breakage.boot([switch])

    def _on_bird(self, event: Event) -> None:
        self.emit(event)
        if event.node in self.tors:
            self.tors[event.node].on_session(event)

    def _on_messages(self, node: str, messages: list[Message]) -> None:
        tor = self.tors.get(node)
        if tor is not None:
            tor.on_messages(messages)
        for nic in self.fabric.nics_of(node):
            self.nics[nic.name].on_messages(messages)

    def _on_link(self, node: str, event: LinkEvent) -> None:
        tor = self.tors.get(node)
        if tor is not None:
            tor.on_link(event)
            return
        for nic in self.fabric.nics_of(node):
            if any(link.lower.name == event.name for link in nic.links):
                self.nics[nic.name].carrier(event.name, event.up and event.carrier)

    def _on_route(self, _node: str) -> None:
        self._tick.set()

    def _on_resync(self, node: str) -> None:
        tor = self.tors.get(node)
        if tor is not None:
            tor.resync()
        for nic in self.fabric.nics_of(node):
            self.nics[nic.name].look()

    def _on_move(self, move: Move) -> None:
        for listener in self.move_listeners:
            listener(move)


def _not_converged(missing: list[Gap], timeout_s: float) -> str:
    shown = "; ".join(gap.text for gap in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    return f"the lab did not converge within {timeout_s:g} s: {shown}{more}"
