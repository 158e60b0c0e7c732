"""Runs one drill over and over while the traffic workers stand still somewhere near the end of its outage.

In a guest: ``python -m tests.scenarios.paused_drill DRILL_FILE PAUSE_MS OUT FROM_MS...``; FROM_MS counts from the
injection. Leaves a run folder OUT/NUMBER for each. What stops the workers is here and nowhere in the product.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from hpn.failover.analysis.model import Edge, EdgeKind
from hpn.failover.faults.moments import Moment
from hpn.failover.inject.injector import Injector
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.run import session
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.traffic_on_lab import LabTraffic
from hpn.testbed.files.document import parse

_carry_out = Injector.carry_out


def pausing(from_ms: float, pause_ms: float) -> None:
    """From now on every failure that is injected stops the workers, so long after it and for so long."""

    async def carry_out(
        self: Injector,
        moment: Moment,
        transit_flows: tuple[int, ...],
        planes: tuple[tuple[int, int], ...] = (),
        ways: Mapping[int, Collection[str]] | None = None,
        ack_ways: Mapping[int, Collection[str]] | None = None,
    ) -> Edge:
        edge = await _carry_out(self, moment, transit_flows, planes, ways, ack_ways)
        if moment.kind is EdgeKind.FAILURE and pause_ms:
            traffic, loop = self._job, asyncio.get_running_loop()
            assert isinstance(traffic, LabTraffic)
            loop.call_later(from_ms / 1e3, traffic.engine.stand_still, True)
            loop.call_later((from_ms + pause_ms) / 1e3, traffic.engine.stand_still, False)
        return edge

    Injector.carry_out = carry_out  # type: ignore[method-assign]  # the sandbox is forked from here


def main(drill_file: str, pause_ms: str, out: str, *from_ms: str) -> None:
    """As the module says."""
    path = Path(drill_file)
    drill = drill_from(parse(path.read_text(), str(path)), path.parent)
    for number, each in enumerate(from_ms):
        pausing(float(each), float(pause_ms))
        session.run(Order(drill, Path(out) / str(number), ("test",)), lambda _news: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
