"""A running fabric: all parts started, monitored and connected, and its fault actions.

Belongs to one asyncio loop in the first process of a sandbox. ``testbed.lab.reactions`` routes events between parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from hpn.testbed.events import Event, EventSink
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.nftables.nft import slot as nft_slot
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import finish_closing
from hpn.testbed.kernel.process import priority
from hpn.testbed.lab.breaking.breakage import Breakage
from hpn.testbed.lab.breaking.crossing import Crossings
from hpn.testbed.lab.breaking.impair import Impairments
from hpn.testbed.lab.convergence import Convergence, ConvergencePart, Gap, behind, until_converged
from hpn.testbed.lab.expected_routes import expected_routes
from hpn.testbed.lab.host_nic import HostNic
from hpn.testbed.lab.kernel_parts import kernel_parts
from hpn.testbed.lab.large_labs import FibState, is_large
from hpn.testbed.lab.markers import MarkerKind, PhantomMarks
from hpn.testbed.lab.parts import LabParts, Requests
from hpn.testbed.lab.quiet import until_quiet
from hpn.testbed.lab.reactions import Reactions
from hpn.testbed.lab.soft_roce import SoftRoce
from hpn.testbed.lab.srv6 import Srv6
from hpn.testbed.lab.stack import Stacks
from hpn.testbed.lab.timeline import Timeline
from hpn.testbed.lab.tor import Tor
from hpn.testbed.lab.watch import Watcher
from hpn.testbed.lab.wire import Wiring, wire
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.speakers import HERE, Speakers
from hpn.testbed.routing.bgp import BgpDaemon
from hpn.testbed.routing.daemons import daemon_of
from hpn.testbed.routing.pathcontrol.actions import Move
from hpn.testbed.routing.trace import Flow, trace
from hpn.testbed.routing.trace import Path as FlowPath


@dataclass(frozen=True, eq=False)
class Lab:
    """One lab. ``start`` creates it, ``converged`` waits for convergence; it ends with its process."""

    fabric: Fabric
    datapath: str
    marking: MarkerKind | None
    wiring: Wiring
    requests: Requests
    nics: Mapping[str, HostNic]
    tors: Mapping[str, Tor]
    bgp: Mapping[str, BgpDaemon]
    watcher: Watcher
    breakage: Breakage
    stacks: Stacks
    impairments: Impairments
    crossings: Crossings
    soft_roce: SoftRoce | None
    srv6: Srv6 | None
    lacp: Speakers
    move_listeners: list[Callable[[Move], None]]
    route_listeners: list[Callable[[str], None]]
    _timeline: Timeline
    _convergence: Convergence
    _held: FibState
    _closing: ExitStack

    @classmethod
    def start(cls, fabric: Fabric, sink: EventSink, *, in_order: bool = False) -> Lab:
        """Wire the fabric and start every daemon; ``sink`` receives every event from the first on.

        ``in_order``: keep packets in order, for protocols that go back N (``testbed.lab.wire``).

        MachineError, with a remedy, when the machine refuses; everything started so far is closed.
        """
        nft_slot()  # while low descriptors are free
        kind, marking = kernel_parts(fabric.spec)
        routes = expected_routes(fabric)
        held = FibState(held=is_large(routes))
        wiring = wire(fabric, kind, marking, in_order=in_order)
        timeline, spaces = Timeline(sink), wiring.namespaces
        if held.held:
            priority.go_first()
        lacp = _lacp(list(spaces.values()), timeline.emit, apart=held.held)
        nics: dict[str, HostNic] = {}
        tors: dict[str, Tor] = {}
        bgp: dict[str, BgpDaemon] = {}
        reactions = Reactions(fabric, timeline, nics, tors)
        watcher = Watcher(fabric, spaces, timeline.emit, reactions.listeners)
        grips = LabParts(fabric, spaces, Requests(spaces), nics, tors, bgp, watcher, lacp, timeline.emit)
        breakage = Breakage(grips)
        stacks = Stacks(grips, breakage)
        timeline.subscribe(breakage.fib.hear)
        with _closing(grips, stacks) as closing:
            _start_nics(grips, kind, reactions, nics)
            _start_tors(grips, tors)
            watcher.start()
            reactions.srv6 = None if fabric.spec.srv6 is None else Srv6(fabric, grips.requests)
            _start_daemons(grips, reactions, bgp, large=held.held)
            stacks.start()
            soft_roce = SoftRoce(fabric, spaces) if fabric.spec.soft_roce else None
            if soft_roce is not None:
                closing.callback(soft_roce.close)
                soft_roce.start()
            return cls(
                fabric=fabric,
                datapath=kind.name,
                marking=marking,
                wiring=wiring,
                requests=grips.requests,
                nics=nics,
                tors=tors,
                bgp=bgp,
                watcher=watcher,
                breakage=breakage,
                stacks=stacks,
                impairments=Impairments(fabric, spaces, grips.requests, marking),
                crossings=Crossings(fabric, spaces, grips.requests),
                soft_roce=soft_roce,
                srv6=reactions.srv6,
                lacp=lacp,
                move_listeners=reactions.move_listeners,
                route_listeners=reactions.route_listeners,
                _timeline=timeline,
                _convergence=Convergence.of(grips, {} if own_configs(fabric) else routes),
                _held=held,
                _closing=closing.pop_all(),
            )

    def close(self) -> None:
        """Release the resources that the kernel is slow to free; everything else goes with the process."""
        self._closing.close()

    def emit(self, event: Event) -> None:
        """Put an event on the timeline and wake all waiters for the lab's state."""
        self._timeline.emit(event)

    def subscribe(self, sink: EventSink) -> Callable[[], None]:
        """Receive every event from now on; call the result to unsubscribe."""
        return self._timeline.subscribe(sink)

    async def converged(self, timeout_s: float | None = None) -> None:
        """Wait until LACP, BGP and host routes have converged. MachineError, listing what is missing, otherwise.

        Without ``timeout_s`` a slow machine has as long as it makes progress (``testbed.lab.convergence``).
        """
        if self._held.held:
            tors = [self.bgp[name] for name in self.tors]
            await until_converged(ConvergencePart(self._convergence.heard, self.wait_for), timeout_s)
            await self._held.hear(tors)
            await until_converged(ConvergencePart(self._convergence.above, self.wait_for), timeout_s)
            await self._held.deliver(tors)
        await until_converged(self, timeout_s)
        if own_configs(self.fabric):  # whose routes only their authors know
            await until_quiet(self)

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Evaluate ``condition`` after every event of the lab until it holds.

        TimeoutError when it does not in time, MachineError when a daemon is lost.
        """
        await self._timeline.wait_for(condition, timeout_s, lambda: self.lost)

    def missing(self) -> list[Gap]:
        """Return the conditions that keep the lab from being converged; empty when it is."""
        return [*self._convergence.everything.gaps(), *behind(self.breakage.fib.behind)]

    @property
    def stands(self) -> bool:
        """True if the lab is converged; evaluated after every event, it stops at the first gap."""
        return not self.breakage.fib.behind and self._convergence.everything.stand

    @property
    def lost(self) -> str | None:
        """Description of a daemon that died unexpectedly; None if all are alive."""
        return next((part.trouble for part in self._daemons if part.trouble is not None), None)

    def path(self, flow: Flow, bound: int | None = None) -> FlowPath:
        """Return the exact current path of a UDP flow. InputError for a NIC that does not exist.

        ``bound``: index of the port that its queue pair is bound to, for one that the NIC's adapter does not know yet.
        """
        src, dst = self.fabric.nic(flow.src_nic), self.fabric.nic(flow.dst_nic)
        self.nics[src.name].look()
        nic = self.nics[src.name]
        port = nic.port_for(dst.ip, flow.sport, flow.dport) if bound is None else nic.port_of_bound(bound)
        return trace(self.fabric, flow, port, self.requests, self.link_up)

    @property
    def marks(self) -> Callable[[str], PhantomMarks] | None:
        """Reader of a switch's marks by switch name, if a phantom queue marks; None otherwise."""
        counts = None if self.marking is None else self.marking.counts
        return None if counts is None else lambda node: counts(self.wiring.namespaces[node])

    def link_up(self, link: str) -> bool:
        """Return True if both ends of a link have carrier."""
        found = self.fabric.link(link)
        return all(self.watcher.carrier(end.node, end.ifindex) for end in (found.lower, found.upper))

    def child_pids(self) -> set[int]:
        """Return child processes whose owners wait for them."""
        return {pid for part in self._daemons for pid in part.pids}

    @property
    def _daemons(self) -> list[Speakers | BgpDaemon]:
        return [self.lacp, *self.bgp.values()]


def _lacp(spaces: list[NetNs], emit: EventSink, *, apart: bool) -> Speakers:
    if not apart:
        return HERE
    from hpn.testbed.lag.lacp_process.speakers import RemoteLacp  # only large labs need it

    return RemoteLacp(spaces, emit)


def _start_nics(grips: LabParts, kind: LagKind, reactions: Reactions, nics: dict[str, HostNic]) -> None:
    for host in grips.fabric.hosts:
        space = grips.spaces[host.name]
        nft = Nft(space)
        for nic in grips.fabric.nics_of(host.name):
            made = nics[nic.name] = HostNic(
                grips.fabric, nic, kind, space, nft, grips.emit, reactions.on_move, grips.lacp
            )
            made.start()


def _start_tors(grips: LabParts, tors: dict[str, Tor]) -> None:
    for node in grips.fabric.switches:
        if node.role is Role.TOR:
            made = tors[node.name] = Tor(grips.fabric, node, grips.spaces[node.name], grips.emit, grips.lacp)
            made.start()


def _start_daemons(grips: LabParts, reactions: Reactions, bgp: dict[str, BgpDaemon], *, large: bool) -> None:
    for node in grips.fabric.switches:
        kind = daemon_of(grips.fabric, node)
        kind.folder.mkdir(parents=True, exist_ok=True)
        made = bgp[node.name] = kind.make(grips.fabric, node, grips.spaces[node.name], reactions.on_daemon)
        made.large = large
        made.start(holding=large and node.role is Role.TOR)


def _closing(grips: LabParts, stacks: Stacks) -> ExitStack:
    """Return the stack of callbacks that release all parts; it runs in reverse order."""
    closing = ExitStack()
    closing.callback(finish_closing)
    closing.callback(grips.lacp.close)
    closing.callback(lambda: _close(grips.nics.values()))
    closing.callback(lambda: _crash(grips.tors.values()))
    closing.callback(grips.watcher.stop)
    closing.callback(stacks.close)
    return closing


def _close(nics: Iterable[HostNic]) -> None:
    for nic in nics:
        nic.close()


def _crash(tors: Iterable[Tor]) -> None:
    for tor in tors:
        tor.crash()
