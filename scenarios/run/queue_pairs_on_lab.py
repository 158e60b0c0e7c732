"""Queue pairs on a running lab: source ports (for example chosen by real paths), path control, goodput per plane.

Changes when something is done for all queue pairs, whether of streams (``traffic_on_lab``) or of a job
(``job_on_lab``).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from hpn.failover.analysis.paths import Looked, PathsAtBegin
from hpn.scenarios.drill.spares import ActiveFlows
from hpn.scenarios.run.lab_router import LabRouter, RememberingRouter
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.buffers import balances
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.timerfd import until
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.pathcontrol.actions import Move
from hpn.testbed.routing.pathcontrol.host_agent import Connection
from hpn.testbed.routing.trace import Flow, trace
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec
from hpn.traffic.flows.paths import Spread
from hpn.traffic.jobengine.setup import JobReport
from hpn.traffic.workers.messages import Progress, TrafficReport
from hpn.traffic.workers.pool import WorkerPool

Report = TrafficReport | JobReport
_GRID_NS = 100_000_000
"""Grid of start times: the engine starts at a multiple of it.

So in virtual time the files that the engine opens shift no later event.
"""


class LabQueuePairs(ABC):
    """Queue pairs of one drill; a subclass makes the ``engine`` that carries them.

    Connection numbers of path control: 2 x flow for data, 2 x flow + 1 for its ACKs.
    """

    engine: WorkerPool

    def __init__(self, lab: Lab, choose: Callable[[LabRouter], Spread]) -> None:
        router = RememberingRouter(lab)
        self.spread = choose(router)
        self.flows = self.spread.flows
        links = {flow.id: router.links_of(flow) for flow in self.flows}
        self._lab = lab
        self.begin: PathsAtBegin | None = PathsAtBegin(
            self.flows, links, lambda nic, *packet: lab.nics[nic].port_among(*packet)
        )
        self.looked: list[Looked] = []
        self._looked_after = 0  # number of edges
        self._ways: Mapping[int, Collection[str]] = links
        self._ack_ways: Mapping[int, Collection[str]] | None = None
        self._roster = ActiveFlows(self.flows)
        self._sports = {flow.id: flow.sport for flow in self.flows}
        self._ack_sports = {flow.id: flow.ack_sport for flow in self.flows}
        self._known = True  # True if path control knows the flows
        self._recent: deque[Progress] = deque(maxlen=6)
        self._bind(self.flows)

    @abstractmethod
    async def take_over(self, dead: Collection[str]) -> None:
        """Start the replacement flows on the spares of these hosts."""

    @abstractmethod
    async def look(self, when: str, edges: int, at_ns: int | None) -> None:
        """Record the paths of queue pairs at ``at_ns`` of the timeline (None: before it), after ``edges`` edges."""

    @abstractmethod
    async def finish(self) -> Report:
        """Stop sending, drain, and release the queue pairs."""

    @property
    def _spaces(self) -> Mapping[str, NetNs]:
        """Network namespace of each NIC."""
        return {nic.name: self._lab.wiring.namespaces[nic.host] for nic in self._lab.fabric.nics}

    async def start(self) -> None:
        """Start the engine and put every queue pair under path control, unless path control is not to know them."""
        await self.engine.start()
        await until((now_ns() // _GRID_NS + 1) * _GRID_NS)
        self._lab.move_listeners.append(self._move)
        self._connect(self._roster.present)

    @property
    def begun(self) -> tuple[int, ...]:
        """Ids of the active flows."""
        return tuple(flow.id for flow in self._roster.present)

    @property
    def absent(self) -> tuple[int, ...]:
        """Ids of the inactive flows: closed, or replacement flows that have not started."""
        return self._roster.absent

    @property
    def knows_paths(self) -> bool:
        """True if paths can be told before packets take them: no switch balances by its queues."""
        return not balances(self._lab.fabric.spec)

    def ways(self, edges: int) -> Mapping[int, Collection[str]] | None:
        """Return the links that each flow's data crosses after ``edges`` edges, or None if not recorded since."""
        return self._ways if self._looked_after == edges else None

    def ack_ways(self, edges: int) -> Mapping[int, Collection[str]] | None:
        """Return the links that each flow's acknowledgements cross, as ``ways``; None if they were not queried."""
        return self._ack_ways if self._looked_after == edges else None

    def _ack_links(self, flow: FlowSpec) -> Sequence[str]:
        """Query the links that a flow's acknowledgements cross now. Reads no clock, as ``look`` of a LAG would."""
        packet = Flow(flow.dst_nic, flow.src_nic, self._ack_sports[flow.id])
        port = self._lab.nics[flow.dst_nic].port_for(flow.src_ip, packet.sport, ROCE_PORT)
        return trace(self._lab.fabric, packet, port, self._lab.requests, self._lab.link_up).links

    async def until(self, at_ns: int) -> None:
        """Sleep until a time. MachineError when the engine fails meanwhile."""
        while (left_ns := at_ns - now_ns()) > 0:
            await asyncio.wait({self.engine.failed}, timeout=left_ns / 1e9)
            if self.engine.failed.done():
                self.engine.failed.result()

    async def until_exactly(self, at_ns: int) -> None:
        """Sleep until a time, to the clock's step and without waking up before. MachineError as ``until``."""
        waiting = asyncio.ensure_future(until(at_ns))
        try:
            await asyncio.wait({self.engine.failed, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self.engine.failed.done():
            self.engine.failed.result()

    def _given_up(self) -> None:
        """Remove the queue pairs from path control and from their adapters."""
        self._lab.move_listeners.remove(self._move)
        self._disconnect(self._roster.present)
        self._release(self.flows)

    def _bind(self, flows: Sequence[FlowSpec]) -> None:
        """Have adapters that bind queue pairs do so; replacement flows are bound from the start."""
        for nic, connections in self._by_nic(flows).items():
            adapter = self._lab.nics[nic].adapter
            if adapter is not None:
                adapter.bind(connections)

    def _release(self, flows: Sequence[FlowSpec]) -> None:
        for nic, connections in self._by_nic(flows).items():
            adapter = self._lab.nics[nic].adapter
            if adapter is not None:
                adapter.affinity.release(each.id for each in connections)

    def _use(self, flow: FlowSpec, sports: Sequence[int]) -> None:
        """Let a bound queue pair's data use source ports, before it does."""
        adapter, connection = self._lab.nics[flow.src_nic].adapter, self._data(flow)
        if adapter is not None:
            adapter.bind([replace(connection, home_sport=sports[0])], sports[1:])

    def _data(self, flow: FlowSpec) -> Connection:
        bound = self._named(flow.src_nic, flow.port)
        return Connection(2 * flow.id, flow.dst_ip, ROCE_PORT, flow.sport, bound)

    def _named(self, nic: str, port: int | None) -> str | None:
        return None if port is None else self._lab.fabric.nic(nic).links[port].lower.name

    def _connect(self, flows: Sequence[FlowSpec]) -> None:
        self._each_nic(flows, lambda nic, connections: self._lab.nics[nic].connect(connections))

    def _disconnect(self, flows: Sequence[FlowSpec]) -> None:
        self._each_nic(flows, lambda nic, connections: self._lab.nics[nic].disconnect(c.id for c in connections))

    def _each_nic(self, flows: Sequence[FlowSpec], do: Callable[[str, list[Connection]], None]) -> None:
        if self._known:
            for nic, connections in self._by_nic(flows).items():
                do(nic, connections)

    def _by_nic(self, flows: Sequence[FlowSpec]) -> Mapping[str, list[Connection]]:
        """Return the connections of each NIC: of data, then of acknowledgements."""
        found: dict[str, list[Connection]] = {}
        for f in flows:
            found.setdefault(f.src_nic, []).append(self._data(f))
        for f in flows:
            bound = self._named(f.dst_nic, f.ack_port)
            acks = Connection(2 * f.id + 1, f.src_ip, ROCE_PORT, f.ack_sport, bound)
            found.setdefault(f.dst_nic, []).append(acks)
        return found

    def _move(self, move: Move) -> None:
        flow, is_ack = divmod(move.connection, 2)
        if is_ack:
            self._ack_sports[flow] = move.sport
            self.engine.move_ack(flow, move.sport)
        else:
            self._sports[flow] = move.sport
            self.engine.move(flow, move.sport)

    def _progress(self, news: Progress) -> None:
        self._recent.append(Progress(news.at_ns, {}, dict(news.received)))

    @property
    def goodput(self) -> Mapping[str, float]:
        """Goodput by plane in bit/s over the last half second, as the workers' counts arrive at different times.

        Empty at first. The sum is computed on request, because with a thousand queue pairs it costs more than receiving
        the counts.
        """
        if not self._recent:
            return {}
        first, last = self._recent[0], self._recent[-1]
        if last.at_ns <= first.at_ns:
            return {}
        seconds = (last.at_ns - first.at_ns) / 1e9
        rates: Counter[str] = Counter()
        for flow in self._roster.present:
            packets = last.received.get(flow.id, 0) - first.received.get(flow.id, 0)
            rates[self._plane(flow)] += int(packets * flow.path_mtu * 8 / seconds)
        return rates

    def planes(self) -> tuple[tuple[int, int], ...]:
        """Return the id of each flow and the plane its data takes now.

        NICs without a port are left out; the result is empty for fabrics of one plane.
        """
        if self._lab.fabric.planes == 1:
            return ()
        for nic in dict.fromkeys(flow.src_nic for flow in self.flows):
            self._lab.nics[nic].look()
        found = ((flow.id, self._port(flow)) for flow in self.flows)
        return tuple((flow, port % self._lab.fabric.planes) for flow, port in found if port is not None)

    def _plane(self, flow: FlowSpec) -> str:
        """Return the name of the plane that a flow's data takes now."""
        return plane_named(self._port(flow), self._lab.fabric.planes)

    def _port(self, flow: FlowSpec) -> int | None:
        return self._lab.nics[flow.src_nic].port_for(flow.dst_ip, self._sports[flow.id], ROCE_PORT)


def plane_named(port: int | None, planes: int) -> str:
    """Return the name of a plane: 'plane 1', in a fabric of one plane 'port 1'; 'no port' if ``port`` is None."""
    if port is None:
        return "no port"
    return f"plane {port % planes}" if planes > 1 else f"port {port}"
