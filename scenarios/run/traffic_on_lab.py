"""Workload of constant-rate streams on a running lab."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hpn.failover.analysis.paths import Looked
from hpn.scenarios.run.queue_pairs_on_lab import LabQueuePairs
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.trace import Flow, trace
from hpn.testbed.routing.trace import Path as FlowPath
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.streams.engine import Follow, TrafficEngine
from hpn.traffic.workers.messages import TrafficReport
from hpn.traffic.workers.placement import workers_for


class LabTraffic(LabQueuePairs):
    """Flows of one drill.

    ``later``: replacement flows by start event (``spares.replacement_flows``). Their sockets are opened with all
    others; they send from ``take_over`` on. ``source_ports``: of ``flows.paths.CHOICES``. ``known``: False for plain
    UDP, which path control does not know. ``clock_stands``: computing takes no time. So queries do not disturb streams,
    and switches are asked for paths while they run.
    """

    engine: TrafficEngine

    def __init__(
        self,
        lab: Lab,
        flows: Sequence[FlowSpec],
        out: Path,
        tick_ns: int = 1_000_000,
        later: Sequence[Sequence[FlowSpec]] = (),
        source_ports: str = "disjoint",
        *,
        known: bool = True,
        clock_stands: bool = False,
        follow: Follow | None = None,
    ) -> None:
        choice, seed = CHOICES[source_ports], lab.fabric.spec.seed
        super().__init__(lab, lambda router: choice.choose(flows, router, later, seed))
        self._known = known
        self._looks = clock_stands
        workers = workers_for(flows)
        self.engine = TrafficEngine(
            self.flows,
            self._spaces,
            out,
            workers,
            lab.emit,
            progress=self._progress,
            tick_ns=tick_ns,
            follow=follow,
            clock_stands=clock_stands,
        )

    @property
    def controlled(self) -> bool:
        """True if path control knows the streams, if it is on."""
        return self._known

    def paths_now(self) -> Mapping[int, Sequence[str]]:
        """Query the links that each stream crosses now, by flow id; none if its packets do not arrive."""
        found = ((flow, self._path(flow)) for flow in self._roster.present)
        return {flow.id: () if path.dropped else path.links for flow, path in found}

    def _path(self, flow: FlowSpec) -> FlowPath:
        packet = Flow(flow.src_nic, flow.dst_nic, self._sports[flow.id])
        return trace(self._lab.fabric, packet, self._port(flow), self._lab.requests, self._lab.link_up)

    async def look(self, _when: str, edges: int, at_ns: int | None) -> None:
        """Record the links that each stream crosses; the first paths are known since source ports were chosen.

        Queries kernels, sends no packet and reads no clock, so that in virtual time a run is the same with it or
        without.
        """
        if at_ns is None or not self._looks:
            return
        ways: dict[int, Sequence[str]] = {}
        acks: dict[int, Sequence[str]] = {}
        for flow in self._roster.present:
            path = self._path(flow)
            self.looked.append(Looked(at_ns, flow.id, path.links, path.dropped))
            ways[flow.id], acks[flow.id] = path.links, self._ack_links(flow)
        self._looked_after, self._ways, self._ack_ways = edges, ways, acks

    async def take_over(self, dead: Collection[str]) -> None:
        """Replace hosts by spares: close the queue pairs of these hosts and start their replacement flows."""
        change = self._roster.take_over(dead)
        self._disconnect(change.closes)
        self._connect(change.starts)
        await self.engine.replace([flow.id for flow in change.closes], [flow.id for flow in change.starts])

    async def finish(self) -> TrafficReport:
        """Stop sending, drain, and release the queue pairs."""
        report = await self.engine.finish()
        self._given_up()
        return report
