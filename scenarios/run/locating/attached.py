"""Location of faults in a lab that another process supervises: probes from its NICs, and what they tell.

Probes are sent by worker processes of the calling process, in the network namespaces of the lab's hosts. They end with
it, whatever ends it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hpn.failover.locating.live import LiveLocation
from hpn.failover.locating.parts import Suspects, ends_of
from hpn.failover.locating.rounds import Round
from hpn.failover.locating.seen import Accused
from hpn.failover.sampling.host import HostSampler
from hpn.results.text.location import accusation
from hpn.scenarios.run.batching import Gathering
from hpn.scenarios.run.locating.follower import Follower
from hpn.scenarios.run.locating.remote_router import RemoteRouter
from hpn.testbed.background import ended_by_failures, in_background
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event, now_ns
from hpn.testbed.fabric.buffers import balances
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.lab.service import control
from hpn.testbed.lab.service.capture import space_of
from hpn.testbed.lab.service.control import JsonValue, Stream
from hpn.traffic.flows.choosers import MOST_CANDIDATES
from hpn.traffic.flows.flow import FlowSpec, answering
from hpn.traffic.flows.paths import covering
from hpn.traffic.flows.patterns import flows_for
from hpn.traffic.flows.probe_load import ProbeLoad, probe_load
from hpn.traffic.streams.engine import TrafficEngine
from hpn.traffic.workers.placement import workers_for

_LEAD_NS = 200_000_000
_MTU = 256
_FULL = 0.95
_LEAST_CANDIDATES = 16
_SAMPLES = 100
"""Samples of the machine's load that are kept: 10 s."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Settings of locating: ``share`` of each NIC's rate for probes, queue pairs of each pair of NICs, method, time."""

    share: float
    queue_pairs: int
    method: str
    for_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """Receivers of what is found: the probes once, what they tell apart and the time of the first; then each answer
    that differs from the one before."""

    probes: Callable[[ProbeLoad, Suspects, int], None]
    answer: Callable[[Round], None]


def locate_in(first_pid: int, socket: Path, fabric: Fabric, asked: Asked, heard: Heard) -> bool:
    """Locate faults until the time is over, or a signal comes (False), or the lab ends (True).

    The calling process stays in the lab's network afterwards. InputError where nothing can be located, and while
    somebody else locates there; MachineError when the lab or a worker fails.
    """
    if balances(fabric.spec):
        raise InputError("switches choose the next hop of each packet (switch.balancing): no probe has one path")
    router = RemoteRouter(fabric, socket)
    wanted = flows_for(fabric, "probes", load=asked.share, queue_pairs=asked.queue_pairs, path_mtu=_MTU, ib_timeout=0)
    flows = covering(wanted, router, candidates=_candidates(fabric)).flows
    load = probe_load(fabric, flows, router.paths(flows)[1])
    if load.share > _FULL:
        raise InputError(f"probes would take {load.share:.0%} of {load.link}; lower --rate")
    with control.stream(socket, "locate", bound=_bound(fabric, flows)) as news:
        news.read()  # the supervisor's consent
        sandbox.enter(first_pid, for_its_network=True)
        with TemporaryDirectory(prefix="hpn-locate-") as logs:
            probing = _Probing(fabric, flows, router, news, asked, heard)
            return asyncio.run(probing.go(load, first_pid, Path(logs)))


class _Probing:
    """Probes on their way, and what is made of them."""

    def __init__(
        self,
        fabric: Fabric,
        flows: Sequence[FlowSpec],
        router: RemoteRouter,
        news: Stream,
        asked: Asked,
        heard: Heard,
    ) -> None:
        self._fabric, self._flows, self._router, self._news = fabric, flows, router, news
        self._asked, self._heard = asked, heard
        hosts = {flow.id: fabric.nic(flow.src_nic).host for flow in flows}
        self._live = LiveLocation(ends_of(fabric), hosts, asked.method)
        self._said = Round(0, 0, ())
        self._end = asyncio.Event()

    async def go(self, load: ProbeLoad, first_pid: int, logs: Path) -> bool:
        """Send and listen to the end; return True if the lab has ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end.set)
        again = Gathering(self._look)
        with _spaces(first_pid, self._fabric) as spaces, ended_by_failures():
            sampler = HostSampler(lambda: [os.getpid(), *engine.pids().values()], keeps=_SAMPLES)
            follow = Follower(self._live, self._flows, self._tell, sampler.load)
            engine = TrafficEngine(
                *(self._flows, spaces, logs, workers_for(self._flows), _ignored),
                follow=follow.hear,
                keeps_records=False,
            )
            try:
                await engine.start()
                sampler.start()
                loop.add_reader(self._news.fileno(), self._on_news, again)
                await self._look({0})
                start_ns = now_ns() + _LEAD_NS
                self._heard.probes(load, self._live.suspects, start_ns)
                follow.begin(start_ns)
                engine.begin(start_ns)
                ending = in_background(self._ended())
                over_s = None if self._asked.for_ns is None else (self._asked.for_ns + _LEAD_NS) / 1e9
                await asyncio.wait((ending, engine.failed), timeout=over_s, return_when=asyncio.FIRST_COMPLETED)
                ending.cancel()
                if engine.failed.done() and not self._news.over:
                    engine.failed.result()
            finally:
                loop.remove_reader(self._news.fileno())
                again.stop()
                sampler.stop()
                await engine.close()
        return self._news.over

    async def _ended(self) -> None:
        await self._end.wait()

    def _on_news(self, again: Gathering[int]) -> None:
        for event in self._news.read():
            at_ns = event.get("changed_ns")
            if isinstance(at_ns, int):
                self._live.changed(at_ns)
                again.add(0)
        if self._news.over:
            self._end.set()

    async def _look(self, _changes: set[int]) -> None:
        """Ask the switches for all paths."""
        self._live.know(*self._router.paths(self._flows))

    def _tell(self, found: Round) -> None:
        """Pass on an answer that is another one, or that is in doubt while the one before was not."""
        if _differs(found.accused, self._said.accused) or bool(found.doubt) != bool(self._said.doubt):
            self._said = found
            self._router.suspect({str(each.suspect): accusation(each) for each in found.accused})
            self._heard.answer(found)


def _differs(now: Sequence[Accused], before: Sequence[Accused]) -> bool:
    """Return True if others are accused, or in another order, or of four times the loss, or a quarter."""
    if [each.suspect for each in now] != [each.suspect for each in before]:
        return True
    return any(not 0.25 < each.loss / other.loss < 4 for each, other in zip(now, before, strict=True))


def _candidates(fabric: Fabric) -> int:
    """Return how many source ports to try: a few for each way out of a switch."""
    widest = max(len(fabric.links_of(node.name)) for node in fabric.switches)
    return max(_LEAST_CANDIDATES, min(2 * widest, MOST_CANDIDATES))


@contextmanager
def _spaces(first_pid: int, fabric: Fabric) -> Iterator[dict[str, NetNs]]:
    """Open the network namespace of each host; yield them by NIC."""
    opened = {node.name: space_of(first_pid, node.name) for node in fabric.hosts}
    try:
        yield {nic.name: opened[nic.host] for nic in fabric.nics}
    finally:
        for space in opened.values():
            os.close(space.fd)


def _bound(fabric: Fabric, flows: Sequence[FlowSpec]) -> JsonValue:
    """Return the queue pairs that adapters are to bind: NIC, number, destination, source port, port each."""
    found: list[JsonValue] = []
    for flow in flows:
        for each, number in ((flow, 2 * flow.id), (answering(flow), 2 * flow.id + 1)):
            if each.port is not None:
                port = fabric.nic(each.src_nic).links[each.port].lower.name
                found.append([each.src_nic, number, each.dst_ip, each.sport, port])
    return found


def _ignored(_event: Event) -> None:
    """Drop an event: probes have no timeline."""
