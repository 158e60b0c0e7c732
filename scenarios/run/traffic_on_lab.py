"""A workload of constant-rate streams on a running lab."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from scenarios.run.lab_router import LabRouter
from scenarios.run.queue_pairs_on_lab import LabQueuePairs
from testbed.lab.lab import Lab
from traffic.engine import TrafficEngine
from traffic.flow import FlowSpec
from traffic.messages import TrafficReport
from traffic.paths import CHOICES

_WORKER_PPS = 5000
"""What one worker carries with ease. A tick costs the same for few packets as for many: fewer workers cost less."""


class LabTraffic(LabQueuePairs):
    """The flows of one drill.

    ``later`` are stand-ins, by the instant at which they begin (``scenarios.drill.spares.stand_ins``): their sockets
    are opened with the others', they send from ``take_over`` on. ``source_ports``: a key of ``traffic.paths.CHOICES``.
    Path control is told of them unless they are to be as plain UDP, ``known`` to nobody.
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
    ) -> None:
        super().__init__(lab, CHOICES[source_ports].choose(flows, LabRouter(lab), later, lab.fabric.spec.seed))
        self._known = known
        wanted = math.ceil(sum(flow.rate_pps for flow in flows) / _WORKER_PPS)
        workers = max(1, min(os.cpu_count() or 1, len(self.flows), wanted))
        self.engine = TrafficEngine(
            self.flows, self._spaces, out, workers, lab.emit, progress=self._progress, tick_ns=tick_ns
        )

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
