"""A workload of constant-rate streams on a running lab."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from hpn.failover.analysis.paths import Looked
from hpn.scenarios.run.queue_pairs_on_lab import LabQueuePairs
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.trace import Flow, trace
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.streams.engine import TrafficEngine
from hpn.traffic.workers.messages import TrafficReport

_WORKER_PPS = 5000
"""What one worker carries with ease. A tick costs the same for few packets as for many: fewer workers cost less."""


class LabTraffic(LabQueuePairs):
    """The flows of one drill.

    ``later`` are stand-ins, by the instant at which they begin (``scenarios.drill.spares.stand_ins``): their sockets
    are opened with the others', they send from ``take_over`` on. ``source_ports``: of ``flows.paths.CHOICES``.
    Path control is told of them unless they are to be as plain UDP, ``known`` to nobody. ``looks``: switches are asked
    for paths while streams run; not where that takes time, which they might feel.
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
        looks: bool = False,
    ) -> None:
        choice, seed = CHOICES[source_ports], lab.fabric.spec.seed
        super().__init__(lab, lambda router: choice.choose(flows, router, later, seed))
        self._known = known
        self._looks = looks
        wanted = math.ceil(sum(flow.rate_pps for flow in flows) / _WORKER_PPS)
        workers = max(1, min(os.cpu_count() or 1, len(self.flows), wanted))
        self.engine = TrafficEngine(
            self.flows, self._spaces, out, workers, lab.emit, progress=self._progress, tick_ns=tick_ns
        )

    async def look(self, _when: str, edges: int, at_ns: int | None) -> None:
        """Note the links that each stream crosses; those at first are known since source ports were chosen.

        Asks kernels, sends nothing and reads no clock: in virtual time a run is the same with it or without.
        """
        if at_ns is None or not self._looks:
            return
        ways: dict[int, tuple[str, ...]] = {}
        for flow in self._roster.present:
            packet = Flow(flow.src_nic, flow.dst_nic, self._sports[flow.id])
            path = trace(self._lab.fabric, packet, self._port(flow), self._lab.requests, self._lab.link_up)
            self.looked.append(Looked(at_ns, flow.id, path.links, path.dropped))
            ways[flow.id] = path.links
        self._looked_after, self._ways = edges, ways

    async def take_over(self, dead: Collection[str]) -> None:
        """The spares of these hosts begin: queue pairs of the dead hosts are closed, their stand-ins send."""
        change = self._roster.take_over(dead)
        self._disconnect(change.closes)
        self._connect(change.starts)
        await self.engine.replace([flow.id for flow in change.closes], [flow.id for flow in change.starts])

    async def finish(self) -> TrafficReport:
        """Stop sending, drain, and give the queue pairs up."""
        report = await self.engine.finish()
        self._given_up()
        return report
