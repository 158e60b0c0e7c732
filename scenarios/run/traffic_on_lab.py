"""A workload on a running lab: source ports (chosen by true paths, say), path control, goodput per plane."""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from scenarios.drill.spares import Roster
from testbed.errors import MachineError
from testbed.events import now_ns
from testbed.lab.lab import Lab
from testbed.routing.pathcontrol.actions import Move
from testbed.routing.pathcontrol.host_agent import Connection
from testbed.routing.trace import Flow
from traffic.engine import TrafficEngine
from traffic.flow import ROCE_PORT, FlowSpec
from traffic.messages import Progress, TrafficReport
from traffic.paths import CHOICES, Spread

_WORKER_PPS = 5000
"""What one worker carries with ease. A tick costs the same for few packets as for many: fewer workers cost less."""


class LabRouter:
    """``traffic.paths.Router`` answered by the lab's own LAGs and kernels."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def ports(self, nic: str) -> int:
        """Member ports of a NIC's LAG."""
        return len(self._lab.fabric.nic(nic).links)

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        """Index of the member port the LAG picks. MachineError while the LAG has no active port."""
        port = self._lab.nics[nic].port_for(dst_ip, sport, dport)
        if port is None:
            raise MachineError(f"{nic}: no active port in its LAG")
        return port

    def links(self, src_nic: str, dst_nic: str, sport: int) -> Sequence[str]:
        """Names of the links on the path."""
        return self._lab.path(Flow(src_nic, dst_nic, sport)).links

    def rate_bps(self, link: str) -> int:
        """The emulated rate of a link."""
        return self._lab.fabric.link(link).rate_bps


class LabTraffic:
    """The flows of one drill. Connection numbers of path control: 2 x flow for data, 2 x flow + 1 for its ACKs.

    ``later`` are stand-ins, by the instant at which they begin (``scenarios.drill.spares.stand_ins``): their sockets
    are opened with the others', they send from ``take_over`` on. ``source_ports``: a key of ``traffic.paths.CHOICES``.
    """

    def __init__(
        self,
        lab: Lab,
        flows: Sequence[FlowSpec],
        out: Path,
        tick_ns: int = 1_000_000,
        later: Sequence[Sequence[FlowSpec]] = (),
        source_ports: str = "disjoint",
    ) -> None:
        self._lab = lab
        self.spread: Spread = CHOICES[source_ports].choose(flows, LabRouter(lab), later)
        self.flows = self.spread.flows
        self._roster = Roster(self.flows)
        self._sports = {flow.id: flow.sport for flow in self.flows}
        self._recent: deque[Progress] = deque(maxlen=6)
        self.goodput: Mapping[str, float] = {}
        spaces = {nic.name: lab.wiring.namespaces[nic.host] for nic in lab.fabric.nics}
        wanted = math.ceil(sum(flow.rate_pps for flow in flows) / _WORKER_PPS)
        workers = max(1, min(os.cpu_count() or 1, len(self.flows), wanted))
        self.engine = TrafficEngine(
            self.flows, spaces, out, workers, lab.emit, progress=self._progress, tick_ns=tick_ns
        )

    async def start(self) -> None:
        """Start the engine and put every queue pair under path control."""
        await self.engine.start()
        self._lab.move_listeners.append(self._move)
        self._connect(self._roster.present)

    @property
    def begun(self) -> tuple[int, ...]:
        """Ids of flows that are there now."""
        return tuple(flow.id for flow in self._roster.present)

    @property
    def absent(self) -> tuple[int, ...]:
        """Ids of flows that are not there now: closed, or stand-ins that have not begun."""
        return self._roster.absent

    async def take_over(self, dead: Collection[str]) -> None:
        """The spares of these hosts begin: queue pairs of the dead hosts are closed, their stand-ins send."""
        change = self._roster.take_over(dead)
        self._disconnect(change.closes)
        self._connect(change.starts)
        await self.engine.replace([flow.id for flow in change.closes], [flow.id for flow in change.starts])

    async def until(self, at_ns: int) -> None:
        """Sleep until a moment. MachineError when the engine fails meanwhile."""
        while (left_ns := at_ns - now_ns()) > 0:
            await asyncio.wait({self.engine.failed}, timeout=left_ns / 1e9)
            if self.engine.failed.done():
                self.engine.failed.result()

    async def finish(self) -> TrafficReport:
        """Stop sending, drain, and give the queue pairs up."""
        report = await self.engine.finish()
        self._lab.move_listeners.remove(self._move)
        self._disconnect(self._roster.present)
        return report

    def _connect(self, flows: Sequence[FlowSpec]) -> None:
        self._each_nic(flows, lambda nic, connections: self._lab.nics[nic].connect(connections))

    def _disconnect(self, flows: Sequence[FlowSpec]) -> None:
        self._each_nic(flows, lambda nic, connections: self._lab.nics[nic].disconnect(c.id for c in connections))

    def _each_nic(self, flows: Sequence[FlowSpec], do: Callable[[str, list[Connection]], None]) -> None:
        for nic in {flow.src_nic for flow in flows} | {flow.dst_nic for flow in flows}:
            data = [Connection(2 * f.id, f.dst_ip, ROCE_PORT, f.sport) for f in flows if f.src_nic == nic]
            acks = [Connection(2 * f.id + 1, f.src_ip, ROCE_PORT, f.ack_sport) for f in flows if f.dst_nic == nic]
            do(nic, [*data, *acks])

    def _move(self, move: Move) -> None:
        flow, is_ack = divmod(move.connection, 2)
        if is_ack:
            self.engine.move_ack(flow, move.sport)
        else:
            self._sports[flow] = move.sport
            self.engine.move(flow, move.sport)

    def _progress(self, news: Progress) -> None:
        """Goodput over the last half second: the workers' counts do not arrive at one moment."""
        self._recent.append(Progress(news.at_ns, {}, dict(news.received)))
        first, last = self._recent[0], self._recent[-1]
        if last.at_ns <= first.at_ns:
            return
        seconds = (last.at_ns - first.at_ns) / 1e9
        rates: Counter[str] = Counter()
        for flow in self._roster.present:
            packets = last.received.get(flow.id, 0) - first.received.get(flow.id, 0)
            rates[self._plane(flow)] += int(packets * flow.path_mtu * 8 / seconds)
        self.goodput = rates

    def planes(self) -> tuple[tuple[int, int], ...]:
        """Id of each flow and the plane its data takes now; nothing of NICs without a port or fabrics of one plane."""
        if self._lab.fabric.planes == 1:
            return ()
        for nic in dict.fromkeys(flow.src_nic for flow in self.flows):
            self._lab.nics[nic].look()
        found = ((flow.id, self._port(flow)) for flow in self.flows)
        return tuple((flow, port) for flow, port in found if port is not None)

    def _port(self, flow: FlowSpec) -> int | None:
        return self._lab.nics[flow.src_nic].port_for(flow.dst_ip, self._sports[flow.id], ROCE_PORT)

    def _plane(self, flow: FlowSpec) -> str:
        return f"{'plane' if self._lab.fabric.planes > 1 else 'port'} {self._port(flow)}"
