"""The claim about HPCC: what is taken of two runs, and when it agrees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.port_sampling import Ports
from hpn.failover.analysis.ports import PortMetrics, PortResult
from hpn.scenarios.paper.control_claims import shorter_queue
from hpn.scenarios.paper.measures import ClaimEvidence
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from tests.scenarios.measured import metrics


def _run(p99_ms: float, xoff: int) -> DrillMetrics:
    """A run whose port towards a NIC has that queue; its switch sends XOFF, and a host twice as many."""
    port = PortResult("t:p", "l", "tor down", "n", 10**8, 100, 0.5, 1, 1, 0, 1.0, 1, 1, 0.0, p99_ms, 20.0, 0.1)
    above = replace(port, tier="tor up", nic=None, queue_p99_ms=1000.0)
    ports = PortMetrics(2.0, Ports.TOR_DOWN, 3.0, 0.0, (port, above), ())
    counts = (0,) * 10
    switch = ClassUse("t", True, "t:p", "l", 3, *counts, 0, 0, xoff, 0, 0, 0, 0, 0, 0, False, False, False)
    host = replace(switch, is_switch=False, xoff_sent=2 * xoff + 1)
    return replace(metrics((), ()), ports=ports, buffers=(switch, host))


def _evidence(hpcc: DrillMetrics, dcqcn: DrillMetrics) -> ClaimEvidence:
    runs = {"incast-pfc-hpcc": hpcc, "incast-pfc-dcqcn": dcqcn}
    return ClaimEvidence(runs, {}, {}, inventory(load_fabric("tiny")))


@pytest.mark.parametrize(
    ("hpcc", "dcqcn", "agrees"),
    [
        ((0.1, 0), (3.0, 4), True),
        ((1.6, 0), (3.0, 4), False),
        ((0.1, 4), (3.0, 4), False),
        ((3.0, 4), (3.0, 4), False),
    ],
)
def test_a_queue_shorter_by_more_than_half_and_fewer_pauses_agree(
    hpcc: tuple[float, int], dcqcn: tuple[float, int], agrees: bool
) -> None:
    found = shorter_queue(_evidence(_run(*hpcc), _run(*dcqcn)))
    assert found.agrees is agrees
    assert found.ours == (
        f"p99 of the queue {hpcc[0]:.2f} ms, else {dcqcn[0]:.2f} ms; XOFF sent by switches {hpcc[1]}, else {dcqcn[1]}"
    )


def test_a_run_without_buffers_is_no_evidence() -> None:
    with pytest.raises(MachineError, match="no switch:"):
        shorter_queue(_evidence(replace(_run(0.1, 0), buffers=None), _run(3.0, 4)))
